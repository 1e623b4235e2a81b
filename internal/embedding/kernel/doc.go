// Package kernel owns the arithmetic of vectors and of the text encoder: products of
// matrices, softmax, GELU and normalisation, once in plain Go and once in assembly for
// what amd64 processors have. It knows nothing about models or texts. Package bert
// computes with it, and package search compares vectors by Products. All
// implementations agree within rounding, and the tests of this package hold each one
// against plain Go.
package kernel

//go:generate go -C gen run . -out ../kernel_amd64.s -stubs ../kernel_amd64.go -pkg kernel

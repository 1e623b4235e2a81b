// Command gen writes kernel_amd64.s and its Go declarations, one directory up.
// It is a module of its own so that the main module does not depend on avo.
package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:revive,staticcheck // how avo programs are written
)

func main() {
	declare()
	Generate()
}

// declare adds every kernel to avo's context.
func declare() {
	ConstraintExpr("amd64")
	dot(3)
	dot(2)
	dot(1)
	widen()
	softmax()
	gelu()
	addNorm()
	quantize()
	mulInt8(12)
	mulInt8(4)
}

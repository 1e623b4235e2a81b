// Package pml carries the files at the root of the repository that the binary
// needs to set itself up: what Deno packages it uses and their locked hashes.
package pml

import _ "embed"

// DenoConfig is deno.json, which pins the packages.
//
//go:embed deno.json
var DenoConfig []byte

// DenoLock is deno.lock, which holds their hashes.
//
//go:embed deno.lock
var DenoLock []byte

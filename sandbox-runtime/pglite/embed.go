// Package pglite carries the program of the embedded database's child process.
// internal/store/pglite runs it.
package pglite

import _ "embed"

// Program is pglite.ts, run by Deno.
//
//go:embed pglite.ts
var Program []byte

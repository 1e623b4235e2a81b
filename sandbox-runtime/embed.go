// Package sandboxruntime carries the TypeScript that runs inside a sandbox worker,
// so that the binary needs no file beside it. Package sandbox bundles it at start.
package sandboxruntime

import "embed"

// Files holds the sources; main.ts is the entry.
//
//go:embed *.ts
var Files embed.FS

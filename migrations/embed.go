// Package migrations carries the database's schema as goose migrations: one schema
// for the embedded database and for PostgreSQL. package store applies them. A file
// that was released is never edited; a change is a new file, and is safe beside
// the previous release's code.
package migrations

import "embed"

// FS holds the migrations.
//
//go:embed *.sql
var FS embed.FS

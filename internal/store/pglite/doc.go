// Package pglite runs the embedded database: PGlite (PostgreSQL as WASM) in one
// Deno child per data directory, and offers it to pgx as connections. It owns the
// child's life, the lock on the directory, and the bridge that lets any number of
// connections share the one backend that PGlite has. It knows nothing of tables;
// only package store calls it.
//
// The backend is one session that runs one thing at a time, so the bridge hands it
// whole units (every message up to Sync or Query), keeps the turn with a connection
// that is inside a transaction, and keeps apart by name what connections prepare.
// What cannot be had from one session: cancelling a running statement, session
// advisory locks that exclude another connection, and a second connection that
// works while the first one holds a transaction open.
package pglite

// Package store owns everything that must survive: it is the only package that
// talks SQL. One schema and the same statements serve two homes, PGlite embedded in
// a child process (package pglite) and a PostgreSQL of the user's own. It decides
// nothing about runs, tools or capabilities. Package daemon opens the one Store and
// hands it to the others behind small interfaces of theirs.
//
// A method is one statement or one transaction, has a deadline of its own, and sees
// only the rows of its workspace.
package store

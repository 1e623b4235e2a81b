// Package analysis reads a TypeScript program without running it: its static
// structure, where the values of its calls come from, what it could be run with
// again, and hashes that say when two programs are the same. It also makes the
// text that runs: the program with marks that tell the recorder what happens, on
// the same lines and with a table that leads back to the user's own columns.
//
// A program is the body of an async function. The work goes through these stages:
//
//	text → tree (grammar, repair) → scopes → references → functions, events
//	     → vertices (branch, region, fork) → numbers → control flow → edges
//	     → data flow → provides; parameters → hashes; marks → code
//
// A DAG is written as such a program first and goes the same way (FromDAG).
//
// The package never runs a program and never talks to a server. What it cannot
// analyse it says so (Program.Exact) and gives the program's own text back.
package analysis

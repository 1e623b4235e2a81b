// Package sandbox owns the execution of programs that nobody has reviewed: a pool
// of single-use, pre-warmed Deno processes without permissions, each in a jail of
// the operating system, that are killed after one run. It knows nothing of MCP,
// policies or storage: execute gives it a program and a Host that answers its
// calls, and gets back what the program returned, printed and did.
//
// Everything a worker says is said by the program it runs. Frames are validated
// against what the program was given; the limits are kept on this side; a worker
// that breaks the protocol is killed and its run has failed.
package sandbox

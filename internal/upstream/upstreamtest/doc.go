// Package upstreamtest gives tests MCP servers to talk to: a scripted one that
// does everything a server should not do, and real ones from npm. Only tests
// import it.
package upstreamtest

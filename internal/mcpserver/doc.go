// Package mcpserver is the face towards the agent: PML as an MCP server with its
// three tools, over stdio and streamable HTTP, for every protocol revision from
// 2024-11-05 to 2026-07-28. It translates between the protocol and the packages
// that do the work, and decides nothing else.
package mcpserver

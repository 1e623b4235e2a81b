// Package upstream owns the sessions to the MCP servers behind the gateway: it
// starts them, keeps them, restarts them, lists their tools into one catalog and
// carries calls to them. Results pass through as the bytes the server sent. It
// never decides whether a call may happen and never interprets a result; execute
// calls it, daemon starts and stops it.
package upstream

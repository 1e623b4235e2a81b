// Package config reads the gateway's configuration: finding the file, JSON with
// comments, variables, defaults, validation with line and column, watching for
// changes; and the configuration files of other MCP clients, to import from and
// to install into. It decides nothing about what the values mean. cli and daemon
// call it; upstream gets the entries of mcpServers.
package config

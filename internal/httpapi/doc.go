// Package httpapi is the gateway's HTTP face: the JSON API that the command line
// uses over the data folder's unix socket, health, metrics and the MCP endpoint,
// and the Go client of that API. It shapes requests and answers; the work is done
// by the Backend.
package httpapi

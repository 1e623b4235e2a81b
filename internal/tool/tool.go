// Package tool owns what PML knows about the tools of the servers behind it:
// their ids, schemas and annotations, the immutable catalog snapshot that names
// are resolved against, and how a call's result becomes a value. It never talks
// to a server; every layer above imports it.
package tool

import (
	"encoding/json"
	"strings"
)

// ID names a tool across servers as "server:tool". The server part never holds
// a colon, the tool part may.
type ID string

// MakeID joins a server's and a tool's exact names.
func MakeID(server, name string) ID { return ID(server + ":" + name) }

// Server is the part before the first colon.
func (id ID) Server() string { s, _, _ := strings.Cut(string(id), ":"); return s }

// Name is the part after the first colon.
func (id ID) Name() string { _, n, _ := strings.Cut(string(id), ":"); return n }

// Annotations are a server's own claims about a tool. A nil field was not
// claimed; the claims are hints, never proof.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// Tool is one entry of the catalog.
type Tool struct {
	ID           ID              `json:"id"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  Annotations     `json:"annotations"`
	// SchemaHash changes when the input or output schema changes.
	SchemaHash string `json:"schemaHash"`
}

// ReadOnly reports whether the server claims that the tool changes nothing.
func (t Tool) ReadOnly() bool { return t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly }

// Idempotent reports whether repeating a call is claimed to change nothing more.
func (t Tool) Idempotent() bool {
	return t.ReadOnly() || t.Annotations.Idempotent != nil && *t.Annotations.Idempotent
}

// CallError is a tool's own refusal (a result with isError): the program that
// called sees it as ToolError and may catch it.
type CallError struct {
	Server  string          `json:"server"`
	Tool    string          `json:"tool"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Content json.RawMessage `json:"content,omitempty"` // the result's content blocks, as the server sent them
}

// Error implements error.
func (e *CallError) Error() string { return e.Server + ":" + e.Tool + ": " + e.Message }

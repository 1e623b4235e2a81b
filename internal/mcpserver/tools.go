package mcpserver

import (
	_ "embed"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The schemas of the three tools' arguments and results.
var (
	//go:embed schema/discover.json
	discoverSchema []byte
	//go:embed schema/execute.json
	executeSchema []byte
	//go:embed schema/result.json
	resultSchema []byte
	//go:embed instructions.md
	instructions string
)

// schemaPair is the content of one schema file.
type schemaPair struct {
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
}

// meta keeps the tools loaded in clients that defer them, and raises the size at
// which a client moves a result to a file.
func meta() mcp.Meta {
	return mcp.Meta{"anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": 200_000}
}

func definition(name, title string, schema []byte, annotations *mcp.ToolAnnotations) *mcp.Tool {
	var pair schemaPair
	if err := json.Unmarshal(schema, &pair); err != nil {
		panic("schema of " + name + ": " + err.Error())
	}
	return &mcp.Tool{
		Name: name, Title: title, Description: pair.Description, Meta: meta(),
		InputSchema: pair.Input, OutputSchema: pair.Output, Annotations: annotations,
	}
}

func discoverTool() *mcp.Tool {
	return definition("pml_discover", "Find tools", discoverSchema, &mcp.ToolAnnotations{ReadOnlyHint: true})
}

func executeTool() *mcp.Tool {
	yes := true
	return definition("pml_execute", "Run a program over tools", executeSchema,
		&mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes})
}

func resultTool() *mcp.Tool {
	return definition("pml_get_task_result", "Read a result", resultSchema, &mcp.ToolAnnotations{ReadOnlyHint: true})
}

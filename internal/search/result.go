package search

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

const (
	// briefSignature, briefDescription and briefPreview are the most bytes of each with
	// DetailSignature: eight results stay under 2,000 tokens.
	briefSignature   = 420
	briefDescription = 160
	briefPreview     = 80
	// longDescription and longPreview are for DetailSchema.
	longDescription = 2 << 10
	longPreview     = 400
	// wholePreview is for DetailFull.
	wholePreview = 16 << 10
)

// results tells of what was found. What has gone since is left out.
func (v *view) results(ctx context.Context, hits []Hit, detail Detail) ([]Result, error) {
	out := make([]Result, 0, len(hits))
	var tools []tool.ID
	for _, h := range hits {
		if c, ok := v.facts.Capabilities[h.ID]; ok {
			out = append(out, v.ofCapability(c, h, detail))
		} else if t, ok := v.catalog.Get(tool.ID(h.ID)); ok {
			out = append(out, v.ofTool(t, h, detail))
			tools = append(tools, t.ID)
		}
	}
	if detail == DetailSignature || v.o.Examples == nil || len(tools) == 0 {
		return out, nil
	}
	examples, err := v.o.Examples(ctx, tools)
	for i := range out {
		if out[i].ToolResult != nil {
			out[i].ExampleArgs = examples[tool.ID(out[i].ID)]
		}
	}
	return out, err
}

func (v *view) ofTool(t tool.Tool, h Hit, detail Detail) Result {
	observed := v.facts.Tools[t.ID].Observed
	claims := t.Annotations
	if detail == DetailSignature {
		claims.Title = "" // the name and the description say as much
	}
	r := Result{
		Type: string(Tools), ID: string(t.ID), Call: t.ID.Expression(), Score: rounded(h.Rank),
		Description: description(t.Description, detail),
		Signature:   signature(detail).Tool(t, observed),
		ToolResult:  &ToolResult{Annotations: claims, Approval: v.o.Approval(t)},
	}
	if detail == DetailSignature {
		return r
	}
	r.InputSchema = t.InputSchema
	if len(t.OutputSchema) > 0 {
		r.OutputSchema, r.OutputSource = t.OutputSchema, "declared"
	} else {
		r.setObserved(observed)
	}
	return r
}

func (v *view) ofCapability(c capability.Capability, h Hit, detail Detail) Result {
	about := c.Description
	if about == "" {
		about = c.Intent
	}
	parameters, observed := Parameters(c), c.Learning.Output.Schema()
	r := Result{
		Type: string(Capabilities), ID: c.ID.String(), Call: "capabilities." + c.Name, Score: rounded(h.Rank),
		Description: description(about, detail),
		Signature:   signature(detail).Capability(c.Name, parameters, observed),
		CapabilityResult: &CapabilityResult{
			Name: c.Name, Version: c.Version, UsageCount: c.UsageCount, SuccessRate: rounded(c.SuccessRate),
			State: string(c.State), StateReason: c.StateReason, Source: preview(c.Source, detail), ToolsUsed: c.ToolsUsed,
		},
	}
	if r.ToolsUsed == nil {
		r.ToolsUsed = []tool.ID{}
	}
	if detail != DetailSignature {
		r.InputSchema = inputSchema(parameters)
		r.setObserved(observed)
	}
	if detail == DetailFull {
		r.Structure = c.Structure
	}
	return r
}

// setObserved gives the result the schema that results have shown, if any have.
func (r *Result) setObserved(schema json.RawMessage) {
	if len(schema) > 0 {
		r.OutputSchema, r.OutputSource = schema, "observed"
	}
}

// Parameters are what a capability takes, as its runs have refined it.
func Parameters(c capability.Capability) []tool.Parameter {
	var out []tool.Parameter
	for _, p := range c.Interface() {
		out = append(out, tool.Parameter{Name: p.Name, Schema: p.Schema, Required: p.Required})
	}
	return out
}

// inputSchema is the JSON Schema of the arguments with these parameters.
func inputSchema(parameters []tool.Parameter) json.RawMessage {
	s := struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required,omitempty"`
	}{Type: "object", Properties: map[string]json.RawMessage{}}
	for _, p := range parameters {
		s.Properties[p.Name] = p.Schema
		if len(p.Schema) == 0 {
			s.Properties[p.Name] = json.RawMessage("true")
		}
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil // a stored schema that is no JSON says nothing
	}
	return b
}

func signature(detail Detail) tool.SignatureOptions {
	if detail == DetailSignature {
		return tool.SignatureOptions{Max: briefSignature}
	}
	return tool.SignatureOptions{}
}

func preview(s capability.Source, detail Detail) ProgramPreview {
	text := s.Code
	switch s.Type {
	case capability.DAGSource:
		text = string(s.DAG)
	case capability.ToolSource:
		text = string(s.ToolID) + " " + string(s.DefaultArgs)
	case capability.CodeSource: // as it is
	}
	p := ProgramPreview{Type: string(s.Type)}
	switch detail {
	case DetailFull:
		p.Preview = shorten(text, wholePreview)
	case DetailSchema:
		p.Preview = shorten(text, longPreview)
	case DetailSignature:
		p.Preview = shorten(strings.Join(strings.Fields(text), " "), briefPreview)
	}
	return p
}

func description(text string, detail Detail) string {
	switch detail {
	case DetailFull:
		return shorten(strings.TrimSpace(text), maxText)
	case DetailSchema:
		return shorten(strings.TrimSpace(text), longDescription)
	case DetailSignature: // whole sentences
	}
	return brief(strings.Join(strings.Fields(text), " "), briefDescription)
}

// brief is as many whole sentences as there is room for in most bytes; of a first
// one that is too long, its beginning.
func brief(text string, most int) string {
	end := 0
	for end < len(text) {
		next := end + sentenceEnd(text[end:])
		if len(strings.TrimSpace(text[:next])) > most {
			break
		}
		end = next
	}
	if end == 0 {
		return shorten(text, most)
	}
	return strings.TrimSuffix(strings.TrimSpace(text[:end]), ";")
}

// shorten cuts a text behind a word, to most bytes at most.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	end := most - len(mark)
	if space := strings.LastIndexFunc(text[:end+1], unicode.IsSpace); space > end/2 {
		end = space
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[:end], "")) + mark
}

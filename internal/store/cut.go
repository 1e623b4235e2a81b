package store

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

const (
	// maxInline is the size up to which a result is kept in its trace; beyond it the
	// trace has its size and shape, and the result store has the whole.
	maxInline = 10 << 10
	// The shape of a value is drawn to this depth and width.
	shapeDepth = 4
	shapeWidth = 50
)

// tracedCall is a call as capability_trace.task_results holds it.
type tracedCall struct {
	NodeID     string           `json:"nodeId"`
	Occurrence int              `json:"occurrence"`
	Seq        int              `json:"sequenceIndex"`
	Iteration  *int             `json:"iteration,omitempty"`
	ParentNode string           `json:"parentNode,omitempty"`
	Tool       tool.ID          `json:"tool"`
	Args       json.RawMessage  `json:"args,omitempty"`
	ArgsHash   string           `json:"argsHash,omitempty"`
	Status     trace.CallStatus `json:"status"`
	Success    bool             `json:"success"`
	Result     json.RawMessage  `json:"result,omitempty"`
	// ResultRef is set where the result was too big: NodeID and Occurrence name it
	// in the result store.
	ResultRef   bool            `json:"resultRef,omitempty"`
	Shape       json.RawMessage `json:"shape,omitempty"`
	Bytes       int64           `json:"bytes"`
	ContentType string          `json:"contentType,omitempty"`
	Error       *fault.Error    `json:"error,omitempty"`
	StartedAt   time.Time       `json:"startedAt"`
	DurationMS  float64         `json:"durationMs"`
}

// cutCalls returns the calls as JSON, without big results.
func cutCalls(calls []trace.Call) (json.RawMessage, error) {
	out := make([]tracedCall, len(calls))
	for i, c := range calls {
		t := tracedCall{
			NodeID: c.NodeID, Occurrence: c.Occurrence, Seq: c.Seq, Iteration: c.Iteration, ParentNode: c.ParentNode,
			Tool: c.Tool, ArgsHash: c.ArgsHash, Status: c.Status, Success: c.Status == trace.CallOK,
			Bytes: resultSize(c), ContentType: c.ContentType, Error: c.Error, StartedAt: c.StartedAt, DurationMS: milliseconds(c.Duration),
		}
		t.Args, _ = inline(c.Args)
		t.Result, t.Shape = inline(c.Result)
		t.ResultRef = t.Shape != nil
		out[i] = t
	}
	return json.Marshal(out)
}

// resultSize is the true size of a call's result, also where the caller has cut it.
func resultSize(c trace.Call) int64 { return max(c.Bytes, int64(len(c.Result))) }

// uncutCalls reverses cutCalls, as far as it goes.
func uncutCalls(raw json.RawMessage) ([]trace.Call, error) {
	var list []tracedCall
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	calls := make([]trace.Call, len(list))
	for i, t := range list {
		calls[i] = trace.Call{
			NodeID: t.NodeID, Occurrence: t.Occurrence, Seq: t.Seq, Iteration: t.Iteration, ParentNode: t.ParentNode,
			Tool: t.Tool, Args: t.Args, ArgsHash: t.ArgsHash, Status: t.Status, Result: t.Result, Bytes: t.Bytes,
			ContentType: t.ContentType, Error: t.Error, StartedAt: t.StartedAt, Duration: duration(t.DurationMS),
		}
	}
	return calls, nil
}

// inline returns raw when it is small, else its shape.
func inline(raw json.RawMessage) (whole, shape json.RawMessage) {
	if len(raw) <= maxInline {
		if len(raw) > 0 && !json.Valid(raw) {
			raw, _ = json.Marshal(text(string(raw))) // a string always can
		}
		return raw, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, json.RawMessage(`"invalid"`)
	}
	shape, err := json.Marshal(shapeOf(v, shapeDepth))
	if err != nil {
		return nil, json.RawMessage(`"invalid"`)
	}
	return nil, shape
}

// shapeOf draws a value's types: an object by its keys, an array by its first
// element and length, the rest by name. No value of it is in the result.
func shapeOf(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		if depth == 0 {
			return "object"
		}
		out := map[string]any{}
		for key, value := range v {
			if len(out) == shapeWidth {
				break
			}
			out[key] = shapeOf(value, depth-1)
		}
		return out
	case []any:
		if depth == 0 || len(v) == 0 {
			return map[string]any{"array": len(v)}
		}
		return map[string]any{"array": len(v), "of": shapeOf(v[0], depth-1)}
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

package execute

import (
	"context"
	"regexp"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
)

// A payload (image, audio, binary resource) is not in the value that a program sees;
// there stands a data_ref. The journal has it beside its call, as base64 text: at the
// call's node with the data_ref behind it.

var payloadRef = regexp.MustCompile(`^"blob:\d+"$`)

// payloadNode is where the journal has a payload of a call at a node.
func payloadNode(node, ref string) string { return node + "/" + ref }

// referred returns the data_ref that a path has led to.
func referred(path []step, value string) (ref string, ok bool) {
	if len(path) == 0 || path[len(path)-1] != (step{kind: keyStep, name: "data_ref"}) || !payloadRef.MatchString(value) {
		return "", false
	}
	return unquote(value), true
}

// payload reads what a data_ref stands for: base64 text as a JSON string.
func (r *Results) payload(ctx context.Context, id uuid.UUID, req reading, ref string) (string, error) {
	if req.node == "" {
		return "", fault.New(fault.NotFound, "%s belongs to the call that gave it", ref).WithHint("name that call with task_id")
	}
	raw, _, err := r.store.CallResult(ctx, id, payloadNode(req.node, ref), req.occurrence)
	if fault.CodeOf(err) == fault.NotFound {
		return "", fault.New(fault.NotFound, "the payload %s was not kept", ref).
			WithHint("call the tool with mcp.server.tool.raw(args): its result has the payload, e.g. at content[0].data")
	}
	return string(raw), err
}

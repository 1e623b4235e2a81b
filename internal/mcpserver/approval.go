package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
)

const (
	// approvalInput is the name under which a client is asked.
	approvalInput = "approval"
	// mostAlways is how many tools a form offers to allow for always.
	mostAlways = 8
	// mostShown is how many of the tools that ask a form shows.
	mostShown = 12
	// byElicitation is how an answer that came through the protocol is signed.
	byElicitation = "elicitation"
)

// form asks a person through the client.
func form(a policy.Approval) *mcp.ElicitParams {
	properties := map[string]any{
		"decision": map[string]any{
			"type": "string", "title": "Decision", "enum": []string{"approve", "reject"}, "default": "approve",
		},
		"reason": map[string]any{"type": "string", "title": "Reason", "description": "What the agent is told when you reject it."},
	}
	tools := a.Requested.Tools()
	for i, id := range tools[:min(len(tools), mostAlways)] {
		properties[alwaysKey(i)] = map[string]any{
			"type": "boolean", "title": "Always allow " + string(id), "default": false,
		}
	}
	return &mcp.ElicitParams{
		Mode: "form", Message: question(a),
		RequestedSchema: map[string]any{"type": "object", "properties": properties, "required": []string{"decision"}},
	}
}

func alwaysKey(i int) string { return fmt.Sprintf("always_%d", i+1) }

// question is what a person reads.
func question(a policy.Approval) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Allow this? %s\n", execute.Preview(a.Requested.Intent, 300))
	for i, q := range a.Requested.Asks {
		if i == mostShown {
			fmt.Fprintf(&b, "… and %d more calls\n", len(a.Requested.Asks)-i)
			break
		}
		call := q.Call
		if call == "" {
			call = execute.Preview(string(q.Args), 400)
		}
		fmt.Fprintf(&b, "\n%s — %s\n  %s\n", q.Tool, q.Reason, call)
	}
	return b.String()
}

// answerOf reads a person's answer. Declining and dismissing are answers: no.
func answerOf(r *mcp.ElicitResult, a policy.Approval) *policy.Answer {
	answer := &policy.Answer{By: byElicitation}
	answer.Reason, _ = r.Content["reason"].(string)
	switch {
	case r.Action == "decline":
		answer.Reason = orElse(answer.Reason, "declined")
		return answer
	case r.Action != "accept":
		answer.Reason = orElse(answer.Reason, "the question was dismissed")
		return answer
	}
	if decision, _ := r.Content["decision"].(string); decision != "approve" {
		return answer
	}
	answer.Approved, answer.Scope = true, policy.Once
	for i, id := range a.Requested.Tools() {
		if always, _ := r.Content[alwaysKey(i)].(bool); always {
			answer.Always = append(answer.Always, id)
		}
	}
	return answer
}

func orElse(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// canElicit reports whether the client can ask its person something.
func canElicit(session *mcp.ServerSession) bool {
	p := session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	c := p.Capabilities.Elicitation
	return c.Form != nil || c.URL == nil
}

// statelessSession reports whether the client's protocol revision knows requests
// of several round trips: a question is a result there.
func statelessSession(session *mcp.ServerSession) bool {
	p := session.InitializeParams()
	return p == nil || p.ProtocolVersion >= firstStateless
}

// askPerson asks about a run through the client, as often as the run asks. It
// returns the run's answer, or the result that has the client ask.
func (s *Server) askPerson(ctx context.Context, req *mcp.CallToolRequest, in execute.Request, answer *execute.Answer) (*execute.Answer, *mcp.CallToolResult) {
	for answer.Status == execute.StatusApproval && answer.Approval != nil && answer.Error == nil && canElicit(req.Session) {
		a := *answer.Approval
		if statelessSession(req.Session) {
			return answer, &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{approvalInput: form(a)}, RequestState: s.sign(a.ID, req.Params.Arguments),
			}
		}
		reply, err := req.Session.Elicit(ctx, form(a))
		if err != nil {
			s.logger.WarnContext(ctx, "the client did not ask its person", "error", err)
			return answer, nil // the other doors are open
		}
		answer = s.answered(ctx, in, a, reply)
	}
	return answer, nil
}

// answered passes a person's answer on and waits for the run.
func (s *Server) answered(ctx context.Context, in execute.Request, a policy.Approval, reply *mcp.ElicitResult) *execute.Answer {
	in.Continue = &execute.Continue{WorkflowID: a.WorkflowID.String(), Person: answerOf(reply, a)}
	return s.executor.Execute(ctx, in)
}

// returned takes up a request that comes back with a person's answer.
func (s *Server) returned(ctx context.Context, req *mcp.CallToolRequest, in execute.Request) *execute.Answer {
	id, ok := s.verify(req.Params.RequestState, req.Params.Arguments)
	reply, isForm := req.Params.InputResponses[approvalInput].(*mcp.ElicitResult)
	if !ok || !isForm {
		return &execute.Answer{Status: execute.StatusFailed, Error: fault.New(fault.InvalidInput, "the answer belongs to no question that this request was asked").
			WithHint("send the same arguments as before, or the request without requestState")}
	}
	a, err := s.approvals.Approval(ctx, id)
	if err != nil {
		f := fault.New(fault.NotFound, "the question is gone: %v", err)
		return &execute.Answer{Status: execute.StatusFailed, Error: f}
	}
	return s.answered(ctx, in, a, reply)
}

// sign makes the state that a client gives back with an answer: the approval, and
// the proof that the question was asked here or at another gateway of this store, of
// a request with these arguments.
func (s *Server) sign(id uuid.UUID, arguments json.RawMessage) string {
	return base64.RawURLEncoding.EncodeToString(append(id[:], s.mac(id, arguments)...))
}

func (s *Server) verify(state string, arguments json.RawMessage) (uuid.UUID, bool) {
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(b) != 16+sha256.Size {
		return uuid.Nil, false
	}
	id := uuid.UUID(b[:16])
	return id, len(s.key()) > 0 && hmac.Equal(b[16:], s.mac(id, arguments))
}

func (s *Server) mac(id uuid.UUID, arguments json.RawMessage) []byte {
	m := hmac.New(sha256.New, s.key())
	m.Write(id[:])
	m.Write(sorted(arguments))
	return m.Sum(nil)
}

// sorted writes JSON with its keys in order: a client may write them anew.
func sorted(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rewriting reads a file, writes another, and deletes what the memory has of it.
const rewriting = `
const { content } = await mcp.filesystem.read_text_file({ path: args.dir + "/a.txt" });
await mcp.filesystem.write_file({ path: args.dir + "/made.txt", content });
await mcp.memory.delete_entities({ entityNames: ["gone"] });
return content.trim();`

func (f folder) rewritingCall() clientCall {
	return clientCall{Name: "pml_execute", Arguments: map[string]any{
		"intent": "copy a note and forget it", "implementation": map[string]string{"type": "code", "code": rewriting},
		"args": map[string]any{"dir": f.files},
	}}
}

// asked is the part of an answer that is about approval.
type asked struct {
	Status     string          `json:"status"`
	WorkflowID string          `json:"workflow_id"`
	Result     json.RawMessage `json:"result"`
	Error      *struct{ Code, Message string }
	Approval   *struct {
		ID        string
		Requested struct {
			Asks []struct{ Tool, Reason, Call string }
		}
	}
}

func askedOf(t *testing.T, raw json.RawMessage) asked {
	t.Helper()
	var a asked
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return a
}

func exists(f folder, name string) bool {
	_, err := os.Stat(filepath.Join(f.files, name))
	return err == nil
}

func person(action string, content map[string]any) map[string]any {
	if content == nil {
		return map[string]any{"action": action}
	}
	return map[string]any{"action": action, "content": content}
}

// TestAPersonDecidesThroughTheClient drives real clients of both protocol eras: the
// files prove what was done and what was not.
func TestAPersonDecidesThroughTheClient(t *testing.T) {
	t.Parallel()
	f := newFolderWith(t, nil)
	url := f.serveHTTP(t)
	run := func(t *testing.T, sdk, era string, persons ...map[string]any) (clientReport, asked) {
		t.Helper()
		_ = os.Remove(filepath.Join(f.files, "made.txt"))
		r := runClient(t, clientJob{SDK: sdk, Era: era, HTTP: url, Calls: []clientCall{f.rewritingCall()}, Persons: persons})
		return r, askedOf(t, r.Answers[0].StructuredContent)
	}
	for name, c := range eras {
		t.Run(name, func(t *testing.T) {
			r, a := run(t, c.sdk, c.era, person("decline", nil))
			if a.Error == nil || a.Error.Code != "approval_rejected" || exists(f, "made.txt") || len(r.Asked) != 1 {
				t.Errorf("declined: %+v, asked %q", a, r.Asked)
			}
			r, a = run(t, c.sdk, c.era, person("cancel", nil))
			if a.Error == nil || a.Error.Code != "approval_rejected" || exists(f, "made.txt") || len(r.Asked) != 1 {
				t.Errorf("dismissed: %+v, asked %q", a, r.Asked)
			}
			r, a = run(t, c.sdk, c.era, person("accept", map[string]any{"decision": "reject", "reason": "not this file"}))
			if a.Error == nil || !strings.Contains(a.Error.Message, "not this file") || exists(f, "made.txt") {
				t.Errorf("rejected: %+v, asked %q", a, r.Asked)
			}
			r, a = run(t, c.sdk, c.era, person("accept", map[string]any{"decision": "approve"}))
			if a.Status != "success" || string(a.Result) != `"alpha"` || !exists(f, "made.txt") {
				t.Errorf("approved: %+v, asked %q", a, r.Asked)
			}
			if len(r.Asked) != 1 || !strings.Contains(r.Asked[0], "filesystem:write_file") || !strings.Contains(r.Asked[0], "memory:delete_entities") || strings.Contains(r.Asked[0], "read_text_file") {
				t.Errorf("asked %q", r.Asked)
			}
		})
	}
	t.Run("always", func(t *testing.T) {
		r, a := run(t, "v2", "modern", person("accept", map[string]any{"decision": "approve", "always_1": true}))
		if a.Status != "success" || len(r.Asked) != 1 {
			t.Fatalf("approved: %+v, asked %q", a, r.Asked)
		}
		r, a = run(t, "v1", "legacy", person("accept", map[string]any{"decision": "approve"}))
		if a.Status != "success" || len(r.Asked) != 1 || strings.Contains(r.Asked[0], "write_file") || !strings.Contains(r.Asked[0], "delete_entities") {
			t.Errorf("after always: %+v, asked %q", a, r.Asked)
		}
		rules, err := f.pml(t.Context(), t, "policy")
		if err != nil || !strings.Contains(rules, "filesystem:write_file") || strings.Contains(rules, "delete_entities") {
			t.Errorf("rules %q %v", rules, err)
		}
		if _, err := f.pml(t.Context(), t, "policy", "revoke", "1"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.pml(t.Context(), t, "policy", "deny", "*:delete_*"); err != nil {
			t.Fatal(err)
		}
		r, a = run(t, "v1", "legacy", person("accept", map[string]any{"decision": "approve"}))
		if a.Error == nil || a.Error.Code != "denied" || len(r.Asked) != 0 || exists(f, "made.txt") {
			t.Errorf("denied: %+v, asked %q", a, r.Asked)
		}
	})
}

// TestAPersonDecidesAtTheCommandLine: the agent cannot, and the run goes on without it.
func TestAPersonDecidesAtTheCommandLine(t *testing.T) {
	t.Parallel()
	f := newFolderWith(t, nil)
	l := learner{f, connect(t, f.serveHTTP(t))}
	ask := func(more map[string]any) asked {
		t.Helper()
		r := l.raw(t, more)
		return askedOf(t, r)
	}
	request, _ := f.rewritingCall().Arguments.(map[string]any)
	first := ask(request)
	if first.Status != "approval_required" || first.Approval == nil || len(first.Approval.Requested.Asks) != 2 {
		t.Fatalf("got %+v", first)
	}
	relayed := ask(map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": first.WorkflowID, "decision": "approve"}})
	if relayed.Status != "approval_required" || relayed.Error == nil || relayed.Error.Code != "denied" || exists(f, "made.txt") {
		t.Errorf("the agent approved for the person: %+v", relayed)
	}
	if _, err := f.pml(t.Context(), t, "approve", first.Approval.ID); err != nil {
		t.Fatal(err)
	}
	done := ask(map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": first.WorkflowID}})
	if done.Status != "success" || string(done.Result) != `"alpha"` || !exists(f, "made.txt") {
		t.Errorf("after the approval: %+v", done)
	}
	if _, err := f.pml(t.Context(), t, "reject", first.Approval.ID); err == nil || !strings.Contains(err.Error(), "approved already") {
		t.Errorf("a second answer: %v", err)
	}
	second := ask(request)
	if _, err := f.pml(t.Context(), t, "reject", second.WorkflowID, "too risky"); err != nil {
		t.Fatal(err)
	}
	rejected := ask(map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": second.WorkflowID}})
	if rejected.Error == nil || rejected.Error.Code != "approval_rejected" || !strings.Contains(rejected.Error.Message, "too risky") {
		t.Errorf("after the rejection: %+v", rejected)
	}
}

// hidden calls a tool whose name it computes, between two that write.
const hidden = `
const note = (name: string) => mcp.memory.create_entities({ entities: [{ name, entityType: "note", observations: [] }] });
await note("before-" + Math.floor(Math.random() * 1e9));
const started = Date.now();
await mcp.memory["delete" + "_entities"]({ entityNames: ["nobody"] });
await note("after-" + Math.floor(Math.random() * 1e9));
await note("last");
return started;`

// TestASuspendedRunSurvivesItsGateway: a run that waits at a call it computes is left
// by its gateway, and completes at the next one when it was approved.
func TestASuspendedRunSurvivesItsGateway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold int
		end  func(gateway, *testing.T)
	}{
		"held and killed": {60_000, gateway.kill}, "suspended and killed": {0, gateway.kill}, "held and stopped": {60_000, gateway.terminate},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolderWith(t, map[string]any{
				"permissions": map[string]any{"allow": []string{"memory:create_entities"}}, "approvals": map[string]any{"hold_ms": c.hold},
			})
			g := f.start(t)
			l := learner{f, connect(t, g.url)}
			first := askedOf(t, l.raw(t, map[string]any{"intent": "hidden", "implementation": map[string]any{"type": "code", "code": hidden}}))
			if first.Status != "approval_required" || first.Approval == nil || first.Approval.Requested.Asks[0].Tool != "memory:delete_entities" {
				t.Fatalf("got %+v", first)
			}
			c.end(g, t)
			again := f.start(t)
			again.stopLater(t)
			if _, err := f.pml(t.Context(), t, "approve", first.WorkflowID); err != nil {
				t.Fatal(err)
			}
			l.session = connect(t, again.url)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := askedOf(t, l.rawContext(ctx, t, map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": first.WorkflowID}}))
			if done.Status != "success" {
				t.Fatalf("got %+v: %+v", done, done.Error)
			}
			b, err := os.ReadFile(filepath.Join(f.root, "memory.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{`"before-`, `"after-`, `"last"`} {
				if n := strings.Count(string(b), word); n != 1 {
					t.Errorf("%s is there %d times:\n%s", word, n, b)
				}
			}
		})
	}
}

// kill ends the gateway as a crash does.
func (g gateway) kill(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.cmd.Wait() // says that it was killed
}

// stopLater ends the gateway with the test.
func (g gateway) stopLater(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		_ = g.cmd.Process.Signal(os.Interrupt)
		_ = g.cmd.Wait()
	})
}

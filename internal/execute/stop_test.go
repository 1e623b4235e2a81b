package execute

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// twoWrites is a program that reads and writes twice. An error of a call ends it.
func twoWrites(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
	for i, c := range []struct{ name, args string }{{"read", `{}`}, {"write", `{"path":"a"}`}, {"write", `{"path":"b"}`}} {
		if _, err := callAt(ctx, host, string(rune('a'+i)), c.name, c.args); err != nil {
			return nil, err
		}
	}
	return json.RawMessage(`1`), nil
}

// execute runs a request in the background.
func (b *bundle) execute(ctx context.Context, req Request) <-chan *Answer {
	answer := make(chan *Answer, 1)
	go func() { answer <- b.engine.Execute(ctx, req) }()
	return answer
}

// checkLeft: the run goes on elsewhere, and its client knows where to find it.
func checkLeft(t *testing.T, a *Answer) {
	t.Helper()
	if a.Status != StatusRunning || a.Error != nil || a.WorkflowID == "" || !strings.Contains(a.Next, a.WorkflowID) || !strings.Contains(a.Next, "do not send it again") {
		t.Errorf("answered %+v", a)
	}
}

func TestADrainLetsCallsEndAndKeepsNewOnesBack(t *testing.T) {
	sent, goOn := make(chan struct{}), make(chan struct{})
	b := setup(t, twoWrites)
	b.upstream.call = func(_ context.Context, id tool.ID) (json.RawMessage, error) {
		if id == "fs:write" {
			close(sent) // a second time it would panic
			<-goOn
		}
		return json.RawMessage(`{"content":[]}`), nil
	}
	answer := b.execute(t.Context(), request(nil))
	<-sent
	drained := make(chan struct{})
	go func() { b.engine.Drain(t.Context()); close(drained) }()
	<-b.engine.stopping
	close(goOn)
	<-drained // no time has to pass: the run waits for nothing but its next call
	checkLeft(t, <-answer)
	want := []string{
		"begin", "call fs:read", "journal fs:read ok", "journal fs:write started", "call fs:write", "journal fs:write ok", "release",
	}
	if diff := cmp.Diff(want, b.events.all()); diff != "" {
		t.Error(diff)
	}
	if a := b.engine.Execute(t.Context(), request(nil)); a.Error == nil || a.Error.Code != fault.Unavailable {
		t.Errorf("a stopped engine answered %+v", a)
	}
}

// TestACallThatIsCutOffHasNoEnd: whether it took effect nobody knows, and what was
// read before is kept.
func TestACallThatIsCutOffHasNoEnd(t *testing.T) {
	sent := make(chan struct{})
	b := setup(t, twoWrites)
	b.upstream.call = func(ctx context.Context, id tool.ID) (json.RawMessage, error) {
		if id == "fs:write" {
			close(sent)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return json.RawMessage(`{"content":[]}`), nil
	}
	answer := b.execute(t.Context(), request(nil))
	<-sent
	b.engine.Stop()
	checkLeft(t, <-answer)
	want := []string{"begin", "call fs:read", "journal fs:read ok", "journal fs:write started", "call fs:write", "release"}
	if diff := cmp.Diff(want, b.events.all()); diff != "" {
		t.Error(diff)
	}
}

// TestAnEndThatCameWithTheStopIsKept: the tool has answered, the run was cut off, and
// only then is the reply sealed.
func TestAnEndThatCameWithTheStopIsKept(t *testing.T) {
	called := make(chan struct{})
	b := setup(t, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		reply, err := host.Call(ctx, sandbox.Call{Server: "fs", Tool: "write", Args: json.RawMessage(`{}`), NodeID: "a", Occurrence: 1})
		close(called)
		<-ctx.Done()
		_, sealErr := reply.Seal()
		return nil, errors.Join(context.Cause(ctx), err, sealErr)
	})
	answer := b.execute(t.Context(), request(nil))
	<-called
	b.engine.Stop()
	checkLeft(t, <-answer)
	want := []string{"begin", "journal fs:write started", "call fs:write", "journal fs:write ok", "release"}
	if diff := cmp.Diff(want, b.events.all()); diff != "" {
		t.Error(diff)
	}
}

func TestARunThatEndsDuringTheDrainIsRecorded(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	b := setup(t, func(context.Context, sandbox.Host) (json.RawMessage, error) {
		close(started)
		<-goOn
		return json.RawMessage(`1`), nil
	})
	answer := b.execute(t.Context(), request(nil))
	<-started
	go func() { <-b.engine.stopping; close(goOn) }()
	b.engine.Drain(t.Context())
	if a := <-answer; a.Status != StatusSuccess || b.store.finished[0].Run.Status != trace.Succeeded {
		t.Errorf("got %+v", a)
	}
}

// TestACommandsRunIsCancelledWithIt: the gateway of a single command stops because the
// command was given up; the run's cancellation may come after the stop has begun.
func TestACommandsRunIsCancelledWithIt(t *testing.T) {
	ctx, giveUp := context.WithCancel(t.Context())
	sent := make(chan struct{})
	b := setupWith(t, Config{Brief: true}, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		g, _ := host.(*gate)
		context.AfterFunc(ctx, giveUp) // left already: too late
		go func() { <-g.rest; giveUp() }()
		return twoWrites(ctx, host)
	})
	b.upstream.call = func(_ context.Context, id tool.ID) (json.RawMessage, error) {
		if id == "fs:write" {
			close(sent)
			<-b.engine.stopping
		}
		return json.RawMessage(`{"content":[]}`), nil
	}
	answer := b.execute(ctx, request(nil))
	<-sent
	b.engine.Drain(t.Context())
	if a := <-answer; a.Error == nil || a.Error.Code != fault.Cancelled || b.store.finished[0].Run.Status != trace.CancelledRun {
		t.Errorf("got %+v", a)
	}
}

func TestALostConnectionCancelsNothing(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	b := setup(t, func(context.Context, sandbox.Host) (json.RawMessage, error) {
		close(started)
		<-goOn
		return json.RawMessage(`1`), nil
	})
	ctx, lose := context.WithCancelCause(t.Context())
	answer := b.execute(ctx, request(nil))
	<-started
	lose(io.EOF)
	if a := <-answer; a.Status != StatusRunning {
		t.Errorf("got %+v", a)
	}
	go func() { <-b.engine.stopping; close(goOn) }()
	b.engine.Drain(t.Context())
	if got := b.store.finished[0].Run.Status; got != trace.Succeeded {
		t.Errorf("the run is %s", got)
	}
}

func (*fakeStore) ObservedSchemas(context.Context) (map[tool.ID]tool.Observed, error) {
	return map[tool.ID]tool.Observed{}, nil
}

// TestADryRunEndsWithItsGateway: it has no row that another could take up.
func TestADryRunEndsWithItsGateway(t *testing.T) {
	started := make(chan struct{})
	b := setup(t, func(ctx context.Context, _ sandbox.Host) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	answer := b.execute(t.Context(), request(func(r *Request) { r.Options.DryRun.On = true }))
	<-started
	b.engine.Drain(t.Context())
	if a := <-answer; a.Error == nil || a.Error.Code != fault.Interrupted {
		t.Errorf("got %+v", a)
	}
}

package execute

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// events is the order in which the fakes were reached.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(s string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, s)
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// fakeStore notes what is written; a func field replaces a method's answer. Of what
// it does not have no test may ask.
type fakeStore struct {
	OpenRuns
	ApprovalStore
	Recorded
	*events
	begin  func() error
	record func([]trace.Call) error
	finish func() error

	mu       sync.Mutex
	finished []trace.Trace
}

func (s *fakeStore) BeginRun(context.Context, trace.Run) error {
	s.add("begin")
	if s.begin != nil {
		return s.begin()
	}
	return nil
}

func (s *fakeStore) RecordCalls(_ context.Context, _ uuid.UUID, calls []trace.Call) error {
	for _, c := range calls {
		s.add("journal " + string(c.Tool) + " " + string(c.Status))
	}
	if s.record != nil {
		return s.record(calls)
	}
	return nil
}

func (s *fakeStore) Finish(_ context.Context, finished []Finished) (Learnt, error) {
	s.add("finish " + string(finished[0].Trace.Run.Status))
	if s.finish != nil {
		if err := s.finish(); err != nil {
			return Learnt{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range finished {
		s.finished = append(s.finished, f.Trace)
	}
	return Learnt{State: capability.Active, Saved: true}, nil
}

func (*fakeStore) UpsertCandidate(_ context.Context, c capability.Capability) (capability.Capability, bool, error) {
	c.ID, c.Version = uuid.New(), 1
	return c, true, nil
}

func (*fakeStore) Capability(_ context.Context, name string) (capability.Capability, error) {
	return capability.Capability{}, fault.New(fault.UnknownCapability, "there is no capability %q", name)
}

func (s *fakeStore) CapabilityAt(ctx context.Context, name string, _ int) (capability.Capability, error) {
	return s.Capability(ctx, name)
}

func (*fakeStore) AddDependency(context.Context, uuid.UUID, uuid.UUID, capability.EdgeType) error {
	return nil
}

func (*fakeStore) LostRuns(context.Context, time.Time, string) ([]uuid.UUID, error) {
	return nil, nil
}

func (s *fakeStore) ReleaseRun(context.Context, uuid.UUID, string) error {
	s.add("release")
	return nil
}

func (*fakeStore) ExpireApprovals(context.Context, time.Time) ([]policy.Approval, error) {
	return nil, nil
}

func (*fakeStore) Trace(context.Context, uuid.UUID) (trace.Trace, error) {
	return trace.Trace{}, nil
}

func (*fakeStore) RunResult(context.Context, uuid.UUID) (json.RawMessage, time.Time, error) {
	return nil, time.Time{}, nil
}

func (*fakeStore) ExtendLeases(context.Context, string, time.Time) error { return nil }

// fakeUpstream has a reading and a writing tool.
type fakeUpstream struct {
	*events
	call func(ctx context.Context, id tool.ID) (json.RawMessage, error)
}

func (*fakeUpstream) Catalog() *tool.Catalog {
	yes := true
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)
	return tool.NewCatalog(map[string][]tool.Tool{"fs": {
		{ID: "fs:read", InputSchema: schema, Annotations: tool.Annotations{ReadOnly: &yes}},
		{ID: "fs:write", InputSchema: schema},
	}})
}

func (u *fakeUpstream) Resolve(_ context.Context, server, name string) (tool.Tool, error) {
	return u.Catalog().Resolve(server, name)
}

func (u *fakeUpstream) Call(ctx context.Context, id tool.ID, _ json.RawMessage, _ func(float64, float64, string)) (json.RawMessage, error) {
	u.add("call " + string(id))
	if u.call != nil {
		return u.call(ctx, id)
	}
	return json.RawMessage(`{"content":[{"type":"text","text":"hi"}]}`), nil
}

// fakeSandbox plays the program.
type fakeSandbox func(ctx context.Context, host sandbox.Host) (json.RawMessage, error)

func (f fakeSandbox) Run(ctx context.Context, _ sandbox.Program, host sandbox.Host) (sandbox.Outcome, error) {
	v, err := f(ctx, host)
	return sandbox.Outcome{Result: v, Level: "fake"}, err
}

func (fakeSandbox) Level() string { return "fake" }

type bundle struct {
	engine   *Engine
	store    *fakeStore
	upstream *fakeUpstream
	events   *events
}

func setup(t *testing.T, program fakeSandbox) *bundle {
	t.Helper()
	return setupWith(t, Config{}, program)
}

func setupWith(t *testing.T, c Config, program fakeSandbox) *bundle {
	t.Helper()
	ev := &events{}
	b := &bundle{events: ev, store: &fakeStore{events: ev}, upstream: &fakeUpstream{events: ev}}
	b.engine = New(b.store, b.upstream, program, c)
	if err := b.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Stop)
	return b
}

func request(edit func(*Request)) Request {
	r := Request{Intent: "test", Implementation: &Implementation{Type: "code", Code: "return 1"}}
	if edit != nil {
		edit(&r)
	}
	return r
}

func call(ctx context.Context, host sandbox.Host, name, args string) (json.RawMessage, error) {
	return callAt(ctx, host, "?fs:"+name, name, args)
}

// callAt makes a call as the sandbox does: the reply is sealed when it is given.
func callAt(ctx context.Context, host sandbox.Host, node, name, args string) (json.RawMessage, error) {
	reply, err := host.Call(ctx, sandbox.Call{Server: "fs", Tool: name, Args: json.RawMessage(args), NodeID: node, Occurrence: 1})
	if reply.Seal != nil {
		if _, sealErr := reply.Seal(); sealErr != nil {
			return nil, sealErr
		}
	}
	return reply.Value, err
}

func TestJournalIsWrittenBeforeASideEffectAndTraceBeforeTheAnswer(t *testing.T) {
	b := setup(t, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		_, err1 := call(ctx, host, "read", `{}`)
		_, err2 := call(ctx, host, "write", `{"path":"a"}`)
		_, err3 := call(ctx, host, "write", `{"path":"b"}`)
		return json.RawMessage(`"done"`), errors.Join(err1, err2, err3)
	})
	a := b.engine.Execute(t.Context(), request(nil))
	if a.Status != StatusSuccess || string(a.Result) != `"done"` {
		t.Fatalf("got %+v", a)
	}
	want := []string{
		"begin", "call fs:read",
		"journal fs:read ok", "journal fs:write started", "call fs:write",
		"journal fs:write ok", "journal fs:write started", "call fs:write",
		"journal fs:write ok", "finish succeeded",
	}
	if diff := cmp.Diff(want, b.events.all()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fs:read", "fs:write", "fs:write"}, called(a)); diff != "" {
		t.Error(diff)
	}
}

func called(a *Answer) []string {
	var tools []string
	for _, c := range a.Trace.ToolsCalled {
		tools = append(tools, c.Tool)
	}
	return tools
}

func TestACallWhoseJournalEntryFailsIsNotMade(t *testing.T) {
	b := setup(t, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		return call(ctx, host, "write", `{}`)
	})
	b.store.record = func([]trace.Call) error { return fault.New(fault.StorageUnavailable, "down") }
	a := b.engine.Execute(t.Context(), request(nil))
	if a.Error == nil || a.Error.Code != fault.StorageUnavailable {
		t.Errorf("got %+v", a.Error)
	}
	if slices.Contains(b.events.all(), "call fs:write") {
		t.Error("the tool was called")
	}
}

func TestRefusedCallsAreRecordedAndNeverReachTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		tool, args string
		code       fault.Code
	}{
		"unknown tool":  {"raed", `{}`, fault.UnknownTool},
		"bad arguments": {"read", `{"path": 5}`, fault.InvalidToolArguments},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
				_, err := call(ctx, host, c.tool, c.args)
				return json.RawMessage(`"caught"`), checkCode(err, c.code)
			})
			a := b.engine.Execute(t.Context(), request(nil))
			if a.Status != StatusSuccess || len(a.ToolFailures) != 1 || a.ToolFailures[0].Tool != "fs:"+c.tool {
				t.Errorf("got %+v", a)
			}
			for _, e := range b.events.all() {
				if strings.HasPrefix(e, "call ") {
					t.Errorf("reached the server: %s", e)
				}
			}
		})
	}
}

// checkCode is nil when err carries the code.
func checkCode(err error, code fault.Code) error {
	if fault.CodeOf(err) == code {
		return nil
	}
	return errors.Join(errors.New("expected "+string(code)), err)
}

func TestWaitIsOverBeforeTheRun(t *testing.T) {
	called, goOn := make(chan struct{}), make(chan struct{})
	b := setup(t, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		_, err := call(ctx, host, "read", `{}`)
		close(called)
		<-goOn
		return json.RawMessage(`1`), err
	})
	none := 0
	a := b.engine.Execute(t.Context(), request(func(r *Request) { r.Options.WaitMS = &none }))
	if a.Status != StatusRunning || a.WorkflowID == "" || a.Next == "" {
		t.Fatalf("got %+v", a)
	}
	id := uuid.MustParse(a.WorkflowID)
	if _, _, ok := b.engine.Active(id); !ok {
		t.Error("the run is not listed as active")
	}
	<-called
	close(goOn)
	b.engine.Drain(t.Context())
	if got := b.store.finished[0].Run; got.Status != trace.Succeeded || got.ID != id {
		t.Errorf("got %+v", got)
	}
}

func TestTheClientGivesUp(t *testing.T) {
	started := make(chan struct{})
	b := setup(t, func(ctx context.Context, _ sandbox.Host) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	a := b.engine.Execute(ctx, request(nil))
	if a.Error == nil || a.Error.Code != fault.Cancelled || b.store.finished[0].Run.Status != trace.CancelledRun {
		t.Errorf("got %+v", a)
	}
}

func TestAPanicOfOursIsAnAnswer(t *testing.T) {
	b := setup(t, func(context.Context, sandbox.Host) (json.RawMessage, error) { panic("bug") })
	a := b.engine.Execute(t.Context(), request(nil))
	if a.Error == nil || a.Error.Code != fault.Internal || a.Error.ID != a.WorkflowID {
		t.Errorf("got %+v", a.Error)
	}
}

func TestLargeResultsBecomeAHandle(t *testing.T) {
	big := `"` + strings.Repeat("é", maxResult) + `"`
	b := setup(t, func(context.Context, sandbox.Host) (json.RawMessage, error) { return json.RawMessage(big), nil })
	a := b.engine.Execute(t.Context(), request(nil))
	if a.Result != nil || a.ResultChars != maxResult+2 || !strings.Contains(a.Next, "pml_get_task_result") {
		t.Errorf("got %d characters, next %q", a.ResultChars, a.Next)
	}
}

func TestBadRequests(t *testing.T) {
	b := setup(t, func(context.Context, sandbox.Host) (json.RawMessage, error) { return nil, nil })
	minus := -1
	for name, edit := range map[string]func(*Request){
		"no intent":          func(r *Request) { r.Intent = "" },
		"endless intent":     func(r *Request) { r.Intent = strings.Repeat("x", maxIntent+1) },
		"no implementation":  func(r *Request) { r.Implementation = nil },
		"unknown type":       func(r *Request) { r.Implementation.Type = "perl" },
		"unnamed capability": func(r *Request) { r.Implementation = &Implementation{Type: "capability"} },
		"no code":            func(r *Request) { r.Implementation.Code = "" },
		"endless code":       func(r *Request) { r.Implementation.Code = strings.Repeat(" ", MaxCode+1) },
		"args no object":     func(r *Request) { r.Args = json.RawMessage(`[1]`) },
		"negative timeout":   func(r *Request) { r.Options.TimeoutMS = -1 },
		"endless timeout":    func(r *Request) { r.Options.TimeoutMS = 1 << 30 },
		"negative wait":      func(r *Request) { r.Options.WaitMS = &minus },
	} {
		t.Run(name, func(t *testing.T) {
			a := b.engine.Execute(t.Context(), request(edit))
			if a.Error == nil || a.Error.Code != fault.InvalidInput || a.WorkflowID != "" {
				t.Errorf("got %+v", a)
			}
		})
	}
	if got := b.events.all(); len(got) != 0 {
		t.Errorf("a refused request left %v", got)
	}
}

func TestWhatCannotRunIsSaidBeforeAnythingHappens(t *testing.T) {
	b := setup(t, func(context.Context, sandbox.Host) (json.RawMessage, error) { return nil, nil })
	for name, c := range map[string]struct {
		code, source string
		want         fault.Code
		line         int
	}{
		"syntax error":       {"const a = 1;\nconst b = ;", "const b = ;", fault.SyntaxError, 2},
		"unknown tool":       {"if (args.never) {\n  await mcp.fs.raed({});\n}", "  await mcp.fs.raed({});", fault.UnknownTool, 2},
		"unknown server":     {"await mcp.files.read({})", "await mcp.files.read({})", fault.UnknownTool, 1},
		"unknown capability": {"await capabilities.tidy_up({})", "await capabilities.tidy_up({})", fault.UnknownCapability, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := b.engine.Execute(t.Context(), request(func(r *Request) { r.Implementation.Code = c.code }))
			if a.Error == nil || a.Error.Code != c.want || a.Error.Line != c.line || a.Error.Source != c.source || a.WorkflowID != "" {
				t.Errorf("got %+v", a.Error)
			}
		})
	}
	if got := b.events.all(); len(got) != 0 {
		t.Errorf("a refused request left %v", got)
	}
}

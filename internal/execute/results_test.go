package execute

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/trace"
)

// browse is a Results over the fake, with an engine that runs nothing.
func browse(t *testing.T, f *fakeResults) *Results {
	t.Helper()
	return NewResults(setup(t, nil).engine, f)
}

func ok(node string, occurrence int, result string) trace.Call {
	return trace.Call{NodeID: node, Occurrence: occurrence, Tool: "fs:read", Status: trace.CallOK, Result: json.RawMessage(result)}
}

func TestResultsAreAddressed(t *testing.T) {
	f := newResults(uuid.New())
	f.run.Result = json.RawMessage(` {"of": "the run"}`)
	f.expires = time.Now().Add(time.Hour)
	f.add(ok("n2", 1, `"first"`))
	f.add(ok("n2", 2, `"second"`))
	f.add(ok("t-1", 1, `[1]`))
	f.add(ok("?fs:@odd", 1, `2`))
	r := browse(t, f)
	for task, want := range map[string]string{
		"": `{"of": "the run"}`, "n2": "first", "n2@1": "first", "n2@2": "second", "t-1": "[1]", "?fs:@odd": "2", "?fs:@odd@1": "2",
	} {
		a := r.Get(t.Context(), ResultRequest{WorkflowID: f.id.String(), TaskID: task})
		if a.Error != nil || a.Content != want || a.ExpiresAt == nil || a.TotalChars != len(want) || a.NextOffset != 0 {
			t.Errorf("%q: %+v", task, a)
		}
	}
}

func TestWhatCannotBeReadIsExplained(t *testing.T) {
	f := newResults(uuid.New())
	f.run.Result = json.RawMessage(`[]`)
	f.add(ok("n2", 1, `"first"`))
	f.add(ok("n2", 2, `"second"`))
	f.add(ok("n3", 1, `{"a": 1}`))
	child := uuid.New()
	f.inner["n9"] = child
	r := browse(t, f)
	id := f.id.String()
	for name, c := range map[string]struct {
		req  ResultRequest
		code fault.Code
		want string
	}{
		"no id":             {ResultRequest{WorkflowID: "n2"}, fault.InvalidInput, "is not an id"},
		"unknown run":       {ResultRequest{WorkflowID: child.String()}, fault.NotFound, "there is no run"},
		"task of that":      {ResultRequest{WorkflowID: child.String(), TaskID: "n7"}, fault.NotFound, ""},
		"unknown task":      {ResultRequest{WorkflowID: id, TaskID: "n7"}, fault.NotFound, "its tasks: n2 (fs:read), n3 (fs:read)"},
		"unknown time":      {ResultRequest{WorkflowID: id, TaskID: "n2@3"}, fault.NotFound, "n2 was called 2 times"},
		"of a child":        {ResultRequest{WorkflowID: id, TaskID: "n9"}, fault.NotFound, child.String()},
		"no occurrence":     {ResultRequest{WorkflowID: id, TaskID: "n2@x"}, fault.InvalidInput, `"x" is no occurrence`},
		"occurrence zero":   {ResultRequest{WorkflowID: id, TaskID: "n2@0"}, fault.InvalidInput, `"0" is no occurrence`},
		"wrong path":        {ResultRequest{WorkflowID: id, TaskID: "n3", Path: "b"}, fault.NotFound, "its keys are a"},
		"malformed path":    {ResultRequest{WorkflowID: id, TaskID: "n3", Path: "["}, fault.InvalidInput, "not closed"},
		"malformed pattern": {ResultRequest{WorkflowID: id, Grep: "("}, fault.InvalidInput, "missing closing"},
		"grep and shape":    {ResultRequest{WorkflowID: id, Grep: "a", Format: "shape"}, fault.InvalidInput, "at once"},
		"unknown format":    {ResultRequest{WorkflowID: id, Format: "xml"}, fault.InvalidInput, `"xml"`},
		"negative offset":   {ResultRequest{WorkflowID: id, Offset: -1}, fault.InvalidInput, "offset is -1"},
		"large limit":       {ResultRequest{WorkflowID: id, Limit: maxPage + 1}, fault.InvalidInput, "limit is"},
		"offset behind":     {ResultRequest{WorkflowID: id, Offset: 3}, fault.InvalidInput, "there are 2 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.Get(t.Context(), c.req)
			if a.Status != StatusFailed || a.Error == nil || a.Error.Code != c.code || !strings.Contains(a.Error.Message+a.Error.Hint, c.want) {
				t.Errorf("got %+v", a.Error)
			}
			if n := len(mustJSON(a)); n > 2000 {
				t.Errorf("the answer has %d bytes", n)
			}
		})
	}
}

func TestAnExpiredResultIsNotGivenOutThoughItWasRead(t *testing.T) {
	f := newResults(uuid.New())
	f.run.Result = json.RawMessage(`[1]`)
	r := browse(t, f)
	req := ResultRequest{WorkflowID: f.id.String()}
	if a := r.Get(t.Context(), req); a.Content != "[1]" {
		t.Fatalf("got %+v", a)
	}
	f.gone = true
	if a := r.Get(t.Context(), req); a.Error == nil || a.Error.Code != fault.Expired || a.Content != "" {
		t.Errorf("got %+v", a)
	}
}

func TestPagesOfOneResultReadItOnce(t *testing.T) {
	f := newResults(uuid.New())
	f.add(ok("n1", 1, large(64<<10)))
	r := browse(t, f)
	req := ResultRequest{WorkflowID: f.id.String(), TaskID: "n1", Limit: 1500}
	var whole strings.Builder
	for {
		a := r.Get(t.Context(), req)
		whole.WriteString(a.Content)
		if req.Offset = a.NextOffset; a.NextOffset == 0 {
			break
		}
	}
	for _, more := range []ResultRequest{{Path: "items[0]"}, {Grep: "x"}, {Format: "shape"}, {Format: "pretty"}} {
		more.WorkflowID, more.TaskID = req.WorkflowID, req.TaskID
		if a := r.Get(t.Context(), more); a.Error != nil {
			t.Error(a.Error)
		}
	}
	if whole.String() != string(f.calls["n1"].Result) || f.reads != 1 {
		t.Errorf("%d bytes in %d reads", whole.Len(), f.reads)
	}
}

func TestCacheForgetsWhatWasNotUsedForLongest(t *testing.T) {
	var c viewCache
	key := func(task string) viewKey { return viewKey{task: task} }
	quarter := strings.Repeat("x", maxViewBytes/4)
	for _, task := range []string{"a", "b", "c", "d", "d"} {
		c.put(keptView{key: key(task), json: quarter})
	}
	c.get(key("a"))
	c.put(keptView{key: key("e"), json: quarter})
	c.put(keptView{key: key("f"), json: strings.Repeat("x", maxViewBytes+1)})
	for task, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true, "e": true, "f": false} {
		if _, ok := c.get(key(task)); ok != want {
			t.Errorf("%s is kept: %v", task, ok)
		}
	}
	if c.bytes != 4*len(quarter) {
		t.Errorf("counted %d bytes", c.bytes)
	}
	for i := range 2 * maxViews {
		c.put(keptView{key: key(taskID("n", i))})
	}
	if len(c.kept) > maxViews {
		t.Errorf("%d are kept", len(c.kept))
	}
}

func TestAPayloadIsReadByItsReference(t *testing.T) {
	f := newResults(uuid.New())
	f.run.Result = json.RawMessage(`{"data_ref":"blob:0"}`)
	image := `{"type":"image","mimeType":"image/png","data_ref":"blob:0","bytes":6}`
	f.add(ok("n1", 1, `["a picture",`+image+`]`))
	f.add(ok("n1", 2, image))
	f.add(ok("n1/blob:0", 1, `"iVBORw0K"`))
	f.add(ok("n3", 1, `{"data_ref":"a word"}`))
	r := browse(t, f)
	for name, c := range map[string]struct {
		task, path, want string
		code             fault.Code
	}{
		"kept":           {"n1", "[1].data_ref", "VBORw", ""},
		"its place":      {"n1", "[1]", image[1:6], ""},
		"not kept":       {"n1@2", "data_ref", "", fault.NotFound},
		"of the run":     {"", "data_ref", "", fault.NotFound},
		"something else": {"n3", "data_ref", " word", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.Get(t.Context(), ResultRequest{WorkflowID: f.id.String(), TaskID: c.task, Path: c.path, Offset: 1, Limit: 5})
			if a.Content != c.want || c.code == "" && a.Error != nil || c.code != "" && (a.Error == nil || a.Error.Code != c.code) {
				t.Errorf("got %s", mustJSON(a))
			}
		})
	}
}

func TestAFailedCallIsReadLikeAResult(t *testing.T) {
	f := newResults(uuid.New())
	c := trace.Call{NodeID: "n1", Occurrence: 1, Tool: "fs:write", Status: trace.CallError, Error: fault.New(fault.ToolFailed, "%s", strings.Repeat("no\n", 2000))}
	c.Error.Detail = &fault.Detail{Content: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)}
	f.add(c)
	short := c
	short.NodeID, short.Error = "n2", fault.New(fault.ToolFailed, "disk full")
	f.add(short)
	r := browse(t, f)
	a := r.Get(t.Context(), ResultRequest{WorkflowID: f.id.String(), TaskID: "n1", Offset: 3, Limit: 5})
	if a.Status != "error" || a.Content != "no\nno" || a.TotalChars != 6000 || a.NextOffset != 8 || a.Error.Code != fault.ToolFailed || len(mustJSON(a)) > 1500 {
		t.Errorf("got %+v", a)
	}
	if a := r.Get(t.Context(), ResultRequest{WorkflowID: f.id.String(), TaskID: "n2"}); a.Error == nil || a.Error.Message != "disk full" || a.Content != "" {
		t.Errorf("got %+v", a)
	}
}

func TestEverythingBesideTheContentIsSmall(t *testing.T) {
	long := strings.Repeat("😀\"", 5000)
	f := newResults(uuid.New())
	f.run.Status = trace.Failed
	f.run.Error = &fault.Error{
		Code: fault.RuntimeError, Message: strings.Repeat("m", 9000), Hint: strings.Repeat("h", 9000), NodeID: strings.Repeat("n", 900),
		Tool: strings.Repeat("t", 900), Source: strings.Repeat("s", 9000), Stack: strings.Repeat("k", 9000), Line: 1, Column: 1, ID: f.id.String(),
	}
	for range 30 {
		f.add(ok("?fs:"+strings.Repeat("x", 120)+uuid.NewString(), 1, `1`))
	}
	r := browse(t, f)
	for name, req := range map[string]ResultRequest{
		"failed run": {WorkflowID: f.id.String()}, "long id": {WorkflowID: strings.Repeat("w", 5000)},
		"unknown task": {WorkflowID: f.id.String(), TaskID: strings.Repeat("z", 5000)},
		"long path":    {WorkflowID: f.id.String(), TaskID: f.order[0], Path: strings.Repeat("p", 1000)},
		"long pattern": {WorkflowID: f.id.String(), TaskID: f.order[0], Grep: "(" + long[:900]},
		"long format":  {WorkflowID: f.id.String(), Format: strings.Repeat("f", 5000)},
	} {
		a := r.Get(t.Context(), req)
		if n := len(mustJSON(a)); n > 2000 || a.Error == nil {
			t.Errorf("%s: %d bytes: %s", name, n, mustJSON(a))
		}
	}
}

func TestARunInProgressShowsItsLatestCallsAndTheirResults(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	b := setup(t, func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		for range 50 {
			if _, err := call(ctx, host, "read", `{}`); err != nil {
				return nil, err
			}
		}
		close(started)
		<-finish
		return json.RawMessage(`1`), nil
	})
	wait := 0
	a := b.engine.Execute(t.Context(), request(func(r *Request) { r.Options.WaitMS = &wait }))
	<-started
	defer close(finish)
	f := newResults(uuid.MustParse(a.WorkflowID))
	r := NewResults(b.engine, f)
	state := r.Get(t.Context(), ResultRequest{WorkflowID: a.WorkflowID})
	if state.Status != "running" || len(state.Trace.ToolsCalled) != maxRecent || state.Trace.CallsOmitted != 50-maxRecent || len(mustJSON(state)) > 2000 {
		t.Errorf("got %s", mustJSON(state))
	}
	// The call is not in the journal yet.
	got := r.Get(t.Context(), ResultRequest{WorkflowID: a.WorkflowID, TaskID: "?fs:read"})
	if got.Content != "hi" || got.Status != "ok" {
		t.Errorf("got %s", mustJSON(got))
	}
	got = r.Get(t.Context(), ResultRequest{WorkflowID: a.WorkflowID, TaskID: "n5"})
	if got.Error == nil || !strings.Contains(got.Error.Hint, "?fs:read") {
		t.Errorf("got %s", mustJSON(got))
	}
}

// BenchmarkGet reads pages of a large result as a client does, from the first on.
func BenchmarkGet(b *testing.B) {
	f := newResults(uuid.New())
	f.run.Result = json.RawMessage(large(benchSize))
	r := NewResults(&Engine{active: map[uuid.UUID]*activeRun{}}, f)
	req := ResultRequest{WorkflowID: f.id.String()}
	for b.Loop() {
		a := r.Get(b.Context(), req)
		if a.Error != nil {
			b.Fatal(a.Error)
		}
		req.Offset = a.NextOffset
	}
	if f.reads > 1 {
		b.Errorf("%d reads", f.reads)
	}
}

package learn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/learn"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// returning is a run with this result.
func returning(t trace.Trace, result string) trace.Trace {
	t.Run.Result = json.RawMessage(result)
	return t
}

// wantOutput compares what is stored of the results of the head.
func (b bundle) wantOutput(t *testing.T, when, schema string, count int64) {
	t.Helper()
	o := b.now(t).Learning.Output
	if got := string(o.Schema()); got != schema || o.Count != count {
		t.Errorf("%s: %s of %d results, want %s of %d", when, got, o.Count, schema, count)
	}
}

// TestResultsTeachTheOutput: a run that succeeded, on a path that is known, shows what
// the program returns; no other run does.
func TestResultsTeachTheOutput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.wantOutput(t, "before the first run", "", 0)
	failed, cached, guessed := b.reads(false, 10), b.reads(true, 1), b.reads(true, 10)
	cached.CacheHit, cached.Calls = "execution", nil
	trace.FoldCalls(guessed.Calls).Put(&guessed)
	for _, tr := range []trace.Trace{failed, cached, guessed} {
		b.finish(t, returning(tr, `"no"`), learn.Options{})
	}
	b.finish(t, b.reads(true, 10), learn.Options{}) // its result is not at hand
	b.wantOutput(t, "after runs that do not teach it", "", 0)
	b.finish(t, returning(b.reads(true, 10), `{"text":"secret","size":4}`), learn.Options{})
	b.wantOutput(t, "after one result", `{"type":"object","properties":{"size":{"type":"integer"},"text":{"type":"string"}},"required":["size","text"]}`, 1)
	b.finish(t, returning(b.creates(true, 10), `{"size":0.5,"a\u0000<b>":[]}`), learn.Options{})
	const both = `{"type":"object","properties":{"a\ufffd\u003cb\u003e":{"type":"array"},"size":{"type":"number"},"text":{"type":"string"}},"required":["size"]}`
	b.wantOutput(t, "after another", strings.ReplaceAll(both, `\ufffd`, "\ufffd"), 2)
}

// TestOutputsOfVersions: each version of a program has the output that it showed.
func TestOutputsOfVersions(t *testing.T) {
	t.Parallel()
	one := setup(t)
	one.finish(t, returning(one.reads(true, 10), `1`), learn.Options{})
	changed := reference("read_or_create")
	changed.HashExact, changed.HashShape = "exact-2", "shape-2"
	c, _, err := one.store.UpsertCandidate(t.Context(), changed)
	if err != nil {
		t.Fatal(err)
	}
	two := bundle{one.store, c}
	two.finish(t, returning(two.reads(true, 10), `"x"`), learn.Options{})
	one.wantOutput(t, "of the new version", `{"type":"string"}`, 1)
	one.finish(t, returning(one.reads(true, 10), `null`), learn.Options{}) // the old program once more
	one.wantOutput(t, "of the new version, after a run of the old one", `{"type":"string"}`, 1)
	if err := one.store.RollbackCapability(t.Context(), "read_or_create", 1); err != nil {
		t.Fatal(err)
	}
	one.wantOutput(t, "of the old version", `{"type":["integer","null"]}`, 2)
}

// TestOutputsOfRunsInParallel: the results of many runs at once, each with a property
// of its own, are all in what is learnt.
func TestOutputsOfRunsInParallel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const runs = 24
	atOnce(t, runs, func(i int) error {
		_, err := b.tryFinish(t.Context(), returning(b.reads(true, 10), fmt.Sprintf(`{"all":1,"own_%d":true}`, i)), learn.Options{})
		return err
	})
	o := b.now(t).Learning.Output
	if o.Count != runs || len(o.Shape.Properties) != runs+1 || strings.Join(o.Shape.Required, " ") != "all" {
		t.Errorf("learnt %+v", o)
	}
}

// TestLargeOutputsAreBounded: a result of megabytes with data as keys leaves no more
// than the shape of a tool's may have.
func TestLargeOutputsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var result strings.Builder
	result.WriteString(`{"rows":[`)
	for i := range 20_000 {
		fmt.Fprintf(&result, `{"id_%d":"%s"},`, i, strings.Repeat("x", 80))
	}
	result.WriteString(`{}]}`)
	b.finish(t, returning(b.reads(true, 10), result.String()), learn.Options{})
	o := b.now(t).Learning.Output
	rows := o.Shape.Properties["rows"].Items
	if rows == nil || len(rows.Properties) == 0 || len(rows.Properties) >= tool.MaxProperties || len(o.Schema()) > 64<<10 || strings.Contains(string(o.Schema()), "xxx") {
		t.Errorf("learnt %s", o.Schema())
	}
}

package execute

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

func TestTheSameRunIsAnsweredFromMemory(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := setupCache(t, func(o *CacheOptions) { o.Registerer = registry })
	first := b.run(t, reads, withPath("a"))
	b.now = b.now.Add(2 * time.Second)
	second := b.run(t, "// the same\n"+reads, withPath("a"))
	b.checkRuns(t, "the same", 1)
	if second.CacheHit != ExecutionLevel || second.CacheAgeMS != 2000 || string(second.Result) != string(first.Result) || second.Status != StatusSuccess {
		t.Errorf("got %+v after %+v", second, first)
	}
	if second.WorkflowID == first.WorkflowID || second.Capability == nil || len(second.Trace.ToolsCalled) != 0 {
		t.Errorf("a hit is no run of its own: %+v", second)
	}
	stored := b.bundle.store.finished
	if len(stored) != 2 || stored[1].CacheHit != ExecutionLevel || !stored[1].Success || stored[1].Run.Status != trace.Succeeded || string(stored[1].Run.Result) != string(first.Result) {
		t.Errorf("stored %+v", stored)
	}
	b.run(t, reads, withPath("b"))
	b.checkRuns(t, "another argument", 2)
	b.run(t, `return [await mcp.fs.read({ path: args.path })];`, withPath("a"))
	b.checkRuns(t, "another program", 3)
	b.run(t, reads, func(r *Request) { withPath("a")(r); no(r) })
	b.checkRuns(t, "use_cache false", 4)
	b.now = b.now.Add(defaultCacheTTL)
	clear(b.store.kept)
	b.run(t, reads, withPath("a"))
	b.checkRuns(t, "too old", 5)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		counts[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	if counts["pml_capability_cache_hits_total"] != 1 || counts["pml_capability_cache_misses_total"] != 4 {
		t.Errorf("counted %v", counts)
	}
}

// TestAFreshRunReplacesTheOldResult: who asked for the present gets no older answer later.
func TestAFreshRunReplacesTheOldResult(t *testing.T) {
	b := setupCache(t, nil)
	b.run(t, reads, nil)
	b.upstream.call = func(context.Context, tool.ID) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"new"}]}`), nil
	}
	fresh, later := b.run(t, reads, no), b.run(t, reads, nil)
	if fresh.CacheHit != "" || later.CacheHit == "" || string(later.Result) != string(fresh.Result) {
		t.Errorf("fresh %+v, later %+v", fresh, later)
	}
}

func TestAResultOutlivesTheGateway(t *testing.T) {
	b := setupCache(t, nil)
	first := b.run(t, reads, nil)
	again := setupCache(t, nil)
	again.store.kept, again.store.clock = b.store.kept, b.store.clock+6
	second := again.run(t, reads, nil)
	again.checkRuns(t, "after a restart", 0)
	if second.CacheHit != CapabilityLevel || second.CacheAgeMS != 7000 || string(second.Result) != string(first.Result) {
		t.Errorf("got %+v", second)
	}
}

func TestWhatIsNotKept(t *testing.T) {
	deny := policy.New([]policy.Rule{{Pattern: "fs:read", Effect: policy.Deny}}, nil, policy.AlwaysAllow)
	for name, c := range map[string]struct {
		code  string
		edit  func(*Request)
		setup func(*cacheBundle)
		also  fakeSandbox
	}{
		"a write in a branch":    {code: `const r = await mcp.fs.read({}); if (args.never) await mcp.fs.write({}); return r;`},
		"a computed name":        {code: `return await mcp.fs[args.name]({});`},
		"a server that escapes":  {code: `const f = (s) => globalThis.g(s); f(mcp.fs); return await mcp.fs.read({});`},
		"the time":               {code: `return [await mcp.fs.read({}), Date.now()];`},
		"chance":                 {code: `return [await mcp.fs.read({}), Math.random()];`},
		"no tool":                {code: `return 1;`},
		"turned off for all":     {setup: func(b *cacheBundle) { b.settings.Disabled = true }},
		"turned off for it":      {setup: func(b *cacheBundle) { off := false; b.store.config.Cacheable = &off }},
		"a cache that is broken": {setup: func(b *cacheBundle) { b.store.err = errors.New("broken") }},
		"a denied tool":          {setup: func(b *cacheBundle) { b.run(t, reads, nil); b.runs.Add(-1); b.policy = deny }},
		"a call that failed": {also: func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) {
			_, _ = call(ctx, h, "raed", `{}`)
			return json.RawMessage(`1`), nil
		}},
		"a call nobody has seen": {also: func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) { return call(ctx, h, "write", `{}`) }},
		"a program that failed": {also: func(context.Context, sandbox.Host) (json.RawMessage, error) {
			return nil, fault.New(fault.RuntimeError, "x")
		}},
		"a reference to a call": {also: func(context.Context, sandbox.Host) (json.RawMessage, error) {
			return json.RawMessage(`{"data_ref":"blob:0"}`), nil
		}},
		"what it printed": {setup: func(b *cacheBundle) { b.prints = true }},
		"a result that is too big": {also: func(context.Context, sandbox.Host) (json.RawMessage, error) {
			return mustJSON(make([]byte, maxCached)), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupCache(t, nil)
			b.also = c.also
			if c.setup != nil {
				c.setup(b)
			}
			if c.code == "" {
				c.code = reads
			}
			first, second := b.run(t, c.code, c.edit), b.run(t, c.code, c.edit)
			if first.CacheHit != "" || second.CacheHit != "" {
				t.Errorf("answered from the cache: %+v", second)
			}
			if name == "a denied tool" {
				if second.Error == nil || second.Error.Code != fault.Denied {
					t.Errorf("got %+v", second)
				}
				return
			}
			b.checkRuns(t, "twice", 2)
		})
	}
}

func TestAPersonVouchesForToolsThatClaimNothing(t *testing.T) {
	const code = `return [await mcp.fs.read({}), await mcp.fs.write({}), Date.now()];`
	b := setupCache(t, nil)
	b.also = func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) { return call(ctx, h, "write", `{}`) }
	on := true
	b.store.config.Cacheable = &on
	b.run(t, code, nil)
	if a := b.run(t, code, nil); a.CacheHit != ExecutionLevel || len(b.store.drops) != 0 {
		t.Errorf("got %+v, drops %v", a, b.store.drops)
	}
}

func TestClaims(t *testing.T) {
	yes, never := true, false
	for name, c := range map[string]struct {
		a    tool.Annotations
		want bool
	}{
		"nothing":         {tool.Annotations{}, false},
		"reads":           {tool.Annotations{ReadOnly: &yes}, false},
		"does not read":   {tool.Annotations{ReadOnly: &never}, true},
		"destroys":        {tool.Annotations{Destructive: &yes}, true},
		"does not":        {tool.Annotations{Destructive: &never}, false},
		"reads, destroys": {tool.Annotations{ReadOnly: &yes, Destructive: &yes}, false},
	} {
		if got := claimsToWrite(tool.Tool{Annotations: c.a}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		``:                                  `null`,
		`{"b":1, "a":{"d":[2,1],"c":null}}`: `{"a":{"c":null,"d":[2,1]},"b":1}`,
		`{"n":123456789012345678901234567}`: `{"n":123456789012345678901234567}`,
		`{"n":123456789012345678901234568}`: `{"n":123456789012345678901234568}`,
		`{broken`:                           `"{broken"`,
	} {
		if got := string(canonicalJSON(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

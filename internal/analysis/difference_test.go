package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/structure"
)

// seeds is how many worlds each program runs in; PML_SEEDS asks for more.
func seeds() uint64 {
	n, err := strconv.ParseUint(os.Getenv("PML_SEEDS"), 10, 16)
	if err != nil {
		return 2
	}
	return n
}

// TestDifference runs each program as it was written, with marks, and with its
// literals lifted. All three must do the same.
func TestDifference(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	for name, source := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := analysed(t, source)
			for seed := range seeds() {
				compareRuns(t, p, seed)
			}
		})
	}
}

// programs are the sources of all golden cases, and some more.
func programs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range []string{"examples", "snippets", "runs"} {
		paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range archive.Files {
				if f.Name == "source.ts" {
					out[strings.TrimSuffix(filepath.Base(path), ".txtar")] = string(f.Data)
				} else if dir == "runs" {
					out[f.Name] = string(f.Data)
				}
			}
		}
	}
	for seed := range 5 * seeds() {
		if source := generated(seed); parses(source) {
			out[fmt.Sprint("generated", seed)] = source
		}
	}
	return out
}

// ran is what can be seen of one run.
type ran struct {
	Result, Error string
	Line, Column  int
	Stack         string
	Calls, Logs   []string

	parallel bool
	records  []sandbox.Record
}

// run runs a text of a program in the world of a seed.
func run(t *testing.T, p *Program, code Code, seed uint64) ran {
	t.Helper()
	args := map[string]any{"path": "/in.txt", "userId": 7, "text": "hello", "url": "https://x", "channels": nil, "id": 3, "mode": "db"}
	for _, q := range p.Parameters {
		var schema struct {
			Default any `json:"default"`
		}
		if err := json.Unmarshal(q.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Default != nil {
			args[q.Name] = schema.Default
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	prog := sandbox.Program{
		Source: code.Text, Original: p.Source, Recorder: p.Recorder, Frame: p.Frame, Args: text, Position: code.Position,
		Seed:         &sandbox.Determinism{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Random: uint32(seed)},
		Capabilities: map[string]string{"normalize": "if (Math.random() < 0.2) throw new Error('cannot'); return { text: String(args.text).toLowerCase(), ok: true }"},
	}
	if code.Nodes != nil {
		prog.Nodes = map[string]sandbox.NodeKind{}
		for id, kind := range code.Nodes {
			prog.Nodes[id] = sandbox.NodeKind(kind)
		}
	}
	w := newWorld(seed)
	out, err := sharedPool(t).Run(t.Context(), prog, w)
	for i, line := range out.Logs {
		out.Logs[i] = compiledPlace.ReplaceAllString(line, "") // places in the text that runs, not in the program
	}
	r := ran{Result: string(out.Result), Calls: w.sequence(), Logs: out.Logs, parallel: w.atOnce > 1, records: out.Records}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		r.Error, r.Line, r.Column, r.Stack = fmt.Sprint(f.Code, " ", f.Message, " ", f.Source), f.Line, f.Column, f.Stack
	} else if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.Error, "is not iterable") { // the recorder says this in its own words
		r.Error, r.Column, r.Stack = "not iterable", 0, ""
	}
	return r
}

var compiledPlace = regexp.MustCompile(`<anonymous>:\d+:\d+`)

// compareRuns compares the three texts in one world.
func compareRuns(t *testing.T, p *Program, seed uint64) {
	t.Helper()
	given := slices.Sorted(maps.Keys(map[string]bool{"path": true, "userId": true}))
	original := p.source.code(CodeOptions{Provided: given}, false)
	want := []ran{run(t, p, original, seed)}
	for name, o := range map[string]CodeOptions{"marks": {Provided: given}, "lifted": {Provided: given, Lift: true}} {
		code, err := p.Code(o)
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, p, code, seed)
		// What runs in parallel may go several ways: one of them must be common to both.
		for i := 0; i < 12 && !slices.ContainsFunc(want, got.same); i++ {
			want = append(want, run(t, p, original, seed))
			got = run(t, p, code, seed)
		}
		if !slices.ContainsFunc(want, got.same) {
			t.Errorf("seed %d, %s (-original +got)\n%s", seed, name, cmp.Diff(want[0], got, cmp.FilterPath(func(p cmp.Path) bool {
				f, ok := p.Last().(cmp.StructField)
				return ok && (f.Name() == "parallel" || f.Name() == "records")
			}, cmp.Ignore())))
		}
		if !got.parallel && name == "marks" {
			wantPath(t, p, got.records)
		}
	}
}

// same reports whether two runs did the same. The order of what ran in parallel is free.
func (r ran) same(o ran) bool {
	if r.Result != o.Result || r.Error != o.Error || r.Line != o.Line || r.Column != o.Column || r.Stack != o.Stack {
		return false
	}
	if r.parallel || o.parallel {
		return slices.Equal(slices.Sorted(slices.Values(r.Calls)), slices.Sorted(slices.Values(o.Calls))) &&
			slices.Equal(slices.Sorted(slices.Values(r.Logs)), slices.Sorted(slices.Values(o.Logs)))
	}
	return slices.Equal(r.Calls, o.Calls) && slices.Equal(r.Logs, o.Logs)
}

// wantPath checks that the structure allows what a run recorded: a way of control
// edges leads from each call or decision to the next, through loops, forks and
// joins only.
func wantPath(t *testing.T, p *Program, records []sandbox.Record) {
	t.Helper()
	isFork := func(n structure.Node) bool { return n.Type == structure.Fork }
	if p.Flags.Implicit || slices.ContainsFunc(p.Structure.Nodes, isFork) || strings.Contains(p.Source, "function*") || strings.Contains(p.Source, "async *") {
		return // made by code that is not called visibly, or in an order that records do not show
	}
	before, outcome := "", ""
	for _, r := range records {
		if r.Type != "call" && r.Type != "dec" || strings.HasPrefix(r.ID, "?") {
			continue
		}
		if before != "" && !follows(p, before, outcome, r.ID) {
			t.Errorf("no way from %s %s to %s in\n%s", before, outcome, r.ID, notation(p))
		}
		before, outcome = r.ID, r.Outcome
	}
}

func follows(p *Program, from, outcome, to string) bool {
	seen := map[string]bool{}
	var search func(from, outcome string) bool
	search = func(from, outcome string) bool {
		for _, e := range p.Structure.Edges {
			if e.From != from || e.Type != structure.Sequence && e.Type != structure.Conditional {
				continue
			}
			if outcome != "" && e.Outcome != "" && e.Outcome != "throw" && e.Outcome != outcome {
				continue
			}
			if e.To == to {
				return true
			}
			if n, _ := p.Structure.Node(e.To); !seen[e.To] && (n.Type == structure.Loop || n.Type == structure.Fork || n.Type == structure.Join) {
				seen[e.To] = true
				if search(e.To, "") {
					return true
				}
			}
		}
		return false
	}
	return search(from, outcome)
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/search"
)

// What a capability returned is the type that it is found with; a run that was only
// tried, and one inside another program, add nothing.
func TestResultTypesAreLearnt(t *testing.T) {
	t.Parallel()
	f := finder{newLearner(t)}
	empty := filepath.Join(f.files, "empty.txt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(implementation, args, options map[string]any) outcome {
		t.Helper()
		o := f.call(t, map[string]any{"intent": "measure a file", "implementation": implementation, "args": args, "options": options})
		if o.Status != "success" {
			t.Fatalf("got %+v", o)
		}
		return o
	}
	found := func(detail, result string) search.Result {
		t.Helper()
		is := func(r search.Result) bool {
			return r.Call == "capabilities.measure_file" && strings.HasSuffix(r.Signature, "): Promise<"+result+">")
		}
		a := f.until(t, map[string]any{"intent": "measure a file", "detail": detail}, func(a search.Answer) bool { return slices.ContainsFunc(a.Results, is) })
		return a.Results[slices.IndexFunc(a.Results, is)]
	}
	program := map[string]any{"type": "code", "code": `
const { content } = await mcp.filesystem.read_text_file({ path: args.file });
const first = content.split("\n")[0];
return first ? { lines: content.split("\n").length, first } : { lines: 0 };`}
	saved := map[string]any{"type": "capability", "name": "measure_file"}

	run(program, map[string]any{"file": filepath.Join(f.files, "a.txt")}, map[string]any{"name": "measure_file"})
	if r := found("signature", "{ first: string; lines: number }"); r.OutputSchema != nil {
		t.Errorf("a signature with a schema: %s", r.OutputSchema)
	}
	run(saved, map[string]any{"file": empty}, nil)
	r := found("schema", "{ lines: number; first?: string }")
	const schema = `{"type":"object","properties":{"first":{"type":"string"},"lines":{"type":"integer"}},"required":["lines"]}`
	if string(r.OutputSchema) != schema || r.OutputSource != "observed" {
		t.Errorf("schema %s, %s", r.OutputSchema, r.OutputSource)
	}

	run(saved, map[string]any{"file": empty}, map[string]any{"dry_run": true})
	run(map[string]any{"type": "code", "code": `return [await capabilities.measure_file({ file: args.file })]`}, map[string]any{"file": empty}, nil)
	if k := f.show(t, "measure_file").Capability; k.UsageCount != 3 || k.Learning.Output.Count != 2 {
		t.Errorf("%d runs, %d results", k.UsageCount, k.Learning.Output.Count)
	}
	out, err := f.pml(t.Context(), t, "capability", "show", "measure_file")
	if want := "result  { lines: number; first?: string }  seen in 2 runs\n"; err != nil || !strings.Contains(out, want) {
		t.Errorf("no %q in %s, %v", want, out, err)
	}
}

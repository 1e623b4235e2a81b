package analysis

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/trace"
)

// searchSeeds looks for worlds in which the examples go the ways that they list.
var searchSeeds = flag.Uint64("search-seeds", 0, "how many seeds to try for each listed run of the examples; the first that fit are written down")

// TestRealPaths runs each example in the sandbox, in worlds in which it goes the
// ways that it lists: structure, marks, recorder and folding together.
func TestRealPaths(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	paths, err := filepath.Glob(filepath.Join("testdata", "examples", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := analysed(t, string(file(archive, "source.ts")))
			want := strings.Split(strings.TrimSpace(string(file(archive, "runs"))), "\n")
			if *searchSeeds > 0 {
				setFile(archive, "seeds", seedsOf(t, p, want))
				writeArchive(t, path, archive)
			}
			seeds := strings.Fields(string(file(archive, "seeds")))
			if len(seeds) != len(want) {
				t.Fatalf("%d seeds for %d runs; find them with -search-seeds", len(seeds), len(want))
			}
			for i, text := range seeds {
				seed, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				got, wanted := pathText(t, p, seed), want[i]
				parallel := strings.Contains(wanted, `"f1"`)
				for try := 0; got != wanted && try < 20 && parallel; try++ {
					got = pathText(t, p, seed) // which of equal calls in parallel comes first is chance
				}
				if parallel && strings.HasSuffix(wanted, "(run failed)") { // how far the others got when one failed is chance, too
					got, wanted = withoutCounts(got), withoutCounts(wanted)
				}
				if got != wanted {
					t.Errorf("run %d, seed %d\nwant %s\n got %s", i+1, seed, want[i], got)
				}
			}
		})
	}
}

func withoutCounts(text string) string {
	way, _, _ := strings.Cut(strings.TrimSuffix(text, " (run failed)"), " counts ")
	return way
}

// seedsOf finds the first seed for each listed run.
func seedsOf(t *testing.T, p *Program, want []string) string {
	t.Helper()
	found := make([]string, len(want))
	for seed := range *searchSeeds {
		if at := slices.Index(want, pathText(t, p, seed)); at >= 0 && found[at] == "" {
			found[at] = strconv.FormatUint(seed, 10)
		}
		if !slices.Contains(found, "") {
			break
		}
	}
	return strings.Join(found, "\n") + "\n"
}

// pathText runs a program with its marks and writes its way as the examples do.
func pathText(t *testing.T, p *Program, seed uint64) string {
	t.Helper()
	code, err := p.Code(CodeOptions{Provided: []string{"path", "userId"}})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, p, code, seed)
	own, _ := trace.Split(asTrace(r.records))
	way := trace.Fold(p.Structure, own)
	var b strings.Builder
	fmt.Fprintf(&b, "`[%s]`", quoteAll(way.IDs))
	for i, d := range way.Decisions {
		b.WriteString(map[bool]string{true: " decisions ", false: ", "}[i == 0] + d.NodeID + "=" + d.Outcome)
	}
	if counts := countsText(way.Regions); counts != "" {
		b.WriteString(" counts " + counts)
	}
	if r.Error != "" {
		b.WriteString(" (run failed)")
	}
	return b.String()
}

func quoteAll(ids []string) string {
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = strconv.Quote(id)
	}
	return strings.Join(quoted, ",")
}

// countsText writes each region with the iterations of its entries: "l2×2/3, l1×2".
func countsText(regions []trace.RegionRun) string {
	var ids []string
	counts := map[string][]string{}
	for _, r := range regions {
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
		counts[r.ID] = append(counts[r.ID], strconv.Itoa(r.Iterations))
	}
	for i, id := range ids {
		ids[i] = id + "×" + strings.Join(counts[id], "/")
	}
	return strings.Join(ids, ", ")
}

func asTrace(in []sandbox.Record) []trace.Record {
	out := make([]trace.Record, len(in))
	for i, r := range in {
		out[i] = trace.Record{
			Type: trace.RecordType(r.Type), Seq: r.Seq, Frame: r.Frame, ID: r.ID, Outcome: r.Outcome, Tool: r.Tool,
			Parent: r.Parent, Capability: r.Capability, Region: r.Region, Branch: r.Branch, Index: r.Index,
		}
	}
	return out
}

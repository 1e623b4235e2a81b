package search

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

func knowledge(t testing.TB, edges []capability.Edge, capabilities ...KnownCapability) *Knowledge {
	t.Helper()
	k, err := NewKnowledge(edges, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// followed is a sequence that was seen so often.
func followed(from, to string, count int64) capability.Edge {
	e := capability.NewEdge(from, to, capability.Sequence, capability.ObservedEdge)
	e.Count = count
	return e
}

// gives is a data flow.
func gives(from, to string, source capability.EdgeSource, fields ...string) capability.Edge {
	e := capability.NewEdge(from, to, capability.Provides, source)
	for _, f := range fields {
		a, b, _ := strings.Cut(f, ">")
		e.FieldMapping = append(e.FieldMapping, tool.FieldMapping{From: a, To: b, TypeCompatible: true})
	}
	return e
}

// office is two groups of tools: files and mail.
func office() ([]capability.Edge, []KnownCapability) {
	edges := []capability.Edge{
		followed("fs:list", "fs:read", 15), followed("fs:read", "fs:write", 3), followed("fs:read", "fs:stat", 1),
		gives("fs:read", "fs:write", capability.ObservedEdge, "content>content"),
		gives("fs:list", "fs:stat", capability.InferredEdge, "path>path"),
		followed("mail:search", "mail:send", 2), gives("mail:search", "mail:send", capability.InferredEdge, "to>to", "subject>subject"),
	}
	return edges, []KnownCapability{
		{"c-copy", "copy_file", []tool.ID{"fs:read", "fs:write"}, 0.92},
		{"c-tree", "tree", []tool.ID{"fs:list", "fs:stat"}, 0.7},
		{"c-bad", "bad", []tool.ID{"fs:read"}, 0.6},
		{"c-mail", "answer", []tool.ID{"mail:search", "mail:send"}, 1},
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	edges, capabilities := office()
	k := knowledge(t, edges, capabilities...)
	for name, tc := range map[string]struct {
		context []tool.ID
		exists  func(tool.ID) bool
		want    []string
	}{
		"nothing used":  {nil, nil, nil},
		"unknown tools": {[]tool.ID{"x:y", ""}, nil, nil},
		"mail": {[]tool.ID{"mail:search"}, nil, []string{
			`capability c-mail answer 1.00: it uses mail:search, and 100 % of its runs succeeded`,
			`next_tool mail:send 0.99: it came after mail:search 2 times`,
		}},
		"files": {[]tool.ID{"fs:read"}, nil, []string{
			`next_tool fs:write 1.00: it was given the content of fs:read`,
			`capability c-copy copy_file 0.92: it uses fs:read, and 92 % of its runs succeeded`,
			`tool fs:list 0.48: the same programs and tools go with it as with fs:read`,
			`tool fs:stat 0.48: the same programs and tools go with it as with fs:read`,
		}},
		"the last one counts for what is next": {[]tool.ID{"fs:read", "fs:write", "mail:search"}, nil, []string{
			`next_tool mail:send 0.99: it came after mail:search 2 times`,
			`capability c-copy copy_file 0.92: it uses fs:read and fs:write, and 92 % of its runs succeeded`,
			`tool fs:list 0.54: the same programs and tools go with it as with fs:write`,
			`tool fs:stat 0.54: the same programs and tools go with it as with fs:write`,
		}},
		"none of it was used": {[]tool.ID{"fs:stat"}, nil, []string{
			`tool fs:list 1.00: the same programs and tools go with it as with fs:stat`,
			`capability c-tree tree 0.70: it uses fs:stat, and 70 % of its runs succeeded`,
			`tool fs:write 0.54: the same programs and tools go with it as with fs:stat`,
			`tool fs:read 0.48: the same programs and tools go with it as with fs:stat`,
		}},
		"tools that are gone": {[]tool.ID{"fs:read"}, func(id tool.ID) bool { return id != "fs:write" && id != "fs:list" }, []string{
			`next_tool fs:stat 0.50: it came after fs:read in a run`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range k.Suggest(tc.context, tc.exists) {
				got = append(got, fmt.Sprintf("%s %.2f: %s", strings.TrimSpace(strings.Join([]string{string(s.Type), s.ID, s.Name}, " ")), s.Confidence, s.Reason))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSuggestWithoutKnowledge(t *testing.T) {
	t.Parallel()
	var none *Knowledge
	for _, k := range []*Knowledge{none, knowledge(t, nil)} {
		if s := k.Suggest([]tool.ID{"a:b"}, nil); len(s) != 0 {
			t.Error(s)
		}
	}
	bad := followed("a:a", "b:b", 1)
	bad.Weight = math.NaN()
	if _, err := NewKnowledge([]capability.Edge{bad}, nil); err == nil {
		t.Error("a weight that is no number was taken")
	}
}

// TestNextByFrequency: what follows often is surer than what followed once.
func TestNextByFrequency(t *testing.T) {
	t.Parallel()
	k := knowledge(t, []capability.Edge{
		followed("a:x", "a:often", 63), followed("a:x", "a:once", 1),
		capability.NewEdge("a:x", "a:later", capability.Dependency, capability.TemplateEdge),
	})
	want := []Suggestion{
		{SuggestNext, "a:often", "", "it came after a:x 63 times", 0.5},
		{SuggestNext, "a:later", "", "it builds on a:x", 0.5 / 6},
		{SuggestNext, "a:once", "", "it came after a:x in a run", 0.5 / 6},
	}
	if diff := cmp.Diff(want, k.Suggest([]tool.ID{"a:x"}, nil), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

// TestSuggestInAnyOrder: the order in which knowledge comes does not matter, and
// whatever it is, suggestions are few, sorted, distinct and have a reason.
func TestSuggestInAnyOrder(t *testing.T) {
	t.Parallel()
	ids := rapid.SampledFrom([]string{"a:1", "a:2", "a:3", "b:1", "b:2", "b:3", "c:1", "c:2", "u1", "u2"})
	edge := rapid.Custom(func(t *rapid.T) capability.Edge {
		e := capability.NewEdge(ids.Draw(t, "from"), ids.Draw(t, "to"),
			rapid.SampledFrom([]capability.EdgeType{capability.Sequence, capability.Provides, capability.Dependency, capability.Contains}).Draw(t, "type"),
			rapid.SampledFrom([]capability.EdgeSource{capability.ObservedEdge, capability.InferredEdge}).Draw(t, "source"))
		e.Count = rapid.Int64Range(0, 9).Draw(t, "count")
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		// one edge of a kind between two nodes, as they are stored
		edges := rapid.SliceOfNDistinct(edge, 0, 30, func(e capability.Edge) string { return e.From + ">" + e.To + string(e.Type) }).Draw(t, "edges")
		capabilities := []KnownCapability{
			{"u1", "one", []tool.ID{"a:1", "b:1"}, rapid.Float64Range(0, 1).Draw(t, "rate")},
			{"u2", "two", []tool.ID{"a:1", "a:2"}, 0.9},
		}
		a, err := NewKnowledge(edges, capabilities)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(capabilities)
		b, err := NewKnowledge(rapid.Permutation(edges).Draw(t, "shuffled"), capabilities)
		if err != nil {
			t.Fatal(err)
		}
		context := rapid.SliceOfN(rapid.SampledFrom([]tool.ID{"a:1", "a:2", "a:3", "b:1", "b:2", "c:1", "x:y"}), 1, 4).Draw(t, "context")
		got := a.Suggest(context, nil)
		if diff := cmp.Diff(got, b.Suggest(context, nil)); diff != "" {
			t.Fatal(diff)
		}
		if len(got) > mostSuggestions || !slices.IsSortedFunc(got, bySurety) || len(firstOfEach(got, 99)) != len(got) {
			t.Fatal(got)
		}
		for _, s := range got {
			if s.Reason == "" || s.Confidence <= 0 || s.Confidence > 1 || slices.Contains(context, tool.ID(s.ID)) {
				t.Fatal(s)
			}
		}
	})
}

package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// program is a capability that was not stored; hash tells programs apart.
func program(name, hash string) capability.Capability {
	return capability.Capability{
		Name: name, Intent: "Read the config file", HashExact: "x" + hash, HashShape: hash, Description: "reads " + hash,
		Source:     capability.Source{Type: capability.CodeSource, Code: "return " + hash},
		Parameters: []structure.Parameter{{Name: "path", Schema: []byte(`{"type": "string"}`)}},
		Structure: structure.Structure{
			Nodes: []structure.Node{{ID: "n1", Type: structure.Task, Tool: "fs:" + hash}},
			Edges: []structure.Edge{},
		},
	}
}

// saved stores a program and returns it as it is stored.
func saved(tb testing.TB, s *store.Store, name, hash string) capability.Capability {
	tb.Helper()
	c, _, err := s.UpsertCandidate(tb.Context(), program(name, hash))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// named returns what a name stands for.
func named(tb testing.TB, s *store.Store, name string) capability.Capability {
	tb.Helper()
	c, err := s.Capability(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// proves has a run of c succeed: the head becomes active, another version the head.
func proves(tb testing.TB, s *store.Store, c capability.Capability) {
	tb.Helper()
	tr := finished(begun(tb, s), newCall("n1", 1, 0, "fs:read"))
	tr.Run.Capability, tr.CapabilityVersion = c.ID, c.Version
	err := s.FinishRun(tb.Context(), tr, teaching(tr, func(l *capability.Lesson) {
		l.Activate = l.Evidence.Head != l.Evidence.Version
		l.Proves = !l.Activate
		l.Evidence.Head, l.Evidence.Proven, l.Evidence.State = l.Evidence.Version, true, capability.Active
		l.Evidence.UsageCount++
		l.Evidence.Learning.DominantPath = fmt.Sprint("of version ", l.Evidence.Version)
	}))
	if err != nil {
		tb.Fatal(err)
	}
}

func TestUpsertCandidate(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	got, created, err := s.UpsertCandidate(ctx, program("", "a"))
	if err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
	want := program("read_config_file", "a")
	want.ID, want.Version, want.Head, want.State, want.Origin = got.ID, 1, 1, capability.Candidate, capability.Emergent
	want.Aliases, want.ToolsUsed = []string{}, []tool.ID{"fs:a"}
	ignore := cmpopts.IgnoreFields(capability.Capability{}, "CreatedAt", "UpdatedAt")
	if diff := cmp.Diff(want, got, ignore, equalJSON); diff != "" {
		t.Error(diff)
	}
	again, created, err := s.UpsertCandidate(ctx, program("other", "a"))
	if err != nil || created || again.ID != got.ID || again.Name != got.Name {
		t.Errorf("the same program: created %t, %+v, %v", created, again, err)
	}
	if second := saved(t, s, "", "b"); second.Name != "read_config_file_2" || second.ID == got.ID {
		t.Errorf("second program of the intent: %+v", second)
	}
	for name, c := range map[string]capability.Capability{"no hash": program("x", ""), "no name": program("a b", "z")} {
		_, _, err := s.UpsertCandidate(ctx, c)
		if fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUpsertCandidateInParallel: however many save one program at once, it is one
// capability, and names stay unique.
func TestUpsertCandidateInParallel(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var wg sync.WaitGroup
	ids, made := make([]uuid.UUID, 32), make([]bool, 32)
	errs := make([]error, 32)
	for i := range ids {
		wg.Go(func() {
			c, created, err := s.UpsertCandidate(t.Context(), program("", fmt.Sprint("h", i%4)))
			ids[i], made[i], errs[i] = c.ID, created, err
		})
	}
	wg.Wait()
	count := 0
	for i := range ids {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if ids[i] != ids[i%4] {
			t.Errorf("program %d is two capabilities", i%4)
		}
		if made[i] {
			count++
		}
	}
	all, err := s.Capabilities(t.Context(), store.CapabilityFilter{})
	if err != nil || len(all) != 4 || count != 4 {
		t.Errorf("%d capabilities, %d created, %v", len(all), count, err)
	}
}

func TestCapabilityVersions(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	one := saved(t, s, "work", "v1")
	proves(t, s, one)
	two := saved(t, s, "work", "v2")
	if two.ID != one.ID || two.Version != 2 || two.Head != 1 || two.State != capability.Candidate || two.Source.Code != "return v2" {
		t.Errorf("second version before its first run: %+v", two)
	}
	if head := named(t, s, "work"); head.Version != 1 || head.State != capability.Active {
		t.Errorf("head %d is %s before version 2 has run", head.Version, head.State)
	}
	proves(t, s, two)
	head := named(t, s, "work")
	if head.Version != 2 || head.HashShape != "v2" || head.Source.Code != "return v2" || head.Learning.DominantPath != "of version 2" {
		t.Errorf("head after version 2 has proved itself: %+v", head)
	}
	if diff := cmp.Diff([]tool.ID{"fs:v2"}, head.ToolsUsed); diff != "" {
		t.Errorf("tools: %s", diff)
	}
	old, created, err := s.UpsertCandidate(ctx, program("", "v1"))
	if err != nil || created || old.ID != one.ID || old.Version != 1 || old.Learning.DominantPath != "of version 1" {
		t.Errorf("the old program: created %t, %+v, %v", created, old, err)
	}
	three := saved(t, s, "work", "v3")
	versions, err := s.CapabilityVersions(ctx, "work")
	if err != nil || len(versions) != 3 || three.Version != 3 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	for i, v := range versions {
		if v.Number != i+1 || v.Source.Code != fmt.Sprint("return v", i+1) || v.ActivatedAt.IsZero() != (i == 2) || len(v.Structure.Nodes) != 1 {
			t.Errorf("version %+v", v)
		}
	}
	if versions[1].Reason != "saved under the name work" {
		t.Errorf("reason %q", versions[1].Reason)
	}
}

func TestRollbackCapability(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	one := saved(t, s, "work", "v1")
	proves(t, s, one)
	proves(t, s, saved(t, s, "work", "v2"))
	saved(t, s, "work", "v3")
	if err := s.RollbackCapability(ctx, "work", 1); err != nil {
		t.Fatal(err)
	}
	c := named(t, s, "work")
	if c.Version != 1 || c.HashExact != "xv1" || c.State != capability.Active || c.Learning.DominantPath != "of version 1" || c.StateReason != "set back from version 2 to 1" {
		t.Errorf("after going back: %+v", c)
	}
	if err := s.RollbackCapability(ctx, "work", 3); err != nil {
		t.Fatal(err)
	}
	if c := named(t, s, "work"); c.Version != 3 || c.State != capability.Candidate {
		t.Errorf("a version that never ran is %s", c.State)
	}
	if err := s.RollbackCapability(ctx, "work", 2); err != nil {
		t.Fatal(err)
	}
	if c := named(t, s, "work"); c.Learning.DominantPath != "of version 2" {
		t.Errorf("version 2 has forgotten: %+v", c.Learning)
	}
	wantCode(t, s.RollbackCapability(ctx, "work", 9), fault.NotFound)
	wantCode(t, s.RollbackCapability(ctx, "nothing", 1), fault.UnknownCapability)
}

func TestRenameCapability(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	one, other := saved(t, s, "one", "a"), saved(t, s, "other", "b")
	for _, name := range []string{"first", "second", "one", "one"} {
		if err := s.RenameCapability(ctx, one.ID.String(), name); err != nil {
			t.Fatal(err)
		}
	}
	c := named(t, s, "one")
	slices.Sort(c.Aliases)
	if c.ID != one.ID || c.Name != "one" || strings.Join(c.Aliases, " ") != "first second" {
		t.Errorf("renamed: %+v", c)
	}
	if named(t, s, "second").ID != one.ID || named(t, s, other.ID.String()).Name != "other" {
		t.Error("an old name or an id is not found")
	}
	wantCode(t, s.RenameCapability(ctx, "other", "one"), fault.InvalidInput)
	wantCode(t, s.RenameCapability(ctx, "other", "first"), fault.InvalidInput)
	wantCode(t, s.RenameCapability(ctx, "other", "a b"), fault.InvalidInput)
	wantCode(t, s.RenameCapability(ctx, "none", "x"), fault.UnknownCapability)
	if v := saved(t, s, "first", "c"); v.ID != one.ID || v.Version != 2 {
		t.Errorf("a program saved under an old name: %+v", v)
	}
	if _, err := s.Capability(ctx, "nothing"); fault.CodeOf(err) != fault.UnknownCapability {
		t.Errorf("unknown name: %v", err)
	}
}

func TestMoveAndRetire(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "work", "a")
	proves(t, s, c)
	if state, err := s.MoveCapability(ctx, "work", capability.Event{Kind: capability.Proved}); err != nil || state != capability.Promoted {
		t.Errorf("state %s, %v", state, err)
	}
	if c := named(t, s, "work"); c.PromotedAt.IsZero() || c.State != capability.Promoted {
		t.Errorf("promoted: %+v", c)
	}
	if err := s.RetireCapability(ctx, "work", "does the wrong thing"); err != nil {
		t.Fatal(err)
	}
	if c := named(t, s, "work"); c.State != capability.Retired || c.StateReason != "does the wrong thing" {
		t.Errorf("retired: %s, %s", c.State, c.StateReason)
	}
	if list, err := s.Capabilities(ctx, store.CapabilityFilter{}); err != nil || len(list) != 0 {
		t.Errorf("a retired one is listed: %v, %v", list, err)
	}
	wantCode(t, s.RetireCapability(ctx, "none", ""), fault.UnknownCapability)
}

func TestCapabilitiesFilter(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	proves(t, s, saved(t, s, "used", "a"))
	saved(t, s, "fresh", "b")
	saved(t, s, "gone", "c")
	if err := s.RetireCapability(ctx, "gone", ""); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		f    store.CapabilityFilter
		want string
	}{
		"all":     {store.CapabilityFilter{}, "used fresh"},
		"state":   {store.CapabilityFilter{States: []capability.State{capability.Retired}}, "gone"},
		"query":   {store.CapabilityFilter{Query: "FRE"}, "fresh"},
		"text":    {store.CapabilityFilter{Query: "reads a"}, "used"},
		"tool":    {store.CapabilityFilter{Tool: "fs:b"}, "fresh"},
		"limit":   {store.CapabilityFilter{Limit: 1, Offset: 1}, "fresh"},
		"nothing": {store.CapabilityFilter{Query: "xyz"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := s.Capabilities(ctx, tt.f)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range list {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestImportCapabilities(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	mine := saved(t, s, "work", "a")
	got, err := s.ImportCapabilities(ctx, []capability.Capability{program("work", "b"), program("work", "a"), program("new", "c")})
	if err != nil || len(got) != 3 {
		t.Fatalf("%d, %v", len(got), err)
	}
	if got[0].Name != "work_2" || got[0].Origin != capability.Imported || got[0].State != capability.Candidate {
		t.Errorf("a program whose name is taken: %+v", got[0])
	}
	if got[1].ID != mine.ID || got[1].Origin != capability.Emergent || got[2].Name != "new" {
		t.Errorf("imported %+v", got[1:])
	}
	_, err = s.ImportCapabilities(ctx, []capability.Capability{program("fine", "d"), {Name: "broken", HashExact: "e", HashShape: "e", Origin: "x"}, {Name: "bad\x00"}})
	if err == nil {
		t.Error("a capability without hashes was imported")
	}
	if _, ok, err := s.CapabilityByHash(ctx, "d"); ok || err != nil {
		t.Errorf("half of a file was imported: %t, %v", ok, err)
	}
}

func TestHighPriorityTraces(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "work", "a")
	for i, p := range []float64{0.2, 0.9, 0.5} {
		tr := finished(begun(t, s))
		tr.Run.Capability, tr.CapabilityVersion, tr.Priority = c.ID, 1, p
		if i == 1 {
			tr.Success, tr.Run.Status, tr.Run.Error = false, trace.Failed, fault.New(fault.RuntimeError, "no")
		}
		if err := s.FinishRun(ctx, tr, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.HighPriorityTraces(ctx, c.ID, 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d traces, %v", len(got), err)
	}
	if got[0].Priority < 0.89 || got[0].Error == nil || got[0].Success || len(got[0].Path) != 2 || len(got[0].Decisions) != 1 || got[1].Priority != 0.5 {
		t.Errorf("got %+v", got)
	}
}

package capability

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNameFromIntent(t *testing.T) {
	t.Parallel()
	for intent, want := range map[string]string{
		"Read the config file and parse it":                  "read_config_file_parse",
		"Please get me all open issues of repo pml-run/pml!": "all_open_issues_repo_pml_run",
		"list":                   "list",
		"what is it":             "what_is_it",
		"":                       "capability",
		"***":                    "capability",
		"3 newest mails":         "_3_newest_mails",
		"Größe der Dateien":      "größe_der_dateien",
		"taken name":             "taken_name_3",
		strings.Repeat("x", 200): "capability",
	} {
		taken := func(name string) bool { return name == "taken_name" || name == "taken_name_2" }
		if got := NameFromIntent(intent, taken); got != want {
			t.Errorf("%q: got %q, want %q", intent, got, want)
		}
	}
}

func TestEveryNameIsUsable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		used := map[string]bool{}
		for _, intent := range rapid.SliceOf(rapid.String()).Draw(t, "intents") {
			name := NameFromIntent(intent, func(n string) bool { return used[n] })
			if used[name] {
				t.Fatalf("%q was taken", name)
			}
			used[name] = true
			if err := CheckName(name); err != nil {
				t.Fatalf("%q: %v", intent, err)
			}
		}
	})
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"read_file": true, "größe": true, "$x": true, "": false, "2x": false, "a-b": false, "a b": false, "a.b": false,
		strings.Repeat("x", 101): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCycle(t *testing.T) {
	t.Parallel()
	edges := map[string][]string{"a": {"b"}, "b": {"c", "d"}, "d": {"a"}, "x": {"x2"}}
	next := func(n string) []string { return edges[n] }
	for pair, want := range map[[2]string]string{
		{"c", "a"}: "[c a b c]", {"c", "d"}: "[c d a b c]", {"c", "x"}: "[]", {"x", "a"}: "[]", {"q", "q"}: "[q q]",
	} {
		if got := fmt.Sprint(Cycle(pair[0], pair[1], next)); got != want {
			t.Errorf("%v: got %s, want %s", pair, got, want)
		}
	}
}

func TestWeight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		t    EdgeType
		s    EdgeSource
		want string
	}{
		{Dependency, ObservedEdge, "1.00"},
		{Contains, ObservedEdge, "0.80"},
		{Provides, ObservedEdge, "0.70"},
		{Sequence, ObservedEdge, "0.50"},
		{Provides, InferredEdge, "0.49"},
		{Dependency, TemplateEdge, "0.50"},
		{Sequence, TemplateEdge, "0.25"},
	} {
		if got := fmt.Sprintf("%.2f", Weight(tt.t, tt.s)); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.t, tt.s, got, tt.want)
		}
	}
}

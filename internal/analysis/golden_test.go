package analysis

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pml-run/pml/internal/structure"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden analyses the source of each case and compares everything that is
// known of it.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"examples", "snippets"} {
		paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no cases in %s: %v", dir, err)
		}
		for _, path := range paths {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				t.Parallel()
				golden(t, path)
			})
		}
	}
}

func golden(t *testing.T, path string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Analyse(string(file(archive, "source.ts")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Code(CodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lifted, err := p.Code(CodeOptions{Lift: true, Provided: names(p)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"structure": notation(p), "parameters": parameters(p), "code.ts": code.Text, "lifted.ts": lifted.Text,
		"sources": sources(p), "remarks": remarks(p), "hashes": fmt.Sprintf("exact %s\nshape %s\n", p.HashExact, p.HashShape),
	}
	if !*update {
		for name, text := range got {
			if diff := cmp.Diff(string(file(archive, name)), text); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
		return
	}
	for _, name := range []string{"structure", "remarks", "sources", "parameters", "hashes", "code.ts", "lifted.ts"} {
		if name != "structure" || !strings.Contains(path, "examples") { // that of the examples is their specification
			setFile(archive, name, got[name])
		}
	}
	writeArchive(t, path, archive)
}

func writeArchive(t *testing.T, path string, a *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
		t.Fatal(err)
	}
}

func file(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func setFile(a *txtar.Archive, name, text string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}

// names are the free variables of a program.
func names(p *Program) []string {
	var out []string
	for _, in := range p.Inputs {
		if in.Free {
			out = append(out, in.Name)
		}
	}
	return out
}

// notation writes the structure in four lines.
func notation(p *Program) string {
	var nodes, control, contains, provides []string
	for _, n := range p.Structure.Nodes {
		nodes = append(nodes, nodeNotation(n))
	}
	for _, e := range p.Structure.Edges {
		switch e.Type {
		case structure.Sequence:
			control = append(control, e.From+"→"+e.To)
		case structure.Conditional:
			control = append(control, fmt.Sprintf("%s→%s [%s]", e.From, e.To, e.Outcome))
		case structure.Contains:
			text := e.From + "⊃" + e.To
			if e.Branch != nil {
				text += fmt.Sprint("#", *e.Branch)
			}
			contains = append(contains, text)
		case structure.Provides:
			kind := e.Coverage
			if e.Via == "guard" {
				kind += ", guard"
			}
			provides = append(provides, fmt.Sprintf("%s⇢%s (%s)", e.From, e.To, kind))
		}
	}
	line := func(name string, parts []string) string {
		if len(parts) == 0 {
			parts = []string{"—"}
		}
		return name + ": " + strings.Join(parts, " · ") + "\n"
	}
	out := line("nodes", nodes) + line("control", control)
	if len(contains) > 0 {
		out += line("contains", contains)
	}
	return out + line("provides", provides)
}

// remarks writes the flags and diagnostics.
func remarks(p *Program) string {
	out := ""
	if flags, err := json.Marshal(p.Flags); err == nil && string(flags) != "{}" {
		out += "flags: " + string(flags) + "\n"
	}
	for _, d := range p.Diagnostics {
		out += fmt.Sprintf("%s %d:%d: %s\n", d.Severity, d.Line, d.Column, d.Message)
	}
	return out
}

func nodeNotation(n structure.Node) string {
	switch n.Type {
	case structure.Task:
		return n.ID + " " + n.Tool
	case structure.Capability:
		return n.ID + " capability:" + n.CapabilityID
	case structure.Decision:
		return fmt.Sprintf("%s decision `%s`", n.ID, n.Condition)
	case structure.Loop:
		return fmt.Sprintf("%s loop(%s) `%s`", n.ID, n.Mode, n.Condition)
	case structure.Fork, structure.Join:
	}
	return fmt.Sprintf("%s %s(%s)", n.ID, n.Type, n.Mode)
}

func parameters(p *Program) string {
	var b strings.Builder
	for _, q := range p.Parameters {
		fmt.Fprintf(&b, "%s", q.Name)
		if q.Required {
			b.WriteString(" required")
		}
		fmt.Fprintf(&b, " %s\n", q.Schema)
	}
	return b.String()
}

// sources writes where the arguments of each call come from.
func sources(p *Program) string {
	var b strings.Builder
	for _, n := range p.Structure.Nodes {
		args := p.Info[n.ID].Args
		for _, path := range sortedPaths(args) {
			fmt.Fprintf(&b, "%s.%s:", n.ID, path)
			for _, s := range args[path] {
				fmt.Fprintf(&b, " %s", strings.TrimSuffix(join(s.Node, s.Path), "."))
				if !s.Exact {
					b.WriteString("~")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

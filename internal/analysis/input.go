package analysis

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// inputs are what the program reads from outside and where that goes.
func (l *lifter) inputs() []Input {
	var out []Input
	for _, p := range l.list {
		if p.literal == "" {
			out = append(out, Input{Name: p.name, Free: len(l.scopes.free[p.name]) > 0})
		}
	}
	for _, v := range l.vertices {
		for _, path := range sortedPaths(l.info[v.ID].Args) {
			for _, s := range l.info[v.ID].Args[path] {
				if name, ok := strings.CutPrefix(s.Node, inputPrefix); ok {
					out = feed(out, name, s, Feed{Node: v.ID, Argument: path, Exact: s.Exact})
				}
			}
		}
	}
	return out
}

// feed adds a feed to the input that a source names.
func feed(inputs []Input, name string, s structure.Source, f Feed) []Input {
	free := name != argsName
	f.Path = s.Path
	if !free {
		name = topKey(s.Path)
		f.Path = strings.TrimPrefix(strings.TrimPrefix(s.Path, name), ".")
	}
	i := slices.IndexFunc(inputs, func(in Input) bool { return in.Name == name && in.Free == free })
	if i < 0 {
		i = len(inputs)
		inputs = append(inputs, Input{Name: name, Free: free})
	}
	inputs[i].Feeds = append(inputs[i].Feeds, f)
	return inputs
}

// schemaFrom is what the first tool wants that an input is passed to as it is. A schema
// that refers to another part of the tool's says nothing here.
func (l *lifter) schemaFrom(feeds []Feed) map[string]any {
	for _, f := range feeds {
		if !f.Exact || f.Path != "" {
			continue
		}
		known, _ := parseKeys(l.tools[tool.ID(l.byID[f.Node].Tool)].InputSchema)
		property := known.all[f.Argument]
		var schema map[string]any
		if bytes.Contains(property, []byte(`"$ref"`)) || json.Unmarshal(property, &schema) != nil || len(schema) == 0 {
			continue
		}
		delete(schema, "default") // the tool's, which the program does not know
		return schema
	}
	return map[string]any{}
}

func sortedPaths(args map[string][]structure.Source) []string {
	out := make([]string, 0, len(args))
	for k := range args {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

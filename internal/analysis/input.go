package analysis

import (
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
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

func sortedPaths(args map[string][]structure.Source) []string {
	out := make([]string, 0, len(args))
	for k := range args {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

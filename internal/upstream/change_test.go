package upstream

import (
	"slices"
	"testing"

	"github.com/pml-run/pml/internal/tool"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	list := func(hashes ...string) (tools []tool.Tool) {
		for i := 0; i < len(hashes); i += 2 {
			tools = append(tools, tool.Tool{ID: tool.ID("s:" + hashes[i]), SchemaHash: hashes[i+1]})
		}
		return tools
	}
	for name, c := range map[string]struct {
		before, after []tool.Tool
		fresh, others []tool.ID
	}{
		"nothing":   {},
		"the first": {nil, list("a", "1"), []tool.ID{"s:a"}, nil},
		"the same":  {list("a", "1"), list("a", "1"), nil, nil},
		"all kinds": {list("a", "1", "b", "1", "c", "1"), list("a", "1", "b", "2", "d", "1"), []tool.ID{"s:d"}, []tool.ID{"s:b", "s:c"}},
		"all gone":  {list("a", "1"), nil, nil, []tool.ID{"s:a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := diff(c.before, c.after)
			if !slices.Equal(got.New, c.fresh) || !slices.Equal(got.Altered, c.others) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

package analysis

import (
	"context"
	"errors"
	"time"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/typescript/typescript"
)

// errParse says that the parser took too long.
var errParse = errors.New("the program took too long to parse")

// The names of the grammar's symbols and fields, by number.
var (
	kindNames  []string
	kindNamed  []bool
	fieldNames = []string{""}
	fieldIndex = map[string]uint16{"": 0}
	errorKind  uint16
)

func init() {
	lang := typescript.GetLanguage()
	for i := range lang.SymbolCount() {
		kindNames = append(kindNames, lang.SymbolName(sitter.Symbol(i)))
		kindNamed = append(kindNamed, lang.SymbolType(sitter.Symbol(i)) == sitter.SymbolTypeRegular)
	}
	errorKind = uint16(len(kindNames))
	kindNames, kindNamed = append(kindNames, "ERROR"), append(kindNamed, true)
	for i := 1; lang.FieldName(i) != ""; i++ {
		fieldNames = append(fieldNames, lang.FieldName(i))
		fieldIndex[lang.FieldName(i)] = uint16(i)
	}
}

// withTree parses src and hands the root to use. It is the only place that touches
// the parser: each text has a parser of its own, which ends here with its tree,
// because neither can be used again safely after a time-out and neither is freed
// by the garbage collector.
func withTree(src string, limit time.Duration, use func(root *sitter.Node)) error {
	p := sitter.NewParser()
	defer p.Close()
	p.SetLanguage(typescript.GetLanguage())
	p.SetOperationLimit(int(limit.Microseconds()))
	//nolint:forbidigo // a context that can end leaves the parser's cancel flag set; the operation limit bounds the work
	t, err := p.ParseCtx(context.Background(), nil, []byte(src))
	if err != nil {
		return errParse
	}
	defer t.Close()
	use(t.RootNode())
	return nil
}

// parses reports whether src has no syntax error.
func parses(src string, limit time.Duration) bool {
	ok := false
	err := withTree(src, limit, func(root *sitter.Node) { ok = !root.HasError() })
	return err == nil && ok
}

// parse makes a tree of src. Nothing of the parser stays alive.
func parse(src string, limit time.Duration) (*tree, error) {
	t := &tree{src: src}
	if err := withTree(src, limit, t.flatten); err != nil {
		return nil, err
	}
	return t, nil
}

// flatten copies the parser's tree in pre-order.
func (t *tree) flatten(root *sitter.Node) {
	broken := root.HasError()
	cursor := sitter.NewTreeCursor(root)
	defer cursor.Close()
	t.at = make([]syntax, 0, len(t.src)/2+16)
	parent, before, depth := none, none, 0
	for {
		n := cursor.CurrentNode()
		s := syntax{
			kind: min(uint16(n.Symbol()), errorKind), field: fieldIndex[cursor.CurrentFieldName()],
			start: n.StartByte(), end: n.EndByte(), parent: parent, child: none, next: none,
		}
		s.named = kindNamed[s.kind]
		s.broken = broken && (s.kind == errorKind || n.IsMissing())
		id := t.add(s, before)
		t.depth = max(t.depth, depth)
		if cursor.GoToFirstChild() {
			parent, before, depth = id, none, depth+1
			continue
		}
		before = id
		for !cursor.GoToNextSibling() {
			if !cursor.GoToParent() {
				return
			}
			before, depth = parent, depth-1
			parent = t.at[before].parent
		}
	}
}

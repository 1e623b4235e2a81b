package analysis

import (
	"context"
	"errors"
	"slices"
	"strings"

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

	isLeaf        []bool // tokens
	isPunctuation []bool // tokens that are in no field
)

func init() {
	lang := typescript.GetLanguage()
	for i := range lang.SymbolCount() {
		addKind(lang.SymbolName(sitter.Symbol(i)), lang.SymbolType(sitter.Symbol(i)) == sitter.SymbolTypeRegular)
	}
	errorKind = uint16(len(kindNames))
	addKind("ERROR", true)
	for i := 1; lang.FieldName(i) != ""; i++ {
		fieldNames = append(fieldNames, lang.FieldName(i))
		fieldIndex[lang.FieldName(i)] = uint16(i)
	}
}

func addKind(name string, named bool) {
	leaf := !named
	switch name {
	case "identifier", "property_identifier", "shorthand_property_identifier", "type_identifier", "number", "comment",
		"string_fragment", "escape_sequence", "this", "true", "false", "null", "statement_identifier",
		"shorthand_property_identifier_pattern", "private_property_identifier":
		leaf = true
	}
	kindNames, kindNamed, isLeaf = append(kindNames, name), append(kindNamed, named), append(isLeaf, leaf)
	isPunctuation = append(isPunctuation, !named && slices.Contains([]string{"(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "=>"}, name))
}

// withTree parses src and hands the root to use. It is the only place that touches
// the parser: each text has a parser of its own, which ends here with its tree,
// because neither can be used again safely after a time-out and neither is freed
// by the garbage collector.
func withTree(src string, use func(root *sitter.Node)) error {
	p := sitter.NewParser()
	defer p.Close()
	p.SetLanguage(typescript.GetLanguage())
	p.SetOperationLimit(int(maxParse.Microseconds()))
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
func parses(src string) bool {
	ok := false
	err := withTree(src, func(root *sitter.Node) { ok = !root.HasError() })
	return err == nil && ok
}

// parse makes a tree of src. Nothing of the parser stays alive.
func parse(src string) (*tree, error) {
	t := &tree{src: src}
	if err := withTree(src, t.flatten); err != nil {
		return nil, err
	}
	return t, nil
}

// read copies the node at the cursor. Each question to the parser costs more than
// everything else here, so those with a known answer are not asked.
func (t *tree) read(cursor *sitter.TreeCursor, parent node, broken bool) syntax {
	n := cursor.CurrentNode()
	s := syntax{kind: min(uint16(n.Symbol()), errorKind), start: n.StartByte(), parent: parent, child: none, next: none}
	s.named = kindNamed[s.kind]
	s.broken = broken && (s.kind == errorKind || n.IsMissing())
	if name := kindNames[s.kind]; s.named || broken || !strings.HasPrefix(t.src[s.start:], name) {
		s.end = n.EndByte()
	} else {
		s.end = s.start + uint32(len(name))
	}
	if !isPunctuation[s.kind] {
		s.field = fieldIndex[cursor.CurrentFieldName()]
	}
	return s
}

// flatten copies the parser's tree in pre-order.
func (t *tree) flatten(root *sitter.Node) {
	broken := root.HasError()
	cursor := sitter.NewTreeCursor(root)
	defer cursor.Close()
	t.at = make([]syntax, 0, len(t.src)/2+16)
	parent, before, depth := none, none, 0
	for {
		id := t.add(t.read(cursor, parent, broken), before)
		t.depth = max(t.depth, depth)
		if !isLeaf[t.at[id].kind] && cursor.GoToFirstChild() {
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

package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxArgumentDepth is how many levels deep arguments are nested at most.
const maxArgumentDepth = 100

// ArgumentKind says what an Argument is.
type ArgumentKind string

// The kinds of arguments.
const (
	ScalarArgument ArgumentKind = "scalar" // null, true, false, a number or a string
	ObjectArgument ArgumentKind = "object"
	ArrayArgument  ArgumentKind = "array"
	RefArgument    ArgumentKind = "ref"  // a part of a task's result
	ArgsArgument   ArgumentKind = "args" // a part of the program's arguments
)

// Argument is a value among a task's arguments, or all of them; which fields count
// depends on Kind.
type Argument struct {
	Kind   ArgumentKind
	Scalar string     // its JSON
	Names  []string   // of an object's members, in alphabetical order
	Items  []Argument // an array's elements, or an object's values in the order of Names
	Task   string     // of a reference
	Path   []Step     // inside the task's result, or inside the program's arguments
}

// Step leads from a value to its property Name, or to its element at Index where Name
// is empty.
type Step struct {
	Name  string
	Index int
}

// Ref is a reference to the result of a task; without a path it is to all of it.
type Ref struct {
	Task string
	Path []Step
}

// The keys of an object that stands for something else. It has no other key.
const (
	refKey     = "$ref"
	argsKey    = "$args"
	literalKey = "$literal"
)

// Argument reads t's arguments; without any it is an empty object. Its error says, for
// a reader of the request, which reference is malformed.
func (t DAGTask) Argument() (Argument, error) {
	if len(t.Arguments) == 0 || string(t.Arguments) == "null" {
		return Argument{Kind: ObjectArgument}, nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(t.Arguments))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return Argument{}, fmt.Errorf("arguments is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Argument{}, errors.New("arguments holds more than one value")
	}
	a, err := readArgument(v, 0)
	if err == nil && (a.Kind == ScalarArgument || a.Kind == ArrayArgument) {
		err = errors.New("arguments is no object")
	}
	return a, err
}

// Refs are the references in t's arguments, in their order. Arguments that cannot be
// read have none.
func (t DAGTask) Refs() []Ref {
	a, err := t.Argument()
	if err != nil {
		return nil
	}
	return a.Refs()
}

// Refs are the references in a, in their order.
func (a Argument) Refs() []Ref {
	if a.Kind == RefArgument {
		return []Ref{{a.Task, a.Path}}
	}
	var out []Ref
	for _, item := range a.Items {
		out = append(out, item.Refs()...)
	}
	return out
}

func readArgument(v any, depth int) (Argument, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return plainArgument(v, depth, readArgument)
	}
	for _, key := range []string{refKey, argsKey, literalKey} {
		inner, found := object[key]
		switch {
		case !found:
			continue
		case len(object) > 1:
			return Argument{}, fmt.Errorf("an object with %s has other keys beside it; write {%q: {…}} for an object that is meant as it is", key, literalKey)
		case key == literalKey:
			return literalArgument(inner, depth+1)
		}
		text, isText := inner.(string)
		if !isText {
			return Argument{}, fmt.Errorf("%s must be a string", key)
		}
		if key == refKey {
			return readRef(text)
		}
		return readArgs(text)
	}
	return plainArgument(v, depth, readArgument)
}

// literalArgument reads a value in which no key means anything.
func literalArgument(v any, depth int) (Argument, error) {
	return plainArgument(v, depth, literalArgument)
}

// plainArgument reads a value by itself, and what is in it with read.
func plainArgument(v any, depth int, read func(any, int) (Argument, error)) (Argument, error) {
	if depth > maxArgumentDepth {
		return Argument{}, fmt.Errorf("arguments are nested more than %d levels deep", maxArgumentDepth)
	}
	a := Argument{Kind: ScalarArgument}
	var items []any
	switch v := v.(type) {
	case map[string]any:
		a.Kind, a.Names = ObjectArgument, slices.Sorted(maps.Keys(v))
		for _, name := range a.Names {
			items = append(items, v[name])
		}
	case []any:
		a.Kind, items = ArrayArgument, v
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return a, fmt.Errorf("the number %s is out of range", v)
		}
		a.Scalar = v.String()
	default:
		text, err := scalarText(v)
		if err != nil {
			return a, err
		}
		a.Scalar = text
	}
	for _, item := range items {
		inner, err := read(item, depth+1)
		if err != nil {
			return a, err
		}
		a.Items = append(a.Items, inner)
	}
	return a, nil
}

// scalarText writes a value as JSON that people read: < and & stay as they are.
func scalarText(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func readRef(text string) (Argument, error) {
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	path, ok := readPath(text[end:])
	if !ok || end == 0 {
		return Argument{}, fmt.Errorf(`%s %q is no path; write it like "t1.items[0].id", or "t1" for the whole result`, refKey, text)
	}
	return Argument{Kind: RefArgument, Task: text[:end], Path: path}, nil
}

// readArgs reads a path into the program's arguments. What is no path is the name of
// one argument: property names may hold anything.
func readArgs(text string) (Argument, error) {
	if text == "" {
		return Argument{}, fmt.Errorf("%s is empty; name an argument of the program", argsKey)
	}
	path, ok := readPath("." + text)
	if !ok {
		path = []Step{{Name: text}}
	}
	return Argument{Kind: ArgsArgument, Path: path}, nil
}

// readPath reads .name and [3] one after the other.
func readPath(text string) ([]Step, bool) {
	var out []Step
	for text != "" {
		end := strings.IndexAny(text[1:], ".[") + 1
		if end == 0 {
			end = len(text)
		}
		step := text[:end]
		text = text[end:]
		if name, ok := strings.CutPrefix(step, "."); ok {
			if name == "" || strings.Contains(name, "]") {
				return nil, false
			}
			out = append(out, Step{Name: name})
			continue
		}
		digits, closed := strings.CutSuffix(step[1:], "]")
		index, err := strconv.ParseUint(digits, 10, 31)
		if !closed || err != nil {
			return nil, false
		}
		out = append(out, Step{Index: int(index)})
	}
	return out, true
}

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// decoder fills Go values from JSON with comments. Unlike encoding/json it goes
// on after the first problem, knows where each value stands, and reports unknown
// and repeated keys.
type decoder struct {
	src      []byte
	problems []Problem
	warnings []Problem
	at       map[string]int // offsets of values by path
}

// maxDepth bounds nested values; no configuration is deep.
const maxDepth = 64

// syntax parses src, and turns the parser's error into a Problem.
func syntax(src []byte) (hujson.Value, *Problem) {
	if depth(src) > maxDepth {
		return hujson.Value{}, &Problem{Message: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	v, err := hujson.Parse(src)
	if err == nil {
		return v, nil
	}
	p := &Problem{Message: strings.TrimPrefix(err.Error(), "hujson: ")}
	if m := positionText.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Column, _ = strconv.Atoi(m[2])
		p.Message = m[3]
	}
	return hujson.Value{}, p
}

var positionText = regexp.MustCompile(`(?s)line (\d+), column (\d+): (.*)$`)

// depth is an upper bound of the nesting in src: the parser recurses, so that a
// hostile file must not reach it.
func depth(src []byte) int {
	most, now := 0, 0
	inString := false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
			inString = c != '\n' // a comment may hold a lone quote
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// position is the line and column of an offset, both one-based, columns in characters.
func (d *decoder) position(offset int) (line, column int) {
	before := d.src[:min(offset, len(d.src))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

func (d *decoder) problemAt(offset int, path, format string, args ...any) {
	p := Problem{Path: path, Message: fmt.Sprintf(format, args...)}
	p.Line, p.Column = d.position(offset)
	d.problems = append(d.problems, p)
}

func (d *decoder) warnAt(offset int, path, format string, args ...any) {
	p := Problem{Path: path, Message: fmt.Sprintf(format, args...)}
	p.Line, p.Column = d.position(offset)
	d.warnings = append(d.warnings, p)
}

// problem and warn report about the value at a path that was decoded.
func (d *decoder) problem(path, format string, args ...any) {
	d.problemAt(d.offset(path), path, format, args...)
}

func (d *decoder) warn(path, format string, args ...any) {
	d.warnAt(d.offset(path), path, format, args...)
}

// offset is where the value at path stands, or the nearest value around it.
func (d *decoder) offset(path string) int {
	for {
		if at, ok := d.at[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}

// value decodes v into the settable value to.
func (d *decoder) value(v *hujson.Value, to reflect.Value, path string) {
	d.at[path] = v.StartOffset
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == 'n' {
		return // null is absent
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		d.value(v, to.Elem(), path)
	case reflect.Struct, reflect.Map:
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			d.wrong(v, path, "an object")
			return
		}
		d.object(o, to, path)
	case reflect.Slice:
		a, ok := v.Value.(*hujson.Array)
		if !ok {
			d.wrong(v, path, "a list")
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), len(a.Elements), len(a.Elements)))
		for i := range a.Elements {
			d.value(&a.Elements[i], to.Index(i), path+"["+strconv.Itoa(i)+"]")
		}
	default:
		d.literal(v, to, path)
	}
}

func (d *decoder) literal(v *hujson.Value, to reflect.Value, path string) {
	l, ok := v.Value.(hujson.Literal)
	switch to.Kind() { //nolint:exhaustive // the kinds that Config has
	case reflect.String:
		if !ok || l.Kind() != '"' {
			d.wrong(v, path, "a string")
			return
		}
		to.SetString(l.String())
	case reflect.Bool:
		if !ok || l.Kind() != 't' && l.Kind() != 'f' {
			d.wrong(v, path, "true or false")
			return
		}
		to.SetBool(l.Kind() == 't')
	case reflect.Int:
		n, err := strconv.ParseInt(strings.TrimSpace(string(l)), 10, 32)
		switch {
		case !ok || l.Kind() != '0' || errors.Is(err, strconv.ErrSyntax):
			d.wrong(v, path, "a whole number")
		case err != nil || n < 0:
			d.problemAt(v.StartOffset, path, "%s is out of range: want 0 to 2147483647", string(l))
		default:
			to.SetInt(n)
		}
	}
}

func (d *decoder) wrong(v *hujson.Value, path, want string) {
	have := "an object"
	switch x := v.Value.(type) {
	case *hujson.Array:
		have = "a list"
	case hujson.Literal:
		switch x.Kind() {
		case '"':
			have = "a string"
		case 't', 'f':
			have = string(x)
		default:
			have = "the number " + string(x)
		}
	}
	d.problemAt(v.StartOffset, path, "want %s, not %s", want, have)
}

func (d *decoder) object(o *hujson.Object, to reflect.Value, path string) {
	seen := map[string]bool{}
	if to.Kind() == reflect.Map && to.IsNil() {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for i := range o.Members {
		m := &o.Members[i]
		key := ""
		if l, ok := m.Name.Value.(hujson.Literal); ok {
			key = l.String()
		}
		sub := join(path, key)
		if seen[key] {
			d.problemAt(m.Name.StartOffset, sub, "the key stands twice")
			continue
		}
		seen[key] = true
		if to.Kind() == reflect.Map {
			entry := reflect.New(to.Type().Elem()).Elem()
			d.value(&m.Value, entry, sub)
			to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), entry)
			continue
		}
		if field, ok := fieldFor(to, key); ok {
			d.value(&m.Value, field, sub)
			continue
		}
		if strings.HasPrefix(key, "$") { // $schema and the like belong to editors
			continue
		}
		d.unknown(m.Name.StartOffset, sub, key, to.Type())
	}
}

func (d *decoder) unknown(offset int, path, key string, in reflect.Type) {
	known := keys(in)
	if i := slices.IndexFunc(known, func(k string) bool { return fold(k) == fold(key) }); i >= 0 {
		d.warnAt(offset, path, "unknown key; did you mean %q?", known[i])
		return
	}
	d.warnAt(offset, path, "unknown key; known are %s", strings.Join(known, ", "))
}

// fold makes timeoutMs, timeout-ms and TIMEOUT_MS equal.
func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

func fieldFor(to reflect.Value, key string) (reflect.Value, bool) {
	for i := range to.NumField() {
		if name := jsonName(to.Type().Field(i)); name != "" && name == key {
			return to.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func keys(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		if name := jsonName(f); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// join appends a key to a path; keys with other characters are quoted.
func join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ". []\"") {
		q, _ := json.Marshal(key) // a string always encodes
		return path + "[" + string(q) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

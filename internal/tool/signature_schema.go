package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// maxSchemaNesting bounds how deep a schema's JSON is read.
const maxSchemaNesting = 100

// fields is a JSON object that keeps the order in which its keys were written:
// authors put what matters first.
type fields struct {
	keys   []string
	values map[string]any
}

// get returns the value of a key; nil on a nil object.
func (f *fields) get(key string) any {
	if f == nil {
		return nil
	}
	return f.values[key]
}

func (f *fields) has(key string) bool {
	if f == nil {
		return false
	}
	_, ok := f.values[key]
	return ok
}

// text returns the string under a key, else an empty one.
func (f *fields) text(key string) string {
	s, _ := f.get(key).(string)
	return s
}

// object returns the object under a key, else nil.
func (f *fields) object(key string) *fields {
	o, _ := f.get(key).(*fields)
	return o
}

// list returns the list under a key, else nil.
func (f *fields) list(key string) []any {
	l, _ := f.get(key).([]any)
	return l
}

// number returns the whole number under a key.
func (f *fields) number(key string) (int, bool) {
	n, ok := f.get(key).(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}

// readOrdered decodes a JSON value into *fields, []any, string, json.Number, bool or nil.
func readOrdered(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return readValue(d, maxSchemaNesting)
}

func readValue(d *json.Decoder, nesting int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if nesting == 0 {
		return nil, errors.New("the schema is nested too deep")
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			item, err := readValue(d, nesting-1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = d.Token() // the closing bracket
		return list, err
	}
	f := &fields{values: map[string]any{}}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string) // a key is always a string
		value, err := readValue(d, nesting-1)
		if err != nil {
			return nil, err
		}
		if !f.has(key) {
			f.keys = append(f.keys, key)
		}
		f.values[key] = value
	}
	_, err = d.Token()
	return f, err
}

// lookUp follows a reference within a schema: "#" or "#" and a JSON pointer
// (RFC 6901). A reference to elsewhere, or to nothing, is not found.
func lookUp(root any, ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if pointer == "" {
		return root, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	at := root
	for step := range strings.SplitSeq(pointer[1:], "/") {
		if at, ok = child(at, unescape(step)); !ok {
			return nil, false
		}
	}
	return at, true
}

// unescape undoes the escapes of one step of a pointer in a URI fragment.
func unescape(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

func child(at any, step string) (any, bool) {
	switch at := at.(type) {
	case *fields:
		v, ok := at.values[step]
		return v, ok
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(at) {
			return nil, false
		}
		return at[i], true
	}
	return nil, false
}

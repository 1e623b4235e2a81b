package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// decode reads a tool's arguments; a key that does not exist is an error that says
// where it stands and which there are, because a misspelt option would otherwise be
// ignored in silence.
func decode(raw json.RawMessage, into any) *fault.Error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	problem := strings.TrimPrefix(err.Error(), "json: ")
	hint := "compare them with the tool's input schema"
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		problem = fmt.Sprintf("%s is a JSON %s; want %s", wrong.Field, wrong.Value, wants(wrong.Type))
	} else if path, keys := unknownKey(raw, reflect.TypeOf(into), ""); path != "" {
		problem = fmt.Sprintf("unknown field %q", path)
		hint = "there are: " + strings.Join(keys, ", ")
	}
	return fault.New(fault.InvalidInput, "the arguments cannot be read: %s", problem).WithHint("%s", hint)
}

// unknownKey finds the first key of an object that its type has no field for, and
// returns its path and the keys that there are. A path of "" means none.
func unknownKey(raw json.RawMessage, t reflect.Type, at string) (path string, keys []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "", nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return "", nil
	}
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[key]
		if !known {
			return at + key, slices.Sorted(maps.Keys(fields))
		}
		if path, keys := unknownKey(object[key], field, at+key+"."); path != "" {
			return path, keys
		}
	}
	return "", nil
}

// wants names a type in the words of JSON.
func wants(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the kinds that requests have
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

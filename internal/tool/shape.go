package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

const (
	// MaxProperties is how many properties a learnt schema has at most, over all its
	// depth: results may use data as keys.
	MaxProperties = 200
	// maxShapeDepth is how deep a value is looked into.
	maxShapeDepth = 8
	// maxItems is how many items of a list are looked at.
	maxItems = 100
	// maxKey bounds the name of a property; a longer one is data.
	maxKey = 100
)

// Shape is what values look like, as far as they were seen: a JSON Schema of
// types, properties and items. No value is in it.
type Shape struct {
	// Types are the JSON types seen, in order.
	Types []string
	// Properties are those of the objects among the values.
	Properties map[string]Shape
	// Required are the properties that every object had, in order.
	Required []string
	// Items is the shape of the items of the lists among the values; nil while no
	// list had any.
	Items *Shape
}

// ShapeOf returns the shape of one JSON value.
func ShapeOf(value json.RawMessage) (Shape, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return Shape{}, fmt.Errorf("shape of a value: %w", err)
	}
	return shapeOf(v, maxShapeDepth).cut(MaxProperties), nil
}

func shapeOf(v any, depth int) Shape {
	switch v := v.(type) {
	case map[string]any:
		return shapeOfObject(v, depth)
	case []any:
		s := Shape{Types: []string{"array"}}
		if depth > 0 && len(v) > 0 {
			items := Shape{}
			for _, item := range v[:min(len(v), maxItems)] {
				items = items.Merge(shapeOf(item, depth-1))
			}
			s.Items = &items
		}
		return s
	case string:
		return Shape{Types: []string{"string"}}
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return Shape{Types: []string{"integer"}}
		}
		return Shape{Types: []string{"number"}}
	case bool:
		return Shape{Types: []string{"boolean"}}
	}
	return Shape{Types: []string{"null"}}
}

func shapeOfObject(v map[string]any, depth int) Shape {
	s := Shape{Types: []string{"object"}}
	if depth == 0 || len(v) == 0 {
		return s
	}
	s.Properties = map[string]Shape{}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if len(key) > maxKey {
			continue
		}
		if len(s.Required) == MaxProperties {
			break
		}
		s.Properties[key] = shapeOf(v[key], depth-1)
		s.Required = append(s.Required, key)
	}
	return s
}

// Merge returns the shape of the values of both: types are united, and required is
// what both require. An empty shape, of no value at all, changes nothing.
func (s Shape) Merge(o Shape) Shape {
	return s.merge(o).cut(MaxProperties)
}

func (s Shape) merge(o Shape) Shape {
	out := Shape{Types: uniteTypes(s.Types, o.Types), Items: s.Items}
	switch {
	case s.Items != nil && o.Items != nil:
		items := s.Items.merge(*o.Items)
		out.Items = &items
	case o.Items != nil:
		out.Items = o.Items
	}
	if len(s.Properties)+len(o.Properties) > 0 {
		out.Properties = maps.Clone(s.Properties)
		if out.Properties == nil {
			out.Properties = map[string]Shape{}
		}
		for key, p := range o.Properties {
			out.Properties[key] = out.Properties[key].merge(p)
		}
	}
	out.Required = mergeRequired(s, o)
	return out
}

// mergeRequired: what is no object says nothing about properties.
func mergeRequired(s, o Shape) []string {
	switch {
	case !slices.Contains(s.Types, "object"):
		return o.Required
	case !slices.Contains(o.Types, "object"):
		return s.Required
	}
	var both []string
	for _, key := range s.Required {
		if slices.Contains(o.Required, key) {
			both = append(both, key)
		}
	}
	return both
}

// uniteTypes unites two lists; an integer is a number too.
func uniteTypes(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	out = slices.Compact(out)
	if slices.Contains(out, "number") {
		out = slices.DeleteFunc(out, func(t string) bool { return t == "integer" })
	}
	return out
}

// cut leaves at most most properties, the outer ones first.
func (s Shape) cut(most int) Shape {
	if s.count() <= most {
		return s
	}
	budget := most
	return s.take(&budget)
}

func (s Shape) count() int {
	n := len(s.Properties)
	for _, p := range s.Properties {
		n += p.count()
	}
	if s.Items != nil {
		n += s.Items.count()
	}
	return n
}

func (s Shape) take(budget *int) Shape {
	out := Shape{Types: s.Types}
	if len(s.Properties) > 0 {
		out.Properties = map[string]Shape{}
	}
	keys := slices.Sorted(maps.Keys(s.Properties))
	keys = keys[:min(len(keys), *budget)]
	*budget -= len(keys)
	for _, key := range keys {
		out.Properties[key] = s.Properties[key].take(budget)
	}
	for _, key := range s.Required {
		if _, kept := out.Properties[key]; kept {
			out.Required = append(out.Required, key)
		}
	}
	if s.Items != nil {
		items := s.Items.take(budget)
		out.Items = &items
	}
	return out
}

// shapeJSON is a Shape as JSON Schema writes it.
type shapeJSON struct {
	Type       json.RawMessage  `json:"type,omitempty"`
	Properties map[string]Shape `json:"properties,omitempty"`
	Required   []string         `json:"required,omitempty"`
	Items      *Shape           `json:"items,omitempty"`
}

// MarshalJSON writes the shape as a JSON Schema.
func (s Shape) MarshalJSON() ([]byte, error) {
	out := shapeJSON{Properties: s.Properties, Required: s.Required, Items: s.Items}
	var err error
	switch len(s.Types) {
	case 0:
	case 1:
		out.Type, err = json.Marshal(s.Types[0])
	default:
		out.Type, err = json.Marshal(s.Types)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what a JSON Schema says of types, properties and items, to
// the depth that shapes have. The rest of it is passed over, and so is what is not
// understood: schemas come from anywhere.
func (s *Shape) UnmarshalJSON(b []byte) error {
	var schema any
	if err := json.Unmarshal(b, &schema); err != nil {
		return err
	}
	*s = readSchema(schema, maxShapeDepth+1).cut(MaxProperties)
	return nil
}

func readSchema(schema any, depth int) Shape {
	var s Shape
	fields, ok := schema.(map[string]any)
	if !ok || depth == 0 {
		return s
	}
	if one, ok := fields["type"].(string); ok {
		s.Types = []string{one}
	} else {
		s.Types = stringsOf(fields["type"])
	}
	if properties, ok := fields["properties"].(map[string]any); ok && len(properties) > 0 {
		s.Properties = make(map[string]Shape, len(properties))
		for key, p := range properties {
			s.Properties[key] = readSchema(p, depth-1)
		}
	}
	s.Required = stringsOf(fields["required"])
	slices.Sort(s.Required)
	if items, ok := fields["items"]; ok {
		inner := readSchema(items, depth-1)
		s.Items = &inner
	}
	return s
}

// stringsOf returns the strings of a list; nil for anything else.
func stringsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Observed is what results have shown of the output of a tool, or of a capability.
type Observed struct {
	Shape Shape `json:"shape"`
	Count int64 `json:"count"` // of results
}

// Observe returns what one result shows: nothing when it is empty or no JSON.
func Observe(result json.RawMessage) Observed {
	if len(result) == 0 {
		return Observed{}
	}
	shape, err := ShapeOf(result)
	if err != nil {
		return Observed{}
	}
	return Observed{Shape: shape, Count: 1}
}

// Schema is the shape as a JSON Schema; empty when no result was seen.
func (o Observed) Schema() json.RawMessage {
	if o.Count == 0 {
		return nil
	}
	b, err := json.Marshal(o.Shape)
	if err != nil {
		return nil // no schema says as much
	}
	return b
}

// Add returns o with the observations of another.
func (o Observed) Add(more Observed) Observed {
	return Observed{Shape: o.Shape.Merge(more.Shape), Count: o.Count + more.Count}
}

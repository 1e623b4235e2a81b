package analysis

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// maxLine is how long a line may get before arguments go on lines of their own, in bytes.
const maxLine = 100

// valueWriter writes the arguments of a task.
type valueWriter struct {
	*steps
	optional bool // the task may run where one that it refers to was skipped
}

// value writes an argument as an expression, on the line that it begins on if that has
// room; used is how much of the line there is before it.
func (w valueWriter) value(a structure.Argument, indent string, used int) string {
	line := w.inline(a)
	if used+len(line) <= maxLine || len(a.Items) == 0 {
		return line
	}
	opens, closes := "{", "}"
	if a.Kind == structure.ArrayArgument {
		opens, closes = "[", "]"
	}
	deeper := indent + "  "
	var b strings.Builder
	b.WriteString(opens + "\n")
	for i, item := range a.Items {
		name := ""
		if a.Kind == structure.ObjectArgument {
			name = a.Names[i]
		}
		b.WriteString(deeper + inside(a, i, w.value(item, deeper, len(deeper)+len(name))) + ",\n")
	}
	return b.String() + indent + closes
}

// inline writes an argument on one line.
func (w valueWriter) inline(a structure.Argument) string {
	switch a.Kind {
	case structure.ScalarArgument:
		return a.Scalar
	case structure.RefArgument:
		t := w.byID[a.Task]
		return t.variable + accesses(a.Path, w.optional && t.mayBeSkipped)
	case structure.ArgsArgument:
		return argsName + accesses(a.Path, false)
	case structure.ObjectArgument, structure.ArrayArgument:
	}
	items := make([]string, len(a.Items))
	for i, item := range a.Items {
		items[i] = inside(a, i, w.inline(item))
	}
	if a.Kind == structure.ObjectArgument {
		return objectOf(items)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// inside is the text of item i of an object or array.
func inside(a structure.Argument, i int, text string) string {
	if a.Kind == structure.ArrayArgument {
		return text
	}
	return pairOf(a.Names[i], text)
}

// objectOf writes an object literal.
func objectOf(members []string) string {
	if len(members) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(members, ", ") + " }"
}

// pairOf writes a member of an object literal.
func pairOf(name, value string) string {
	if name == value && isVariable(name) {
		return name
	}
	return property(name) + ": " + value
}

// property writes the key of a member of an object literal.
func property(name string) string {
	switch {
	case name == "__proto__":
		return `["__proto__"]` // otherwise it would be the object's prototype
	case isName(name):
		return name
	}
	return stringLiteral(name)
}

// stringLiteral writes a text as a string for people to read: < and & stay as they are.
func stringLiteral(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// access is the access to a property.
func access(name string) string {
	if isName(name) {
		return "." + name
	}
	return "[" + stringLiteral(name) + "]"
}

// accesses is a path behind a variable, which may be undefined.
func accesses(path []structure.Step, optional bool) string {
	var b strings.Builder
	for i, s := range path {
		text := "[" + strconv.Itoa(s.Index) + "]"
		if s.Name != "" {
			text = access(s.Name)
		}
		if i == 0 && optional {
			text = "?." + strings.TrimPrefix(text, ".")
		}
		b.WriteString(text)
	}
	return b.String()
}

// mayThrow reports whether to evaluate an argument may throw: a property is read of
// what may have none.
func mayThrow(a structure.Argument) bool {
	return a.Kind == structure.RefArgument && len(a.Path) > 0 || a.Kind == structure.ArgsArgument && len(a.Path) > 1 ||
		slices.ContainsFunc(a.Items, mayThrow)
}

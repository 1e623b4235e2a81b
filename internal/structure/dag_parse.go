package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// ParseDAG reads a DAG and checks all of it. Its error is a fault.InvalidInput that
// names the task and says what to do. Conditions and code are text to it.
func ParseDAG(raw json.RawMessage) (DAG, error) {
	var list struct {
		Tasks []json.RawMessage `json:"tasks"`
	}
	if err := decode(raw, &list); err != nil {
		return DAG{}, fault.New(fault.InvalidInput, "the dag: %v", err).WithHint(`a dag is {"tasks": [{"id": "t1", "tool": "server:tool", "arguments": {}}]}`)
	}
	if n := len(list.Tasks); n > maxTasks {
		return DAG{}, fault.New(fault.InvalidInput, "the dag has %d tasks; the limit is %d", n, maxTasks).
			WithHint("split it, or write it as code with a loop")
	}
	var d DAG
	for i, text := range list.Tasks {
		var t DAGTask
		if err := decode(text, &t); err != nil {
			return DAG{}, fault.New(fault.InvalidInput, "%s: %v", nameOf(text, i), err).
				WithHint("a task has the keys id, one of tool, capability and code, and where they are needed arguments, depends_on, condition and on_error")
		}
		d.Tasks = append(d.Tasks, t)
	}
	if err := d.Validate(); err != nil {
		return DAG{}, err
	}
	return d, nil
}

// decode reads one JSON value into v and refuses keys that v does not have.
func decode(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return fmt.Errorf("this is a JSON %s, not an object", wrong.Value)
		}
		return fmt.Errorf("%s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return errors.New(strings.Replace(strings.TrimPrefix(err.Error(), "json: "), "unknown field", "there is no key", 1))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON value")
	}
	return nil
}

// nameOf is how an error calls a task that could not be read.
func nameOf(raw json.RawMessage, i int) string {
	var t struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &t) != nil || t.ID == "" {
		return fmt.Sprintf("tasks[%d]", i)
	}
	return fmt.Sprintf("task %q", t.ID)
}

// taskID matches the ids that a task may have. They hold no dot: that is what joins a
// task's id with the nodes inside it.
var taskID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,59}$`)

// Validate checks a DAG as ParseDAG does.
func (d DAG) Validate() error {
	if len(d.Tasks) == 0 {
		return fault.New(fault.InvalidInput, "the dag has no tasks").WithHint("give it at least one task, or send code")
	}
	seen := map[string]bool{}
	for i, t := range d.Tasks {
		if !taskID.MatchString(t.ID) {
			return fault.New(fault.InvalidInput, "tasks[%d]: %q cannot be an id", i, t.ID).
				WithHint("begin an id with a letter, go on with letters, digits, _ and -, and write at most 60 of them")
		}
		if seen[t.ID] {
			return fault.New(fault.InvalidInput, "task %q is there twice", t.ID).WithHint("give each task an id of its own")
		}
		seen[t.ID] = true
		if err := t.validate(); err != nil {
			return err
		}
	}
	for _, t := range d.Tasks {
		if err := t.checkNeeds(seen); err != nil {
			return err
		}
	}
	return d.checkCircles()
}

// fault is an error about t.
func (t DAGTask) fault(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidInput, "task %q: %s", t.ID, fmt.Sprintf(format, args...))
}

// validate checks what can be seen of a task alone.
func (t DAGTask) validate() error {
	kinds := 0
	for _, text := range []string{t.Tool, t.Capability, t.Code} {
		if text != "" {
			kinds++
		}
	}
	if kinds != 1 {
		return t.fault("it has %d of tool, capability and code", kinds).WithHint("give it exactly one of them")
	}
	server, name, _ := strings.Cut(t.Tool, ":")
	if t.Tool != "" && (server == "" || name == "" || strings.Contains(t.Tool, "*")) {
		return t.fault("%q is no tool", t.Tool).WithHint("name a tool as server:tool, as it was discovered")
	}
	switch t.OnError {
	case "", OnErrorFail, OnErrorSkip, OnErrorContinue:
	default:
		return t.fault("on_error cannot be %q", t.OnError).WithHint("write fail, skip or continue")
	}
	if _, err := t.Argument(); err != nil {
		return t.fault("%v", err).WithHint(`arguments is an object; {"$ref": "t1.id"} in it is a part of a result, {"$args": "x"} an argument of the program`)
	}
	return nil
}

// checkNeeds checks that what t needs is there and is not t.
func (t DAGTask) checkNeeds(known map[string]bool) error {
	for _, id := range t.DependsOn {
		switch {
		case id == t.ID:
			return t.fault("depends_on names the task itself").WithHint("take %q out of its depends_on", id)
		case !known[id]:
			return t.fault("depends_on names %q, and there is no such task", id).WithHint("name a task of the list, or add it")
		}
	}
	for _, r := range t.Refs() {
		switch {
		case r.Task == t.ID:
			return t.fault("a $ref in its arguments is to the task itself").WithHint("refer to a task that comes before it")
		case !known[r.Task]:
			return t.fault("a $ref in its arguments is to %q, and there is no such task", r.Task).
				WithHint(`a $ref begins with the id of a task: {"$ref": "t1.items[0].id"}; write {"$args": "x"} for an argument of the program`)
		}
	}
	return nil
}

// checkCircles names a circle of tasks that wait for each other.
func (d DAG) checkCircles() error {
	free := map[string]bool{}
	for _, layer := range d.Layers() {
		for _, id := range layer {
			free[id] = true
		}
	}
	stuck := func(id string) bool { return !free[id] }
	i := slices.IndexFunc(d.Tasks, func(t DAGTask) bool { return stuck(t.ID) })
	if i < 0 {
		return nil
	}
	var way []string // each needs the next; what is stuck needs something stuck
	for id := d.Tasks[i].ID; ; {
		if at := slices.Index(way, id); at >= 0 {
			circle := strings.Join(append(way[at:], id), " → ")
			return fault.New(fault.InvalidInput, "tasks wait for each other in a circle: %s", circle).
				WithHint("each waits for the next: take one depends_on or $ref out of the circle")
		}
		way = append(way, id)
		t, _ := d.Task(id)
		needs := t.Needs()
		id = needs[slices.IndexFunc(needs, stuck)]
	}
}

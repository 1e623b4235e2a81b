package structure

import (
	"encoding/json"
	"slices"
)

// maxTasks is how many tasks a DAG has at most.
const maxTasks = 200

// DAG is a program written as a list of tasks instead of as code. A task runs once
// all tasks that it needs have ended.
type DAG struct {
	Tasks []DAGTask `json:"tasks"`
}

// DAGTask is one step of a DAG: a call of a tool, a call of a capability, or code.
type DAGTask struct {
	// ID names the task, its result and its node: a letter, then letters, digits, _
	// and -, at most 60 in all.
	ID string `json:"id"`
	// Exactly one of Tool ("server:tool"), Capability (its name) and Code (the body of
	// an async function over mcp, capabilities, args and results) is set.
	Tool       string `json:"tool,omitempty"`
	Capability string `json:"capability,omitempty"`
	Code       string `json:"code,omitempty"`
	// Arguments is an object, or a reference to one; empty for none. At any depth
	// {"$ref": "t1.items[0].id"} stands for a part of a task's result, {"$args": "x"}
	// for an argument of the program, and {"$literal": …} for what it holds as it is.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// DependsOn are tasks that come first beside those that Arguments refers to.
	DependsOn []string `json:"depends_on,omitempty"`
	// Condition is a JavaScript expression over args and the results of the tasks that
	// come first; the task is skipped where it is false. Without one the task is
	// skipped when one that it needs was.
	Condition string `json:"condition,omitempty"`
	// OnError says what a failure of the task means; empty is OnErrorFail.
	OnError OnError `json:"on_error,omitempty"`
}

// OnError says what becomes of a program when one of its tasks fails.
type OnError string

// The ways to go on from a failure.
const (
	OnErrorFail     OnError = "fail"     // the program fails, once the other tasks of the layer have ended
	OnErrorSkip     OnError = "skip"     // the task counts as skipped
	OnErrorContinue OnError = "continue" // the task's result is {error: {message, code}}
)

// Task finds a task by its id.
func (d DAG) Task(id string) (DAGTask, bool) {
	for _, t := range d.Tasks {
		if t.ID == id {
			return t, true
		}
	}
	return DAGTask{}, false
}

// Layers are the ids of the tasks by the longest way that leads to each: those of a
// layer need nothing of each other and run in parallel, one layer after the other.
// Within a layer they are in the order of the list. Tasks in or behind a circle, which
// ParseDAG refuses, are in none.
func (d DAG) Layers() [][]string {
	needs := make([][]string, len(d.Tasks))
	for i, t := range d.Tasks {
		needs[i] = t.Needs()
	}
	done := map[string]bool{}
	waits := func(id string) bool { return !done[id] }
	var out [][]string
	for {
		var layer []string
		for i, t := range d.Tasks {
			if !done[t.ID] && !slices.ContainsFunc(needs[i], waits) {
				layer = append(layer, t.ID)
			}
		}
		if layer == nil {
			return out
		}
		for _, id := range layer {
			done[id] = true
		}
		out = append(out, layer)
	}
}

// Leaves are the ids of the tasks that no other needs, in the order of the list. Their
// results are the result of the program.
func (d DAG) Leaves() []string {
	needed := map[string]bool{}
	for _, t := range d.Tasks {
		for _, id := range t.Needs() {
			needed[id] = true
		}
	}
	var out []string
	for _, t := range d.Tasks {
		if !needed[t.ID] {
			out = append(out, t.ID)
		}
	}
	return out
}

// Needs are the ids of the tasks that come before t, each once: those that it names
// and those that it refers to.
func (t DAGTask) Needs() []string {
	var out []string
	for _, id := range t.DependsOn {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for _, r := range t.Refs() {
		if !slices.Contains(out, r.Task) {
			out = append(out, r.Task)
		}
	}
	return out
}

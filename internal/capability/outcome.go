package capability

import "github.com/pml-run/pml/internal/tool"

// ToolFailure is one call of a run that failed, also when the program caught it.
type ToolFailure struct {
	Tool   tool.ID `json:"tool"`
	NodeID string  `json:"node_id"`
	Error  string  `json:"error"`
}

// Outcome says what a finished run does to its capability.
type Outcome struct {
	// Save: the program may be found and run again from now on.
	Save bool `json:"saved"`
	// Partial: it was saved although tools had failed.
	Partial bool `json:"partial,omitempty"`
	// Full: the run and each of its calls succeeded.
	Full         bool          `json:"-"`
	ToolFailures []ToolFailure `json:"tool_failures,omitempty"`
}

// Judge applies the rule that all tools must succeed: a program whose caught
// failures hide that it does only half of its work must not be found by others.
// allowPartial is the caller's wish to save it all the same. A program that calls
// no tool is as good as any.
func Judge(succeeded, allowPartial bool, failures []ToolFailure) Outcome {
	o := Outcome{ToolFailures: failures}
	o.Full = succeeded && len(failures) == 0
	o.Partial = succeeded && len(failures) > 0 && allowPartial
	o.Save = o.Full || o.Partial
	return o
}

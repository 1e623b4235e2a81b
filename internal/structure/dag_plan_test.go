package structure_test

import (
	"encoding/json"
	"testing"

	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/structure"
)

// TestParsePlan takes a plan that the search suggests as it is.
func TestParsePlan(t *testing.T) {
	t.Parallel()
	schema := func(fields string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + fields + `}}`)
	}
	inputs := func(fields, required string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + fields + `},"required":[` + required + `]}`)
	}
	plan, ok := new(search.Knowledge).Plan([]search.Candidate{
		{ID: "mail:send", Score: 1, Input: inputs(`"to":{"type":"string"},"filter[name]":{"type":"string"}`, `"to","filter[name]"`)},
		{ID: "crm:find", Score: 0.9, Input: inputs(`"name":{"type":"string"}`, `"name"`), Output: schema(`"to":{"type":"string"}`)},
	})
	if !ok || len(plan.Tasks) != 2 {
		t.Fatalf("plan %+v", plan)
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	d, err := structure.ParseDAG(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	second, _ := d.Task("t2")
	if second.Tool != "mail:send" || len(second.Refs()) != 1 || second.Refs()[0].Task != "t1" {
		t.Errorf("task %+v of %s", second, raw)
	}
}

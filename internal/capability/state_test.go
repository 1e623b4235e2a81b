package capability

import (
	"fmt"
	"testing"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	removed := Event{Kind: ToolRemoved, Tool: "fs:read"}
	tests := []struct {
		from   State
		reason string
		event  Event
		want   State
		why    string
	}{
		{Candidate, "", Event{Kind: FullSuccess}, Active, ""},
		{Candidate, "", Event{Kind: FailureInARow}, Candidate, ""},
		{Candidate, "", removed, Candidate, ""},
		{Candidate, "", Event{Kind: Proved}, Candidate, ""},
		{Candidate, "", Event{Kind: Unused}, Retired, "not used"},
		{Active, "", Event{Kind: FullSuccess}, Active, ""},
		{Active, "", Event{Kind: Proved}, Promoted, ""},
		{Active, "", Event{Kind: FailureInARow}, Degraded, "3 failures in a row"},
		{Active, "", removed, Degraded, "tool fs:read was removed"},
		{Active, "", Event{Kind: Unused}, Active, ""},
		{Promoted, "", Event{Kind: FullSuccess}, Promoted, ""},
		{Promoted, "", Event{Kind: FailureInARow}, Degraded, "3 failures in a row"},
		{Promoted, "", Event{Kind: SchemaBroken, Tool: "fs:read"}, Degraded, "the schema of tool fs:read has changed"},
		{Degraded, "3 failures in a row", Event{Kind: FullSuccess}, Active, ""},
		{Degraded, "3 failures in a row", removed, Degraded, "tool fs:read was removed"},
		{Degraded, "x", Event{Kind: Proved}, Degraded, "x"},
		{Active, "", Event{Kind: PersonRetires, Reason: "wrong"}, Retired, "wrong"},
		{Retired, "wrong", Event{Kind: FullSuccess}, Retired, "wrong"},
		{Retired, "not used", Event{Kind: FullSuccess}, Active, ""},
		{Retired, "wrong", removed, Retired, "wrong"},
		{Retired, "wrong", Event{Kind: PersonRevives}, Candidate, ""},
		{Active, "", Event{Kind: PersonRevives}, Active, ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.from, " ", tt.event.Kind), func(t *testing.T) {
			t.Parallel()
			got, why := After(tt.from, tt.reason, tt.event)
			if got != tt.want || why != tt.why {
				t.Errorf("got %s (%s), want %s (%s)", got, why, tt.want, tt.why)
			}
		})
	}
}

func TestWhatStatesAllow(t *testing.T) {
	t.Parallel()
	want := map[State][2]bool{
		Candidate: {false, false}, Active: {true, true}, Promoted: {true, true}, Degraded: {true, false}, Retired: {false, false},
	}
	for s, w := range want {
		if got := [2]bool{s.Discoverable(), s.RunsByIntent()}; got != w {
			t.Errorf("%s: %v, want %v", s, got, w)
		}
	}
}

func TestMayPromote(t *testing.T) {
	t.Parallel()
	tests := []struct {
		c    Capability
		want bool
	}{
		{Capability{State: Active, UsageCount: 3, SuccessRate: 0.71}, true},
		{Capability{State: Active, UsageCount: 3, SuccessRate: 0.7}, false},
		{Capability{State: Active, UsageCount: 2, SuccessRate: 1}, false},
		{Capability{State: Degraded, UsageCount: 9, SuccessRate: 1}, false},
	}
	for _, tt := range tests {
		if got := MayPromote(tt.c); got != tt.want {
			t.Errorf("%+v: %t", tt.c, got)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	failed := []ToolFailure{{Tool: "fs:read", NodeID: "n1", Error: "gone"}}
	tests := map[string]struct {
		succeeded, allow    bool
		failures            []ToolFailure
		save, partial, full bool
	}{
		"all well":            {true, false, nil, true, false, true},
		"a caught failure":    {true, false, failed, false, false, false},
		"an allowed failure":  {true, true, failed, true, true, false},
		"the run failed":      {false, false, nil, false, false, false},
		"both failed":         {false, true, failed, false, false, false},
		"allowed, not needed": {true, true, nil, true, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Judge(tt.succeeded, tt.allow, tt.failures)
			if o.Save != tt.save || o.Partial != tt.partial || o.Full != tt.full || len(o.ToolFailures) != len(tt.failures) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/trace"
)

// moment is a time that survives the database, which keeps microseconds.
func moment() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// newRun returns a run as it is before it starts.
func newRun(tb testing.TB) trace.Run {
	tb.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		tb.Fatal(err)
	}
	return trace.Run{
		ID: id, Intent: "read the notes", Status: trace.Running, Owner: "gateway-1",
		Implementation: json.RawMessage(`{"type": "code"}`), Args: json.RawMessage(`{"n": 1}`),
		GatewayVersion: "1.2.3", StartedAt: moment(), LeaseUntil: moment().Add(time.Minute),
	}
}

// equalTimes compares instants, whatever zone they are shown in.
var equalTimes = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })}

func TestBeginRun(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	want := newRun(t)
	for range 2 { // it may be repeated
		if err := s.BeginRun(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Run(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, equalTimes); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

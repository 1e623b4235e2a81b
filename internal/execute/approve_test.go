package execute

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/policy"
)

// decided knows what became of each question.
type decided struct {
	ApprovalStore
	status map[uuid.UUID]policy.Status
}

func (d decided) Approval(_ context.Context, id uuid.UUID) (policy.Approval, error) {
	return policy.Approval{ID: id, Status: d.status[id]}, nil
}

// TestAnAnsweredQuestionIsNotAskedAgain: the answer came to a run that was about to be
// taken up, before it was back at its call.
func TestAnAnsweredQuestionIsNotAskedAgain(t *testing.T) {
	b := setup(t, nil)
	answered, open := policy.Approval{ID: uuid.New()}, policy.Approval{ID: uuid.New()}
	b.store.ApprovalStore = decided{status: map[uuid.UUID]policy.Status{answered.ID: policy.Approved, open.ID: policy.Pending}}
	row := b.engine.newRow(request(nil), &prepared{}, "running")
	r := b.engine.newRun(row, &prepared{}, request(nil))
	first, second := r.ask(answered), r.ask(open)
	a := b.engine.attend(t.Context(), r, time.Hour)
	if a.Status != StatusApproval || a.Approval == nil || a.Approval.ID != open.ID {
		t.Errorf("got %+v", a)
	}
	if got := <-first; got.ID != answered.ID || got.Status != policy.Approved {
		t.Errorf("the call that waits was told %+v", got)
	}
	select {
	case got := <-second:
		t.Errorf("an answer that nobody gave: %+v", got)
	default:
	}
}

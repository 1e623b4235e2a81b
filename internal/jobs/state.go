package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/riverqueue/river/rivertype"
)

// Outcome is what became of a job.
type Outcome string

// The outcomes.
const (
	Never   Outcome = "never"   // it was not done yet
	Waiting Outcome = "waiting" // it is due
	Running Outcome = "running"
	Done    Outcome = "ok"
	Failed  Outcome = "failed" // it may be tried again
)

// State is what there is to know of a kind of job.
type State struct {
	Kind    Kind
	Outcome Outcome       // of the latest job
	Detail  string        // what came of it, or the error
	At      time.Time     // when it began; zero where it has not
	Took    time.Duration // zero where it has not ended
	Next    time.Time     // when the next is due
}

// state describes a kind by its latest job, nil for none.
func (r *Runner) state(k Kind, job *rivertype.JobRow) State {
	s := State{Kind: k, Outcome: Never, Next: period(k.Every).Next(r.now())}
	if job == nil {
		return s
	}
	s.Outcome = outcome(job.State)
	if job.AttemptedAt != nil {
		s.At = *job.AttemptedAt
	}
	switch s.Outcome {
	case Done:
		// An output that is none leaves the detail empty.
		_ = json.Unmarshal(job.Output(), &s.Detail)
	case Failed:
		if n := len(job.Errors); n > 0 {
			s.Detail = cmp.Or(job.Errors[n-1].Error, "no reason was given")
		}
	case Never, Waiting, Running:
	}
	if job.FinalizedAt != nil && job.AttemptedAt != nil {
		s.Took = job.FinalizedAt.Sub(s.At)
	}
	return s
}

func outcome(s rivertype.JobState) Outcome {
	switch s {
	case rivertype.JobStateCompleted:
		return Done
	case rivertype.JobStateRunning:
		return Running
	case rivertype.JobStateRetryable, rivertype.JobStateCancelled, rivertype.JobStateDiscarded:
		return Failed
	case rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateScheduled:
	}
	return Waiting
}

package analysis

import "time"

// Limits of what is analysed. What is over one runs without marks.
const (
	maxSource   = 128 << 10
	maxNodes    = 100_000
	maxDepth    = 500
	maxEvents   = 500
	maxParse    = time.Second
	maxAnalysis = 2 * time.Second

	maxSources    = 32 // origins of one value
	maxValueDepth = 6  // nesting of a value that is still looked into
)

// limiter bounds the work of the passes that can go quadratic. Once it is over,
// they only unwind.
type limiter struct {
	deadline time.Time
	steps    uint
	spent    bool
}

// stepsPerLook is how many steps may pass between two looks at the clock.
const stepsPerLook = 256

func (l *limiter) over() bool {
	l.steps++
	if !l.spent && l.steps%stepsPerLook == 0 {
		l.spent = time.Now().After(l.deadline)
	}
	return l.spent
}

package store

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
)

// text makes s fit for a text column, which takes neither NUL nor broken UTF-8.
func text(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// texts does the same for a text[] column, in a copy that is never nil.
func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(string(s))
	}
	return out
}

func nullID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// duration is exact to the microsecond, which is what the database keeps of times:
// the end of a call is to be the same whenever it is computed.
func duration(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Microsecond)
}

// faultJSON is what an error column holds; nil for no error.
func faultJSON(e *fault.Error) *string {
	if e == nil {
		return nil
	}
	b, err := json.Marshal(e)
	if err != nil {
		return nil // cannot be: the type is strings and numbers
	}
	return jsonb(b)
}

func faultOf(b json.RawMessage) (*fault.Error, error) {
	if len(b) == 0 {
		return nil, nil
	}
	e := new(fault.Error)
	return e, json.Unmarshal(b, e)
}

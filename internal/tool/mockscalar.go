package tool

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// text is a string of a format, or one that says what it stands for.
func (m *mocker) text(s map[string]any, name string) string {
	at := time.Date(2026, 1, 1+m.r.IntN(28), m.r.IntN(24), 0, 0, 0, time.UTC)
	switch s["format"] {
	case "date-time":
		return at.Format(time.RFC3339)
	case "date":
		return at.Format(time.DateOnly)
	case "time":
		return at.Format("15:04:05Z")
	case "uuid":
		return fmt.Sprintf("%08x-0000-4000-8000-%012x", m.r.Uint32(), m.r.Uint64N(1<<48))
	case "email", "idn-email":
		return fmt.Sprintf("person%d@example.com", m.r.IntN(100))
	case "uri", "url", "iri", "uri-reference":
		return fmt.Sprintf("https://example.com/%d", m.r.IntN(1000))
	case "hostname":
		return "host.example.com"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "byte", "base64":
		return "bW9jaw=="
	}
	if name == "" {
		name = "text"
	}
	text := fmt.Sprintf("mock %s %d", strings.ReplaceAll(Snake(name), "_", " "), m.r.IntN(1000))
	if least := intOf(s, "minLength", 0); len(text) < least {
		text += strings.Repeat(".", min(least-len(text), 10_000))
	}
	if most := intOf(s, "maxLength", math.MaxInt32); len(text) > most {
		text = text[:max(most, 0)]
	}
	return text
}

func (m *mocker) integer(s map[string]any) any {
	low, high := bounds(s, 1, 100)
	low, high = math.Ceil(low), math.Floor(high)
	if step, ok := s["multipleOf"].(float64); ok && step >= 1 {
		return math.Ceil(low/step) * step
	}
	if high <= low {
		return low
	}
	return low + float64(m.r.Int64N(int64(min(high-low+1, 1<<31))))
}

func (m *mocker) number(s map[string]any) any {
	low, high := bounds(s, 0, 100)
	if step, ok := s["multipleOf"].(float64); ok && step > 0 {
		return math.Ceil(low/step) * step
	}
	if high <= low {
		return low
	}
	return math.Round((low+m.r.Float64()*(high-low))*100) / 100
}

// bounds are the smallest and the largest number that a schema allows. An exclusive
// bound is kept at a distance; draft 4's boolean form is passed over.
func bounds(s map[string]any, low, high float64) (float64, float64) {
	_, hasLow := s["minimum"].(float64)
	if v, ok := s["minimum"].(float64); ok {
		low = v
	}
	if v, ok := s["exclusiveMinimum"].(float64); ok {
		low, hasLow = v+1, true
	}
	hasHigh := false
	if v, ok := s["maximum"].(float64); ok {
		high, hasHigh = v, true
	}
	if v, ok := s["exclusiveMaximum"].(float64); ok {
		high, hasHigh = v-1, true
	}
	if hasLow && !hasHigh && high < low {
		high = low + 100
	}
	if hasHigh && !hasLow && low > high {
		low = high - 100
	}
	return low, high
}

func intOf(s map[string]any, key string, otherwise int) int {
	if v, ok := s[key].(float64); ok && v >= 0 && v <= math.MaxInt32 {
		return int(v)
	}
	return otherwise
}

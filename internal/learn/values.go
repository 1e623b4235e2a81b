package learn

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
)

const (
	// mostValues is how many distinct values of a parameter are kept: more than make
	// an enumeration, so that one value more can be told from many more.
	mostValues = capability.MostEnum + 3
	// longestValue is the largest value in bytes that is kept; a longer one is data.
	longestValue = 200
	// mostParameters bounds what is kept of one program.
	mostParameters = 100
)

// UpdateValues returns the statistics after one more successful run with these
// arguments, a JSON object. The given ones are not changed.
func UpdateValues(list []capability.ParameterStats, arguments json.RawMessage) []capability.ParameterStats {
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil {
		return list
	}
	out := slices.Clone(list)
	for i := range out {
		value, ok := given[out[i].Name]
		out[i].Runs++
		if ok {
			out[i] = addValue(out[i], value)
		}
		delete(given, out[i].Name)
	}
	for name, value := range given {
		out = append(out, addValue(capability.ParameterStats{Name: name, Runs: 1}, value))
	}
	known := out[len(list):] // a map gives them in any order
	slices.SortFunc(known, func(a, b capability.ParameterStats) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return out[:min(len(out), mostParameters)]
}

func addValue(s capability.ParameterStats, raw json.RawMessage) capability.ParameterStats {
	var compact bytes.Buffer
	var v any
	if json.Compact(&compact, raw) != nil || json.Unmarshal(raw, &v) != nil {
		return s
	}
	s.Given++
	text, isText := v.(string)
	if isText {
		format := formatOf(text)
		if s.Strings > 0 && s.Format != format {
			format = ""
		}
		s.Strings++
		s.Format = format
	}
	switch v.(type) {
	case map[string]any, []any:
		s.Many = true
		return s
	}
	return countValue(s, compact.Bytes())
}

func countValue(s capability.ParameterStats, value json.RawMessage) capability.ParameterStats {
	s.Values = slices.Clone(s.Values)
	for i := range s.Values {
		if bytes.Equal(s.Values[i].Value, value) {
			s.Values[i].Count++
			return s
		}
	}
	if len(value) > longestValue || len(s.Values) >= mostValues {
		s.Many = true
		return s
	}
	s.Values = append(s.Values, capability.ValueCount{Value: value, Count: 1})
	return s
}

// formatOf names the format of JSON Schema (2020-12, validation §7.3) that a text
// has; empty when it has none of those looked for.
func formatOf(text string) string {
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return "date-time"
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return "date"
	}
	if len(text) == 36 && uuid.Validate(text) == nil {
		return "uuid"
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		if a.Is4() {
			return "ipv4"
		}
		return "ipv6"
	}
	if a, err := mail.ParseAddress(text); err == nil && a.Address == text {
		return "email"
	}
	if u, err := url.Parse(text); err == nil && u.Scheme != "" && u.Host != "" {
		return "uri"
	}
	return ""
}

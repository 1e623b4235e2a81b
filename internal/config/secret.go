package config

import "log/slog"

// mask is what every printed form of a non-empty Secret shows.
const mask = "***"

// Secret is a text that must not be printed: logs, errors and JSON show a mask.
type Secret string

// Reveal returns the text itself; call it only where the text is used.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer with a mask.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString keeps %#v from showing the text.
func (s Secret) GoString() string { return s.String() }

// LogValue implements slog.LogValuer with a mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON writes the mask. A Secret is read as a plain string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

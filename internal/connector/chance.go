package connector

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// chance makes values up. It has no state: what is asked of the same things under the
// same seed is the same, in whatever order calls come.
type chance string

func (c chance) sum(of ...any) [sha256.Size]byte {
	return sha256.Sum256(fmt.Append(nil, string(c), of))
}

// number is one of [low, high].
func (c chance) number(low, high int, of ...any) int {
	sum := c.sum(of...)
	return low + int(binary.BigEndian.Uint64(sum[:])%uint64(high-low+1))
}

// hex are so many hexadecimal digits, at most 64.
func (c chance) hex(digits int, of ...any) string {
	sum := c.sum(of...)
	return hex.EncodeToString(sum[:])[:digits]
}

// moment is a time in the first four weeks of 2026, on the hour, in UTC.
func (c chance) moment(of ...any) time.Time {
	return time.Date(2026, 1, 1, c.number(0, 28*24-1, of...), 0, 0, 0, time.UTC)
}

// at is a moment as most interfaces write it.
func (c chance) at(of ...any) string { return c.moment(of...).Format(time.RFC3339) }

// of picks one of the words.
func (c chance) pick(words []string, of ...any) string {
	return words[c.number(0, len(words)-1, of...)]
}

// uuid is an identifier of version 4.
func (c chance) uuid(of ...any) string {
	h := c.hex(32, of...)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32]
}

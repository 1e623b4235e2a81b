package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// sourceMap holds, for each line of generated code, its segments in order.
type sourceMap [][]segment

// segment maps a generated column to a place in the source, all zero-based.
type segment struct{ column, sourceLine, sourceColumn int }

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// parseSourceMap reads a version 3 source map with one source.
func parseSourceMap(text []byte) (sourceMap, error) {
	var m struct {
		Mappings string `json:"mappings"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("source map: %w", err)
	}
	var out sourceMap
	var at segment // line and column of the source run on over the lines
	for line := range strings.SplitSeq(m.Mappings, ";") {
		var segments []segment
		at.column = 0
		for text := range strings.SplitSeq(line, ",") {
			fields, err := decodeVLQ(text)
			if err != nil {
				return nil, err
			}
			if len(fields) > 0 {
				at.column += fields[0]
			}
			if len(fields) < 4 {
				continue
			}
			at.sourceLine += fields[2]
			at.sourceColumn += fields[3]
			segments = append(segments, at)
		}
		out = append(out, segments)
	}
	return out, nil
}

// decodeVLQ reads the base-64 numbers of one segment.
func decodeVLQ(text string) ([]int, error) {
	var out []int
	value, shift := 0, 0
	for i := range len(text) {
		d := strings.IndexByte(base64Digits, text[i])
		if d < 0 || shift > 30 {
			return nil, errors.New("source map: not base 64")
		}
		value |= (d & 31) << shift
		shift += 5
		if d&32 != 0 {
			continue
		}
		n := value >> 1
		if value&1 != 0 {
			n = -n
		}
		out = append(out, n)
		value, shift = 0, 0
	}
	return out, nil
}

// find returns the last segment that begins at or before a one-based place.
func (m sourceMap) find(line, column int) (segment, bool) {
	if line < 1 || line > len(m) || len(m[line-1]) == 0 {
		return segment{}, false
	}
	segments := m[line-1]
	i, exact := slices.BinarySearchFunc(segments, column-1, func(s segment, c int) int { return cmp.Compare(s.column, c) })
	if !exact {
		i = max(i-1, 0)
	}
	return segments[i], true
}

package capability

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pml-run/pml/internal/fault"
)

const (
	// A name from an intent has at most so many words and bytes.
	nameWords = 6
	nameBytes = 60
	// maxName bounds a name that somebody chooses.
	maxName = 100
	noName  = "capability"
)

// insignificant are the words of an intent that say nothing about what is done.
var insignificant = words(`a an and are as at be by can could do does for from get give hey how i in into is it its
	let lets me my of off on or our out over please should so some that the their them then there these they this
	those to up us want was we what when where which will with would you your`)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// NameFromIntent makes a snake_case name of an intent's significant words. taken
// says whether a name is in use; the result is none of those.
func NameFromIntent(intent string, taken func(string) bool) string {
	all := strings.FieldsFunc(strings.ToLower(intent), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	significant := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return insignificant[w] })
	if len(significant) == 0 {
		significant = all
	}
	name := ""
	for _, w := range significant[:min(len(significant), nameWords)] {
		longer := strings.TrimPrefix(name+"_"+w, "_")
		if len(longer) > nameBytes {
			break
		}
		name = longer
	}
	if name == "" {
		name = noName
	}
	if unicode.IsDigit([]rune(name)[0]) {
		name = "_" + name
	}
	return UniqueName(name, taken)
}

// UniqueName adds the first free number to a name that is taken.
func UniqueName(name string, taken func(string) bool) string {
	if !taken(name) {
		return name
	}
	for n := 2; ; n++ {
		if numbered := name + "_" + strconv.Itoa(n); !taken(numbered) {
			return numbered
		}
	}
}

var identifier = regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$]*$`)

// CheckName refuses a name that a program could not write behind "capabilities.".
func CheckName(name string) error {
	if len(name) <= maxName && identifier.MatchString(name) {
		return nil
	}
	return fault.New(fault.InvalidInput, "%q is no name for a capability", name).
		WithHint("use letters, digits and underscores, at most %d bytes, no digit first", maxName)
}

//go:build !amd64 && !arm64

package jail

// No filter is written for this CPU; Detect reports that.
const (
	arch   = 0
	hasX32 = false
)

var allowed = allowedEverywhere

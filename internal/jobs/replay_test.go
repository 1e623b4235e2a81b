package jobs

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	var list []capability.Surprise
	for i := range uint64(400) {
		s := capability.Surprise{ID: uuid.UUID{}, Priority: 0.05}
		binary.BigEndian.PutUint64(s.ID[:], i)
		if i%2 == 0 {
			s.Priority = 0.9
		}
		list = append(list, s)
	}
	const n = 100
	drawn := draw(list, n, 1)
	if !reflect.DeepEqual(drawn, draw(list, n, 1)) {
		t.Error("the same seed draws others")
	}
	if reflect.DeepEqual(drawn, draw(list, n, 2)) {
		t.Error("another seed draws the same")
	}
	seen, high := map[uuid.UUID]bool{}, 0
	for _, s := range drawn {
		seen[s.ID] = true
		if s.Priority > 0.5 {
			high++
		}
	}
	// The weights are 0.94 and 0.17: about 85 without putting back would be 80 in
	// the end; by chance alone it would be 50.
	if len(drawn) != n || len(seen) != n || high < 70 || high > 95 {
		t.Errorf("%d drawn, %d different, %d of high priority", len(drawn), len(seen), high)
	}
	if got := draw(list[:3], n, 1); len(got) != 3 {
		t.Errorf("%d of three", len(got))
	}
}

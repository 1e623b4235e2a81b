package jobs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/learn"
)

const (
	// replayPool is among how many of the greatest surprises is drawn, replayed how
	// many are.
	replayPool, replayed = 2000, 200
	// replayExponent says how much priority counts when drawing: 0 would be nothing,
	// 1 in proportion (Schaul et al., Prioritized Experience Replay, 2015, §3.3).
	replayExponent = 0.6
)

// experience is where finished runs are read again.
type experience interface {
	// Surprises returns the runs with the highest priorities, those first.
	Surprises(ctx context.Context, limit int) ([]capability.Surprise, error)
	Learning(ctx context.Context, id uuid.UUID, version int) (capability.Learning, error)
	// SetPriorities returns how many were others before.
	SetPriorities(ctx context.Context, ids []uuid.UUID, priorities []float64) (int64, error)
}

// Replay looks again at runs that were surprises when they happened, and gives them
// the priority that they have by what is known today, as prioritized experience
// replay does with what it has drawn: a way that has been taken often since is no
// surprise any more. Counts and rates are left alone: each run was learnt from
// once, when it was stored. So the surprises that people are shown, and those that
// the retention keeps, are those that are still to be explained. The job's hour is the
// seed of its drawing.
func Replay(store experience, now func() time.Time) Kind {
	do := func(ctx context.Context) (string, error) {
		pool, err := store.Surprises(ctx, replayPool)
		if err != nil {
			return "", err
		}
		drawn := draw(pool, replayed, uint64(now().Unix()/3600))
		ids, priorities, err := reconsider(ctx, store, drawn)
		if err != nil {
			return "", err
		}
		n, err := store.SetPriorities(ctx, ids, priorities)
		return fmt.Sprintf("%d of %d runs replayed, %d have another priority", len(ids), len(pool), n), err
	}
	return Kind{Name: "replay", About: "look again at runs that were surprises", Every: 6 * time.Hour, Do: do}
}

// draw takes n of the list without putting any back, each with a chance in proportion
// to priority^0.6: those with the largest u^(1/w), u uniform (Efraimidis and Spirakis,
// Weighted random sampling with a reservoir, 2006), here by its logarithm.
func draw(list []capability.Surprise, n int, seed uint64) []capability.Surprise {
	if len(list) <= n {
		return list
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a sample, no secret
	keys := make(map[uuid.UUID]float64, len(list))
	for _, s := range list {
		keys[s.ID] = math.Log(1-random.Float64()) / math.Pow(s.Priority, replayExponent)
	}
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b capability.Surprise) int {
		return cmp.Or(cmp.Compare(keys[b.ID], keys[a.ID]), slices.Compare(a.ID[:], b.ID[:]))
	})
	return out[:n]
}

// version is one version of a capability.
type version struct {
	id     uuid.UUID
	number int
}

// reconsider works out the priorities by what is known today. A run of a path that
// was forgotten is as new as when it came.
func reconsider(ctx context.Context, store experience, drawn []capability.Surprise) ([]uuid.UUID, []float64, error) {
	known := map[version]capability.Learning{}
	ids, priorities := make([]uuid.UUID, len(drawn)), make([]float64, len(drawn))
	for i, s := range drawn {
		v := version{s.Capability, s.Version}
		if _, read := known[v]; !read {
			l, err := store.Learning(ctx, v.id, v.number)
			if err != nil {
				return nil, nil, err
			}
			known[v] = l
		}
		ids[i], priorities[i] = s.ID, learn.Priority(known[v], learn.Run{PathHash: s.PathHash, Success: s.Success, DurationMS: s.DurationMS})
	}
	return ids, priorities, nil
}

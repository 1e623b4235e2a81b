package daemon

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/tool"
)

const (
	// lookEvery is how often is looked for what other gateways have written.
	lookEvery = 5 * time.Second
	// readAllEvery is how often everything is read again: what was deleted leaves no
	// other trace.
	readAllEvery = 10 * time.Minute
	// restFor is the shortest time between two looks.
	restFor = time.Second
	// mostServed is how many runs wait at most until their intents are learnt.
	mostServed = 256
)

// discovery keeps what pml_discover finds up to date: it reads from the store what is
// known of tools and capabilities, embeds their texts in the background, and lets
// them learn from the intents that they served. All that it knows is in the store;
// it may be killed at any time, and several gateways may share one.
type discovery struct {
	store  *store.Store
	finder *search.Finder
	logger *slog.Logger
	// model opens the configured model; it may take minutes to fetch it.
	model func(context.Context) (*model, error)
	// settings tell whether another model is configured.
	settings func() any

	factsDue, vectorsDue chan struct{}
	served               chan use
	dropped              prometheus.Counter

	mu    sync.Mutex // held while facts are read
	facts knownFacts

	learning sync.Mutex // held while vectors are changed
	vectors  *vectors   // nil while no model is open
	space    atomic.Pointer[store.EmbeddingSpace]
	again    atomic.Bool // all vectors are to be read again
}

// use is an intent that a run has served.
type use struct {
	intent   string
	keys     []store.EmbeddingKey
	attempts int
}

func newDiscovery(s *store.Store, logger *slog.Logger, registry prometheus.Registerer) *discovery {
	d := &discovery{
		store: s, logger: logger.With("system", "discovery"),
		factsDue: make(chan struct{}, 1), vectorsDue: make(chan struct{}, 1), served: make(chan use, mostServed),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pml_discovery_uses_dropped_total", Help: "Served intents that were not learnt because too many waited.",
		}),
	}
	d.facts.clear()
	if registry != nil {
		registry.MustRegister(d.dropped)
	}
	return d
}

// start works in the background until the returned function is called.
func (d *discovery) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { d.followFacts(ctx) })
	wg.Go(func() { d.followVectors(ctx) })
	return func() {
		cancel()
		wg.Wait()
		d.closeModel()
	}
}

// Changed leaves word that there is something new; it never waits.
func (d *discovery) Changed() { leaveWord(d.factsDue) }

// leaveWord wakes the one who waits on a channel with room for one.
func leaveWord(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look all the same
	}
}

// Refresh reads everything again and embeds what is not embedded yet. It may be
// called at any time and as often as one likes; it returns when all is done.
func (d *discovery) Refresh(ctx context.Context) error {
	if err := d.readFacts(ctx, true); err != nil {
		return err
	}
	d.again.Store(true)
	return d.embedAll(ctx)
}

// Served notes that a successful run has served an intent with tools and, unless it
// is zero, a capability. They are learnt in the background; where too many wait, this
// one is not.
func (d *discovery) Served(intent string, tools []tool.ID, capability uuid.UUID) {
	defer d.Changed() // their statistics have changed too
	if intent == "" {
		return
	}
	u := use{intent: intent}
	for _, id := range tools {
		u.keys = append(u.keys, store.EmbeddingKey{Kind: store.ToolEmbedding, Ref: string(id)})
	}
	if capability != uuid.Nil {
		u.keys = append(u.keys, store.EmbeddingKey{Kind: store.CapabilityEmbedding, Ref: capability.String()})
	}
	used := make([]string, len(u.keys))
	for i, k := range u.keys {
		used[i] = k.Ref
	}
	d.finder.Used(used)
	d.wait(u)
}

// wait puts a use in the queue.
func (d *discovery) wait(u use) {
	select {
	case d.served <- u:
	default:
		d.dropped.Inc()
	}
}

// followFacts looks at the store now and then, and when there is word of something new.
func (d *discovery) followFacts(ctx context.Context) {
	all := time.Now() // start has read everything
	for ctx.Err() == nil {
		whole := time.Since(all) >= readAllEvery
		if whole {
			all = time.Now()
			d.again.Store(true)
		}
		err := d.readFacts(ctx, whole)
		if err != nil && ctx.Err() == nil {
			d.logger.WarnContext(ctx, "what is known of tools and capabilities could not be read", "error", err)
		}
		leaveWord(d.vectorsDue)
		pause(ctx, restFor, nil)
		pause(ctx, lookEvery-restFor, d.factsDue)
	}
}

// followVectors opens the model and keeps the vectors up to date.
func (d *discovery) followVectors(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.keepModel(ctx); err != nil && ctx.Err() == nil {
			d.logger.WarnContext(ctx, "search goes by words only", "error", err)
			pause(ctx, retryModel, nil)
			continue
		}
		if err := d.embedAll(ctx); err != nil && ctx.Err() == nil {
			d.logger.WarnContext(ctx, "the descriptions of tools could not be embedded", "error", err)
			pause(ctx, retryEmbedding, nil)
			continue
		}
		pause(ctx, readAllEvery, d.vectorsDue)
	}
}

// pause waits for a time, for word, or for the end.
func pause(ctx context.Context, d time.Duration, word <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-word:
	case <-ctx.Done():
	}
}

// Nearest implements search.Neighbours with the store's index.
func (d *discovery) Nearest(ctx context.Context, vector []float32, n int) ([]search.Neighbour, error) {
	space := d.space.Load()
	if space == nil {
		return nil, fault.New(fault.Unavailable, "no embedding model is open")
	}
	near, err := d.store.NearestEmbeddings(ctx, *space, vector, n)
	out := make([]search.Neighbour, len(near))
	for i, e := range near {
		out[i] = search.Neighbour{ID: e.Ref, Cosine: e.Cosine}
	}
	return out, err
}

// model is an open model.
type model struct {
	embedding.Encoder
	close func() error
	// settings are those that it was opened with.
	settings any
}

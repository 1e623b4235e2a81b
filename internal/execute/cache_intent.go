package execute

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pml-run/pml/internal/capability"
)

// IntentLevel is that of a result that was found by an intent like the one asked for.
const IntentLevel = "intent_similar"

const (
	// likeEnough is the cosine from which two intents ask for the same.
	likeEnough = 0.95
	// intentTTL bounds the age of a result that is found by a like intent.
	intentTTL = time.Hour
)

// Vectors turns intents into unit vectors.
type Vectors interface {
	// Vector returns the vector of an intent; false while there is no model.
	Vector(ctx context.Context, intent string) ([]float32, bool)
}

// intentKey tells the results of one program apart by what they were asked for with.
type intentKey struct {
	capability.CacheKey

	intent string
}

// keptIntent is a result with the intent that a capability was run for by name.
type keptIntent struct {
	plan    *cachePlan
	name    string
	version int
	vector  []float32
	args    string // hash of the request's own
	result  json.RawMessage
	at      time.Time
}

// keepIntent keeps the result of a capability's run under the intent that it was run
// for. Code that was sent is not kept so: its literals are part of what was asked.
func (c *Cache) keepIntent(ctx context.Context, v Vectors, p *cachePlan, r *activeRun, result json.RawMessage) {
	if v == nil || c.options.Shared || !c.options.Settings().Intents || !r.byName {
		return
	}
	vector, ok := v.Vector(ctx, r.run.Intent)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unchangedLocked(p) {
		c.intents.Set(intentKey{p.key, r.run.Intent}, keptIntent{
			plan: p, name: r.ready.capability.Name, version: r.ready.capability.Version, vector: vector,
			args: hashOf(canonicalJSON(r.run.Args)), result: result, at: r.run.StartedAt,
		})
	}
}

// findIntent finds the result that was asked for with the likest intent and the same
// arguments. similarity is the cosine of the two intents.
func (c *Cache) findIntent(ctx context.Context, v Vectors, req Request) (kept keptIntent, similarity float64, ok bool) {
	if v == nil || !c.on(ctx) || !c.options.Settings().Intents || !req.Options.mayUseCache() {
		return kept, 0, false
	}
	vector, known := v.Vector(ctx, req.Intent)
	if !known {
		return kept, 0, false
	}
	args, now := hashOf(canonicalJSON(req.Args)), c.options.Now()
	for _, e := range c.intents.All() {
		if e.args != args || now.Sub(e.at) >= intentTTL || len(e.vector) != len(vector) {
			continue
		}
		if s := dot(e.vector, vector); s >= likeEnough && s > similarity {
			kept, similarity, ok = e, s, true
		}
	}
	return kept, similarity, ok
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// fromIntent answers an intent with the result of an earlier one like it; nil where
// there is none, or the capability may not be run now.
func (e *Engine) fromIntent(ctx context.Context, req Request) *Answer {
	v, _ := e.config.Matcher.(Vectors)
	kept, similarity, ok := e.config.Cache.findIntent(ctx, v, req)
	if !ok {
		return nil
	}
	req.Implementation = &Implementation{Type: CapabilityType, Name: kept.name, Version: kept.version}
	ready, err := e.planner.prepare(ctx, req)
	if err != nil {
		return nil // it runs, or says why not, in the usual way
	}
	if asks, err := e.judge(ready); err != nil || len(asks) > 0 || !e.config.Cache.unchanged(kept.plan) {
		return nil
	}
	e.config.Cache.hit(IntentLevel)
	a := e.answerWith(ctx, req, ready, found{kept.result, max(e.config.Cache.options.Now().Sub(kept.at), 0), IntentLevel})
	if a != nil {
		a.Similarity = similarity
	}
	return a
}

package search

import (
	"container/list"
	"sync"
)

// cachedQueries is how many intents keep their vectors: 256 with up to nine vectors of
// 384 numbers each are at most 3.5 MB.
const cachedQueries = 256

// queryCache keeps the vectors of the intents that were asked for last.
type queryCache struct {
	mu    sync.Mutex
	order *list.List // of cachedQuery, the last used first
	at    map[string]*list.Element
}

type cachedQuery struct {
	key   string
	query Query
}

func newQueryCache() *queryCache {
	return &queryCache{order: list.New(), at: map[string]*list.Element{}}
}

// queryKey tells apart what different models make of an intent.
func queryKey(e Encoder, intent string) string { return e.Model() + "\x00" + intent }

func (c *queryCache) get(key string) (Query, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.at[key]
	if !ok {
		return Query{}, false
	}
	c.order.MoveToFront(element)
	cached, ok := element.Value.(cachedQuery)
	return cached.query, ok
}

func (c *queryCache) put(key string, q Query) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.at[key]; there {
		return // somebody else asked at the same time
	}
	c.at[key] = c.order.PushFront(cachedQuery{key, q})
	if c.order.Len() <= cachedQueries {
		return
	}
	if last, ok := c.order.Remove(c.order.Back()).(cachedQuery); ok {
		delete(c.at, last.key)
	}
}

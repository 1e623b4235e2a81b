package execute

import (
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Limits of what is kept between two pages of the same result.
const (
	maxViews     = 16
	maxViewBytes = 64 << 20
)

// viewKey names a text: that of a whole result when all but the first two are empty.
type viewKey struct {
	run                      uuid.UUID
	task, path, format, grep string
}

// viewCache keeps the results that were read last, so that a page of one costs no more
// than the page. A result never changes; whether it may still be given out is not
// asked here.
type viewCache struct {
	mu    sync.Mutex
	kept  []keptView // the last used last
	bytes int
}

// keptView is a whole result as JSON, or a text made of it.
type keptView struct {
	key  viewKey
	json string
	view *view
}

func (k keptView) size() int {
	if k.view != nil {
		return len(k.view.text)
	}
	return len(k.json)
}

// get returns what is kept under a key.
func (c *viewCache) get(key viewKey) (keptView, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(k keptView) bool { return k.key == key })
	if i < 0 {
		return keptView{}, false
	}
	found := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), found)
	return found, true
}

// put keeps k and drops what was not used for longest. What is too large is not kept.
func (c *viewCache) put(k keptView) {
	if k.size() > maxViewBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	drop := func(i int) {
		c.bytes -= c.kept[i].size()
		c.kept = slices.Delete(c.kept, i, i+1)
	}
	if i := slices.IndexFunc(c.kept, func(o keptView) bool { return o.key == k.key }); i >= 0 {
		drop(i)
	}
	for len(c.kept) > 0 && (len(c.kept) == maxViews || c.bytes+k.size() > maxViewBytes) {
		drop(0)
	}
	c.kept = append(c.kept, k)
	c.bytes += k.size()
}

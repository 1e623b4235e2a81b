package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/httpapi"
)

type cacheCommand struct {
	List  cacheListCommand  `cmd:"" name:"ls" default:"1" help:"List the results that runs may be answered with."`
	Clear cacheClearCommand `cmd:"" help:"Drop them."`
}

type cacheListCommand struct{}

// Run lists what is cached.
func (cacheListCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		entries, err := client.CacheEntries(ctx)
		if err != nil {
			return err
		}
		return a.print(entries, func(w io.Writer) { writeCached(w, entries, time.Now()) })
	})
}

func writeCached(w io.Writer, entries []capability.CacheEntry, now time.Time) {
	if len(entries) == 0 {
		fmt.Fprintln(w, "nothing is cached")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		fmt.Fprintf(t, "%s\tv%d\t%s\t%.12s\t%d bytes\t%d hits\tsince %s\texpires in %s\n", e.Name, e.Version, e.Level, e.Hash, e.Bytes, e.Hits,
			shortTime(e.At, now), e.ExpiresAt.Sub(now).Round(time.Second))
	}
	_ = t.Flush()
}

type cacheClearCommand struct {
	Capability string `help:"Only the results of this one." placeholder:"NAME"`
}

// Run empties the caches.
func (c *cacheClearCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		cleared, err := client.ClearCache(ctx, c.Capability)
		if err != nil {
			return err
		}
		return a.print(cleared, func(w io.Writer) { fmt.Fprintf(w, "%d dropped\n", cleared.Entries) })
	})
}

type capabilityCacheCommand struct {
	Name    string `arg:"" help:"Name."`
	On      bool   `help:"Its tools only read, also those that do not say so."`
	Off     bool   `help:"Never answer it from the cache."`
	Default bool   `help:"As its tools say."`
	TTL     int    `help:"Seconds for which a result counts." name:"ttl" placeholder:"SECONDS"`
	Max     int    `help:"How many results are kept." placeholder:"N"`
}

// Run changes, or without a flag shows, how results are kept.
func (c *capabilityCacheCommand) Run(ctx context.Context, a *app) error {
	change := httpapi.CacheChange{TTLSeconds: c.TTL, MaxEntries: c.Max}
	chosen := 0
	for name, set := range map[string]bool{httpapi.CacheOn: c.On, httpapi.CacheOff: c.Off, httpapi.CacheDefault: c.Default} {
		if set {
			change.Cacheable = name
			chosen++
		}
	}
	if chosen > 1 {
		return usageError{errors.New("choose one of --on, --off and --default")}
	}
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		config, err := client.ChangeCaching(ctx, c.Name, change)
		if err != nil {
			return err
		}
		return a.print(config, func(w io.Writer) {
			said := httpapi.CacheDefault
			switch {
			case config.Trusted():
				said = httpapi.CacheOn
			case config.Off():
				said = httpapi.CacheOff
			}
			fmt.Fprintf(w, "%s  cache %s, for %s, %d results\n", c.Name, said, config.TTL(), config.Entries())
		})
	})
}

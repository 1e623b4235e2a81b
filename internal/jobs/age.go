package jobs

import (
	"context"
	"fmt"
	"time"
)

const (
	day = 24 * time.Hour
	// keepTraces is for how long runs and what they did are kept.
	keepTraces = 90 * day
	// keepLogs is for how long what they logged is kept.
	keepLogs = 7 * day
)

// results is where the results of runs are dropped.
type results interface {
	PurgeExpired(ctx context.Context, now time.Time) (int64, error)
	// EnforceQuota drops results until the others take at most that many bytes; less
	// than 0 is no limit.
	EnforceQuota(ctx context.Context, bytes int64) (int64, error)
}

// Expire drops the results that are past their time, and the oldest where they are
// more than quota bytes together.
func Expire(store results, quota func() int64, now func() time.Time) Kind {
	do := func(ctx context.Context) (string, error) {
		expired, err := store.PurgeExpired(ctx, now())
		if err != nil {
			return "", err
		}
		surplus, err := store.EnforceQuota(ctx, quota())
		return fmt.Sprintf("%d results expired, %d over the quota", expired, surplus), err
	}
	return Kind{Name: "expire", About: "drop results past their time or over the quota", Every: 15 * time.Minute, Do: do}
}

// archive is where old runs are dropped.
type archive interface {
	DropLogs(ctx context.Context, before time.Time) (int64, error)
	// DropTraces keeps the best of each path and the greatest surprises.
	DropTraces(ctx context.Context, before time.Time) (int64, error)
	// DropRuns drops those that have ended and have no trace any more.
	DropRuns(ctx context.Context, before time.Time) (int64, error)
}

// Retain deletes traces, runs and approvals after ninety days, and what runs have
// logged after seven, but none of a run that is open.
func Retain(store archive, now func() time.Time) Kind {
	do := func(ctx context.Context) (string, error) {
		logs, err := store.DropLogs(ctx, now().Add(-keepLogs))
		if err != nil {
			return "", err
		}
		traces, err := store.DropTraces(ctx, now().Add(-keepTraces))
		if err != nil {
			return "", err
		}
		runs, err := store.DropRuns(ctx, now().Add(-keepTraces))
		return fmt.Sprintf("%d traces, %d runs and the logs of %d dropped", traces, runs, logs), err
	}
	return Kind{Name: "retention", About: "delete runs after 90 days and logs after 7", Every: day, Do: do}
}

// Refresher brings something up to date.
type Refresher interface {
	Refresh(ctx context.Context) error
}

// Embed embeds what has no vector yet.
func Embed(r Refresher) Kind {
	do := func(ctx context.Context) (string, error) { return "up to date", r.Refresh(ctx) }
	return Kind{Name: "embeddings", About: "embed descriptions that have changed", Every: day, Do: do}
}

// Forget drops the cached results that are too old; drop returns how many went.
func Forget(drop func(context.Context) (int64, error)) Kind {
	do := func(ctx context.Context) (string, error) {
		n, err := drop(ctx)
		return fmt.Sprintf("%d cached results dropped", n), err
	}
	return Kind{Name: "caches", About: "drop cached results that are a day old", Every: time.Hour, Do: do}
}

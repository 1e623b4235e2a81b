package pglite

import (
	"context"
	"time"

	"github.com/pml-run/pml/internal/fault"
)

const (
	// A child that lives shorter than this has failed again, rather than anew.
	quickDeath = 10 * time.Second
	// freeRestarts is how many quick deaths in a row are answered without a pause.
	freeRestarts = 2
	backOffBase  = 250 * time.Millisecond
	backOffMax   = 30 * time.Second
)

// run replaces c, and whatever comes after it, until ctx ends.
func (s *Server) run(ctx context.Context, c *child) {
	quick := 0
	for c != nil {
		select {
		case <-ctx.Done():
			s.retire(ctx, c, errStopped)
			return
		case <-c.spoilt:
			s.log.WarnContext(ctx, "replacing the embedded database's process after an error that it does not recover from")
			s.retireIdle(ctx, c)
		case <-c.proc.Done():
			s.log.WarnContext(ctx, "the embedded database's process has ended, starting another", "reason", c.reason(), "stderr", c.proc.Stderr())
			s.retire(ctx, c, nil)
		}
		if time.Since(c.started) < quickDeath {
			quick++
		} else {
			quick = 0
		}
		c = s.again(ctx, quick)
	}
	s.set(nil, errStopped)
}

var errStopped = fault.New(fault.StorageUnavailable, "the embedded database is stopped")

// retire ends a child, whose clients then dial anew.
func (s *Server) retire(ctx context.Context, c *child, down error) {
	s.set(nil, down)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	c.end(ctx)
}

// retireIdle waits for the turn first, so that no transaction is cut in two.
func (s *Server) retireIdle(ctx context.Context, c *child) {
	_ = c.turn.acquire(ctx.Done()) // when it fails there is no reason to wait either
	s.retire(ctx, c, nil)
}

// again starts a child, with growing pauses, until one is up; nil when ctx ended.
func (s *Server) again(ctx context.Context, quick int) *child {
	for failures := max(0, quick-freeRestarts); ; failures++ {
		if failures > 0 && !pause(ctx, backOff(failures)) {
			return nil
		}
		c, err := s.up(ctx)
		if err == nil {
			s.set(c, nil)
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
		s.log.ErrorContext(ctx, "cannot start the embedded database", "error", err, "next_try_in", backOff(failures+1))
		s.set(nil, err)
	}
}

func backOff(failures int) time.Duration {
	const most = 7 // 2^7 steps of the base are beyond the maximum
	return min(backOffMax, backOffBase<<min(failures, most))
}

// pause reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

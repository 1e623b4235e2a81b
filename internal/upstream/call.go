package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// acquire returns a session, and waits for one: for the connect under way, or
// for one attempt made for this call.
func (l *link) acquire(ctx context.Context) (*session, error) {
	first := -1
	for {
		l.mu.Lock()
		state, s, err, changed, tries := l.state, l.session, l.err, l.changed, l.tries
		l.mu.Unlock()
		if first < 0 {
			first = tries
			if state == StateStarting {
				first-- // the attempt under way is ours
			}
		}
		switch {
		case s != nil:
			return s, nil
		case state == StateDisabled:
			return nil, fault.New(fault.UpstreamUnavailable, "server %q is disabled in the configuration", l.name).
				WithHint("set \"disabled\" to false")
		case l.config.Problem != "":
			return nil, err
		case state == StateFailed && tries > first:
			return nil, err
		case state == StateFailed || state == StateStopped:
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
		select {
		case <-changed:
		case <-l.done:
			return nil, fault.New(fault.Unavailable, "server %q is stopping", l.name)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// call carries one call, within the server's limits.
func (l *link) call(ctx context.Context, id tool.ID, args json.RawMessage, p Progress) (json.RawMessage, error) {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !l.breaker.allow() {
		return nil, l.broken()
	}
	raw, err := l.callOnce(ctx, id, args, p)
	switch code := fault.CodeOf(err); {
	case ctx.Err() != nil:
		l.breaker.neither()
	case code == fault.UpstreamUnavailable, code == fault.UpstreamTimeout:
		l.breaker.failure()
	default:
		l.breaker.success()
	}
	return raw, err
}

// callOnce sends the call at most once: one that met a session at its end was
// not sent, and goes to the next session.
func (l *link) callOnce(ctx context.Context, id tool.ID, args json.RawMessage, p Progress) (json.RawMessage, error) {
	for {
		s, err := l.acquire(ctx)
		if err != nil {
			return nil, err
		}
		if err := l.m.known(id); err != nil {
			return nil, err
		}
		raw, err := l.send(ctx, s, id, args, p)
		if !errors.Is(err, errNotSent) {
			return raw, err
		}
		if err := l.left(ctx, s); err != nil {
			return nil, err
		}
	}
}

// left waits until s is no longer the link's session.
func (l *link) left(ctx context.Context, s *session) error {
	for {
		l.mu.Lock()
		gone, changed := l.session != s, l.changed
		l.mu.Unlock()
		if gone {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send is one call in one session, within the server's time.
func (l *link) send(ctx context.Context, s *session, id tool.ID, args json.RawMessage, p Progress) (json.RawMessage, error) {
	timeout := l.config.Timeout()
	callCtx, cancel := context.WithTimeoutCause(ctx, timeout, errCallTimeout)
	defer cancel()
	raw, err := s.call(callCtx, id.Name(), args, p)
	switch {
	case err == nil, errors.Is(err, errNotSent):
		return raw, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case l.stopping.Load():
		return nil, fault.New(fault.Unavailable, "server %q was stopped during the call: %v", l.name, errStopping).
			WithHint("whether the call had an effect is unknown")
	case callCtx.Err() != nil:
		return nil, fault.New(fault.UpstreamTimeout, "server %q did not answer %s within %s", l.name, id.Name(), timeout).
			WithHint("the call was cancelled, but may have had an effect; raise \"timeout_ms\" of the server if it needs longer")
	}
	return nil, s.callFailed(err)
}

func (l *link) broken() error {
	l.mu.Lock()
	last := l.err
	l.mu.Unlock()
	err := fault.New(fault.UpstreamUnavailable, "server %q failed %d times in a row and rests for %s", l.name, breakerFailures, l.breaker.rest().Round(time.Second))
	if last != nil {
		return err.WithHint("the last failure: %v", last)
	}
	return err.WithHint("look at its state and its stderr; it is tried again after the rest")
}

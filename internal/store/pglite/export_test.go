package pglite

import (
	"context"
	"time"
)

// MaintainOnce runs the maintenance that is due at now.
func (s *Server) MaintainOnce(ctx context.Context, now time.Time) error {
	return s.maintainOnce(ctx, now)
}

// MaxAnswer is from where an answer is written through.
const MaxAnswer = maxAnswer

package pglite

import (
	"context"
	"strconv"
	"time"
)

const (
	// walPerCheckpoint keeps pg_wal, and with it the recovery after a crash, small.
	walPerCheckpoint = 32 << 20
	// quietCheckpoint is how long after the last write what is left is written back.
	quietCheckpoint = 5 * time.Minute
	vacuumEvery     = 10 * time.Minute
)

// upkeep is what the maintenance has seen.
type upkeep struct {
	checkpointLSN int64 // position of the log at the last checkpoint
	seenLSN       int64
	lastWrite     time.Time
	lastVacuum    time.Time
}

// maintain does what a background process would: PGlite has one process, which
// never makes a checkpoint, vacuums or analyses by itself.
func (s *Server) maintain(ctx context.Context) {
	tick := time.NewTicker(s.opts.MaintenanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := s.maintainOnce(ctx, now); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "maintenance of the embedded database", "error", err)
			}
		}
	}
}

func (s *Server) maintainOnce(ctx context.Context, now time.Time) error {
	c, err := s.current(ctx)
	if err != nil {
		return err
	}
	if err := s.checkpoint(ctx, c, now); err != nil {
		return err
	}
	if now.Sub(s.upkeep.lastVacuum) < vacuumEvery {
		return nil
	}
	s.upkeep.lastVacuum = now
	return s.vacuum(ctx, c)
}

func (s *Server) checkpoint(ctx context.Context, c *child, now time.Time) error {
	lsn, err := logPosition(ctx, c)
	if err != nil || !s.upkeep.checkpointDue(lsn, now) {
		return err
	}
	if _, err := c.exec(ctx, "CHECKPOINT"); err != nil {
		return err
	}
	// The checkpoint has written to the log as well; that is no reason for the next.
	lsn, err = logPosition(ctx, c)
	s.upkeep.checkpointLSN, s.upkeep.seenLSN = lsn, lsn
	return err
}

// checkpointDue notes where the log is and decides.
func (u *upkeep) checkpointDue(lsn int64, now time.Time) bool {
	if lsn != u.seenLSN {
		u.seenLSN, u.lastWrite = lsn, now
	}
	wrote := lsn - u.checkpointLSN
	return wrote > walPerCheckpoint || wrote > 0 && now.Sub(u.lastWrite) >= quietCheckpoint
}

// logPosition is how many bytes were ever written to the write-ahead log.
func logPosition(ctx context.Context, c *child) (int64, error) {
	rows, err := c.exec(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`)
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, errMessage
	}
	return strconv.ParseInt(rows[0][0], 10, 64)
}

// vacuum tends the tables that have changed much, each as a statement of its own
// so that others get their turn in between.
func (s *Server) vacuum(ctx context.Context, c *child) error {
	// The one process counts for itself and shows the counters when it is idle.
	if _, err := c.exec(ctx, `SELECT pg_stat_force_next_flush()`); err != nil {
		return err
	}
	rows, err := c.exec(ctx, `SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables
		WHERE n_dead_tup > 1000 + 0.1 * n_live_tup
		   OR n_live_tup > 1000 AND last_analyze IS NULL AND last_autoanalyze IS NULL`)
	if err != nil {
		return err
	}
	return s.Unlimited(func() error {
		for _, row := range rows {
			if _, err := c.exec(ctx, "VACUUM (ANALYZE) "+row[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

package pglite

// startNotes starts the goroutine that writes notifications to the client; pairs
// with the wait in close.
func (s *session) startNotes() {
	if s.notesDone != nil {
		return
	}
	s.notesDone = make(chan struct{})
	go func() {
		defer close(s.notesDone)
		for m := range s.notes {
			s.writing.Lock()
			if _, err := s.out.Write(m); err == nil {
				_ = s.out.Flush()
			}
			s.writing.Unlock()
		}
	}()
}

// close takes back from the backend whatever this connection left in it: an open
// transaction, settings, prepared statements, channels.
func (s *session) close() {
	if s.idle != nil {
		s.idle.Stop()
	}
	_ = s.conn.Close()
	silent := s.child.listeners.removeAll(s)
	close(s.notes) // no one delivers to it: removeAll has forgotten it
	if s.notesDone != nil {
		<-s.notesDone
	}
	s.child.forget(s)
	if s.child.closing() {
		return // the child ends, and the session with it
	}
	if !s.holds {
		if s.child.turn.acquire(nil) != nil {
			return
		}
	}
	defer s.child.turn.release()
	if s.child.inTx {
		s.do(newUnit(query("ROLLBACK")))
	}
	if s.changed {
		s.do(newUnit(query("RESET ALL")))
	}
	for _, sql := range silent {
		s.do(newUnit(query(sql)))
	}
	if u := s.names.closeAll(); !u.empty() {
		s.do(u)
	}
}

// do runs a unit whose answer nobody wants; the turn is held.
func (s *session) do(u unit) {
	_ = s.child.roundTrip(u, func(m message) error {
		if m.kind() == kindNotification {
			s.child.listeners.deliver(m)
		}
		return nil
	}) // a child that is gone has forgotten everything by itself
}

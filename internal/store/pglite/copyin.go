package pglite

import (
	"errors"
	"fmt"
	"regexp"
)

var copyInSQL = regexp.MustCompile(`(?is)^\s*copy\s.*\sfrom\s+stdin`)

// copyIn runs COPY … FROM STDIN. The backend reads its input from the unit that it
// runs and cannot wait for more, so the whole stream is gathered first: the client
// is asked for it here, and the backend's own request is dropped.
func (s *session) copyIn(m message) error {
	s.answer = append(s.answer, newMessage(kindCopyIn, []byte{1, 0, 0})...)
	if err := s.flush(); err != nil {
		return err
	}
	u := newUnit(m)
	for done := false; !done; {
		m, err := readMessage(s.in, maxUnit)
		if err != nil {
			return err
		}
		switch m.kind() {
		case kindCopyDone, kindCopyFail:
			done = true
		case kindCopyData:
		default:
			continue // Flush and Sync mean nothing here
		}
		if len(u)+len(m) > maxUnit {
			return s.fail("54000", fmt.Sprintf("COPY of more than %d bytes: send it in parts", maxUnit))
		}
		u = append(u, m...)
	}
	if err := s.turn(); err != nil {
		return err
	}
	err := s.child.roundTrip(u, func(m message) error {
		if m.kind() == kindCopyIn {
			return nil
		}
		return s.reply(m)
	})
	if errors.Is(err, errGone) {
		return s.fail(codeAdminShutdown, s.child.reason())
	}
	if err != nil {
		return err
	}
	s.turnOver()
	return s.flush()
}

package pglite

import (
	"regexp"
	"strings"
	"sync"
)

// listeners routes notifications. The backend sends every one on whatever answer
// comes next; here they reach the connections that asked for them.
type listeners struct {
	mu       sync.Mutex
	channels map[string]map[*session]struct{}
}

var (
	listenSQL   = regexp.MustCompile(`(?is)^\s*listen\s+("(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)\s*;?\s*$`)
	unlistenSQL = regexp.MustCompile(`(?is)^\s*unlisten\s+(\*|"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)\s*;?\s*$`)
)

// longestListen is enough for a channel's name of 63 characters, all quoted.
const longestListen = 200

// sniff notes a LISTEN or UNLISTEN that s is about to send. The backend's UNLISTEN
// is for all connections: sniff returns the LISTENs that give the others theirs back.
func (l *listeners) sniff(s *session, sql string) []string {
	if len(sql) > longestListen {
		return nil
	}
	if m := listenSQL.FindStringSubmatch(sql); m != nil {
		l.add(s, unquote(m[1]))
	} else if m := unlistenSQL.FindStringSubmatch(sql); m != nil {
		if m[1] == "*" {
			l.removeAll(s)
		} else {
			l.remove(s, unquote(m[1]))
		}
		return l.all()
	}
	return nil
}

func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return strings.ToLower(name)
}

func (l *listeners) add(s *session, channel string) {
	s.startNotes()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels == nil {
		l.channels = map[string]map[*session]struct{}{}
	}
	if l.channels[channel] == nil {
		l.channels[channel] = map[*session]struct{}{}
	}
	l.channels[channel][s] = struct{}{}
}

func (l *listeners) remove(s *session, channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.channels[channel], s)
	if len(l.channels[channel]) == 0 {
		delete(l.channels, channel)
	}
}

// all returns the LISTENs of every channel that somebody listens to.
func (l *listeners) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sql []string
	for channel := range l.channels {
		sql = append(sql, "LISTEN "+quote(channel))
	}
	return sql
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// removeAll forgets s and returns the channels that nobody listens to any more,
// as SQL that tells the backend.
func (l *listeners) removeAll(s *session) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var silent []string
	for channel, who := range l.channels {
		delete(who, s)
		if len(who) == 0 {
			delete(l.channels, channel)
			silent = append(silent, "UNLISTEN "+quote(channel))
		}
	}
	return silent
}

// deliver hands a notification to its listeners. A listener that does not keep up
// loses it: NOTIFY only wakes, polling is the truth.
func (l *listeners) deliver(m message) {
	if len(m.body()) < 4 {
		return
	}
	channel, _, err := cutCString(m.body()[4:])
	if err != nil {
		return
	}
	copied := append(message(nil), m...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.channels[channel] {
		select {
		case s.notes <- copied:
		default:
		}
	}
}

package sandbox

import "slices"

// ticket is one run that waits for a worker.
type ticket struct {
	client string
	worker chan *worker // buffered: whoever serves it never waits
}

// queue holds waiting runs and is fair between clients: each has a line of its own,
// and the lines take turns. Its user holds a lock.
type queue struct {
	lines map[string][]*ticket
	turns []string // clients with a line, the next to be served first
	size  int
}

func newQueue() *queue { return &queue{lines: map[string][]*ticket{}} }

func (q *queue) push(client string) *ticket {
	t := &ticket{client: client, worker: make(chan *worker, 1)}
	if len(q.lines[client]) == 0 {
		q.turns = append(q.turns, client)
	}
	q.lines[client] = append(q.lines[client], t)
	q.size++
	return t
}

// pop takes the next ticket, nil when nobody waits.
func (q *queue) pop() *ticket {
	if q.size == 0 {
		return nil
	}
	client := q.turns[0]
	q.turns = q.turns[1:]
	line := q.lines[client]
	t := line[0]
	if len(line) == 1 {
		delete(q.lines, client)
	} else {
		q.lines[client] = line[1:]
		q.turns = append(q.turns, client)
	}
	q.size--
	return t
}

// remove takes a ticket out of its line; false when it was served already.
func (q *queue) remove(t *ticket) bool {
	line := q.lines[t.client]
	i := slices.Index(line, t)
	if i < 0 {
		return false
	}
	q.size--
	if len(line) == 1 {
		delete(q.lines, t.client)
		q.turns = slices.DeleteFunc(q.turns, func(c string) bool { return c == t.client })
		return true
	}
	q.lines[t.client] = slices.Delete(slices.Clone(line), i, i+1)
	return true
}

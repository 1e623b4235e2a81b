package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pml-run/pml/internal/deno/denotest"
	"github.com/pml-run/pml/internal/sandbox/jail"
)

// TestQueueIsFair compares the queue with the plainest thing that does the same:
// clients take turns, and each is served in its own order.
func TestQueueIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		var turns []string
		lines := map[string][]*ticket{}
		client := rapid.SampledFrom([]string{"a", "b", "c"})
		forget := func(c string) {
			turns = slices.DeleteFunc(turns, func(s string) bool { return s == c })
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				c := client.Draw(t, "client")
				if len(lines[c]) == 0 {
					turns = append(turns, c)
				}
				lines[c] = append(lines[c], q.push(c))
			},
			"pop": func(t *rapid.T) {
				var want *ticket
				if len(turns) > 0 {
					c := turns[0]
					want, lines[c] = lines[c][0], lines[c][1:]
					turns = turns[1:]
					if len(lines[c]) > 0 {
						turns = append(turns, c)
					}
				}
				if got := q.pop(); got != want {
					t.Fatalf("popped %v, want %v", got, want)
				}
			},
			"remove": func(t *rapid.T) {
				c := client.Draw(t, "client")
				if len(lines[c]) == 0 {
					return
				}
				i := rapid.IntRange(0, len(lines[c])-1).Draw(t, "place")
				gone := lines[c][i]
				lines[c] = slices.Delete(slices.Clone(lines[c]), i, i+1)
				if len(lines[c]) == 0 {
					forget(c)
				}
				if !q.remove(gone) || q.remove(gone) {
					t.Fatal("a ticket is removed once")
				}
			},
			"": func(t *rapid.T) {
				n := 0
				for _, l := range lines {
					n += len(l)
				}
				if q.size != n || !slices.Equal(q.turns, turns) {
					t.Fatalf("size %d and turns %v, want %d and %v", q.size, q.turns, n, turns)
				}
			},
		})
	})
}

// poolMachine takes, releases and kills workers of a pool whose workers are the
// smallest processes there are.
type poolMachine struct {
	pool    *Pool
	changes chan struct{}
	taken   []*worker
	waiting []*take

	mu      sync.Mutex
	started []*worker
}

// take is one call of Pool.take that has not returned.
type take struct {
	cancel context.CancelFunc
	worker *worker
	err    error
	done   chan struct{}
}

const machineSize, machineBusy = 2, 3

func newPoolMachine(t *testing.T) *poolMachine {
	t.Helper()
	p, err := New(Options{Deno: denotest.Path(t), Size: machineSize, MaxBusy: machineBusy, Starters: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &poolMachine{pool: p, changes: make(chan struct{}, 1)}
	p.changed = func(Stats) {
		select {
		case m.changes <- struct{}{}:
		default:
		}
	}
	p.launch = m.launch
	p.state, p.plan.report.Level, p.lastRun = running, level(jail.Layers{}), time.Now()
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.jobs = make(chan func(), machineSize+machineBusy+1)
	p.wg.Go(p.starter)
	return m
}

func (m *poolMachine) launch(plan) (*worker, error) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdin, ok := in.(*os.File)
	if !ok {
		return nil, errors.New("the pipe is no file")
	}
	out, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: cmd, in: stdin, out: out, done: make(chan struct{}), stderr: &head{}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m.pool.wg.Go(w.reap)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = append(m.started, w)
	return w, nil
}

// settle waits until the pool has nothing more to do by itself, and collects the
// takes that have returned.
func (m *poolMachine) settle(t *rapid.T) {
	for {
		s := m.pool.Stats()
		collected := m.collect(t)
		served := len(m.waiting) == 0 || s.Busy == machineBusy
		if !collected && s.Starting == 0 && s.Queued == len(m.waiting) && s.Busy == len(m.taken) && served {
			return
		}
		if !collected {
			select {
			case <-m.changes:
			case <-time.After(time.Millisecond): // a take that has been served but has not returned
			}
		}
	}
}

func (m *poolMachine) collect(t *rapid.T) bool {
	for i, w := range m.waiting {
		select {
		case <-w.done:
			if w.err != nil {
				t.Fatalf("take: %v", w.err)
			}
			m.taken = append(m.taken, w.worker)
			m.waiting = slices.Delete(m.waiting, i, i+1)
			return true
		default:
		}
	}
	return false
}

func (m *poolMachine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"take": func(t *rapid.T) {
			ctx, cancel := context.WithCancel(context.Background())
			w := &take{cancel: cancel, done: make(chan struct{})}
			client := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "client")
			go func() {
				defer close(w.done)
				w.worker, w.err = m.pool.take(ctx, client)
			}()
			m.waiting = append(m.waiting, w)
			m.settle(t)
		},
		"release": func(t *rapid.T) {
			if len(m.taken) == 0 {
				return
			}
			i := rapid.IntRange(0, len(m.taken)-1).Draw(t, "worker")
			m.pool.release(m.taken[i])
			m.taken = slices.Delete(m.taken, i, i+1)
			m.settle(t)
		},
		"cancel": func(t *rapid.T) {
			if len(m.waiting) == 0 {
				return
			}
			w := m.waiting[len(m.waiting)-1]
			w.cancel()
			<-w.done
			m.waiting = m.waiting[:len(m.waiting)-1]
			if w.err == nil {
				t.Fatal("a cancelled take has a worker")
			}
		},
		"kill idle": func(t *rapid.T) {
			m.pool.mu.Lock()
			idle := slices.Clone(m.pool.idle)
			m.pool.mu.Unlock()
			for _, w := range idle {
				if rapid.Bool().Draw(t, "kill") {
					_ = w.cmd.Process.Kill()
					<-w.done
				}
			}
		},
		"let go": func(*rapid.T) { m.pool.letGo(time.Now().Add(time.Hour)) },
		"": func(t *rapid.T) {
			s := m.pool.Stats()
			if s.Idle+s.Starting > machineSize || s.Busy > machineBusy || s.Busy != len(m.taken) || s.Queued != len(m.waiting) {
				t.Fatalf("%+v with %d taken and %d waiting", s, len(m.taken), len(m.waiting))
			}
		},
	}
}

// stop ends the pool with whatever it is doing and looks for what it left.
func (m *poolMachine) stop(t *rapid.T) {
	for _, w := range m.waiting {
		w.cancel()
		<-w.done
	}
	for _, w := range m.taken {
		m.pool.release(w)
	}
	m.pool.Stop()
	for _, w := range m.started {
		if !w.gone() {
			t.Fatalf("process %d is left", w.pid())
		}
	}
	if _, err := m.pool.take(context.Background(), ""); err == nil {
		t.Fatal("a stopped pool gives a worker")
	}
}

func TestPoolMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := newPoolMachine(t)
		defer m.stop(r)
		r.Repeat(m.actions())
	})
}

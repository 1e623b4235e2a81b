package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/telemetry"
)

// Kind is a kind of job.
type Kind struct {
	Name  string // one word
	About string // what it does, for people
	// Every is how often it is done: once in each period, counted from midnight UTC
	// for days and parts of them. At least a second.
	Every time.Duration
	// Do does it and says in a few words what came of it.
	Do func(context.Context) (string, error)
}

// Options of a Runner.
type Options struct {
	// Schema is where the queue's tables are; it must exist. Default: where the
	// connection's search_path leads.
	Schema string
	// Poll is how often is looked for jobs that are due; default 1 s.
	Poll       time.Duration
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil measures for nobody
}

const (
	defaultPoll = time.Second
	// workers is how many jobs run at a time: an embedded database does one thing at
	// a time anyway.
	workers = 2
	// jobTimeout bounds a job, rescueAfter is when one that has no end is given to
	// another gateway.
	jobTimeout  = 5 * time.Minute
	rescueAfter = 3 * jobTimeout
	// attempts is how often a job is tried; the next period brings another.
	attempts = 3
	// migrateTries is more than there are migrations: each may be lost to another gateway.
	migrateTries = 20
	// keepEnded is how long what became of jobs can be seen, several of the longest periods.
	keepEnded = 8 * 24 * time.Hour
	// stopWait is how long jobs may go on after Stop before they are cancelled.
	stopWait = 3 * time.Second
	// lookAgain is how often Run looks whether its job has ended.
	lookAgain = 200 * time.Millisecond
)

// Runner runs jobs when they are due.
type Runner struct {
	kinds   []Kind
	options Options
	driver  *riverpgxv5.Driver
	client  *river.Client[pgx.Tx]
	metrics *metrics
	now     func() time.Time
	life    context.Context // of the jobs, between Start and Stop; else nil
}

// New makes a Runner over connections to a database; Start starts it.
func New(pool *pgxpool.Pool, kinds []Kind, o Options) (*Runner, error) {
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("system", "jobs")
	r := &Runner{kinds: kinds, options: o, driver: riverpgxv5.New(pool), metrics: newMetrics(o.Registerer), now: time.Now}
	handlers := river.NewWorkers()
	var periodic []*river.PeriodicJob
	for _, k := range kinds {
		river.AddWorkerArgs(handlers, task{k.Name}, &worker{kind: k, runner: r})
		periodic = append(periodic, due(k))
	}
	var err error
	r.client, err = river.NewClient(r.driver, &river.Config{
		Schema: o.Schema, Logger: telemetry.Warnings(o.Logger), Workers: handlers, PeriodicJobs: periodic,
		Queues:   map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		PollOnly: true, FetchPollInterval: o.Poll, FetchCooldown: min(o.Poll, defaultPoll),
		JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, MaxAttempts: attempts,
		CompletedJobRetentionPeriod: keepEnded, DiscardedJobRetentionPeriod: keepEnded, CancelledJobRetentionPeriod: keepEnded,
		ReindexerSchedule: river.NeverSchedule(), // there are a few hundred rows
	})
	if err != nil {
		return nil, fmt.Errorf("queue of jobs: %w", err)
	}
	return r, nil
}

// due puts a kind on the clock. The periods are the same for all gateways, and one
// that starts does what was not done in the present one.
func due(k Kind) *river.PeriodicJob {
	opts := river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: k.Every}}
	return river.NewPeriodicJob(period(k.Every), func() (river.JobArgs, *river.InsertOpts) { return task{k.Name}, &opts },
		&river.PeriodicJobOpts{ID: k.Name, RunOnStart: true})
}

// period is a schedule: the next begin of a period of that length.
type period time.Duration

// Next returns the first begin of a period after a moment.
func (p period) Next(after time.Time) time.Time {
	return after.UTC().Truncate(time.Duration(p)).Add(time.Duration(p))
}

// Start makes the queue's tables where they are missing, and begins to look for jobs.
func (r *Runner) Start(ctx context.Context) error {
	if err := r.migrate(ctx); err != nil {
		return fmt.Errorf("tables of the jobs: %w", err)
	}
	// Stop ends it, and lets what runs come to its end.
	life := context.WithoutCancel(ctx)
	if err := r.client.Start(life); err != nil {
		return fmt.Errorf("start jobs: %w", err)
	}
	r.life = life
	return nil
}

// migrate tries again after an error: another gateway may have done the same at the
// same time, and River takes no lock.
func (r *Runner) migrate(ctx context.Context) error {
	m, err := rivermigrate.New(r.driver, &rivermigrate.Config{Schema: r.options.Schema, Logger: telemetry.Warnings(r.options.Logger)})
	if err != nil {
		return err
	}
	for range migrateTries {
		if _, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// Stop waits a few seconds for the jobs that run, cancels those that are left, and
// returns when nothing of the Runner is left.
func (r *Runner) Stop() {
	if r.life == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.life, stopWait)
	defer cancel()
	if err := r.client.Stop(ctx); err != nil {
		_ = r.client.StopAndCancel(r.life) // the end of all jobs is waited for
	}
	r.life = nil
}

// Run has a job done now, by whichever gateway takes it first, and waits for its end.
// A job that fails is no error: its State says so. A name that is none is a
// fault.NotFound.
func (r *Runner) Run(ctx context.Context, name string) (State, error) {
	k, err := r.kind(name)
	if err != nil {
		return State{}, err
	}
	in, err := r.client.Insert(ctx, task{name}, &river.InsertOpts{MaxAttempts: 1})
	if err != nil {
		return State{}, fmt.Errorf("queue job %s: %w", name, err)
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		job, err := r.client.JobGet(ctx, in.Job.ID)
		if err != nil {
			return State{}, fmt.Errorf("look at job %s: %w", name, err)
		}
		if job.FinalizedAt != nil {
			return r.state(k, job), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return State{}, context.Cause(ctx)
		}
	}
}

func (r *Runner) kind(name string) (Kind, error) {
	for _, k := range r.kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fault.New(fault.NotFound, "there is no kind of job %q", name).WithHint("'pml jobs ls' lists them")
}

// task is a job in the queue: all that there is to say of it is its kind.
type task struct{ kind string }

// Kind is the name by which River finds the worker.
func (t task) Kind() string { return t.kind }

// worker does the jobs of one kind.
type worker struct {
	river.WorkerDefaults[task]

	kind   Kind
	runner *Runner
}

// Work does one job. River recovers from a panic in it, and logs what went wrong.
func (w *worker) Work(ctx context.Context, _ *river.Job[task]) error {
	began := w.runner.now()
	detail, err := w.kind.Do(ctx)
	w.runner.metrics.ended(w.kind.Name, w.runner.now().Sub(began), err)
	if err != nil {
		return err
	}
	w.runner.options.Logger.DebugContext(ctx, "job done", "job", w.kind.Name, "result", detail)
	return river.RecordOutput(ctx, detail)
}

// States returns what there is to know of each kind, in the order of New.
func (r *Runner) States(ctx context.Context) ([]State, error) {
	out := make([]State, len(r.kinds))
	for i, k := range r.kinds {
		last, err := r.client.JobList(ctx, river.NewJobListParams().Kinds(k.Name).
			OrderBy(river.JobListOrderByID, river.SortOrderDesc).First(1))
		if err != nil {
			return nil, fmt.Errorf("look for jobs of kind %s: %w", k.Name, err)
		}
		var job *rivertype.JobRow
		if len(last.Jobs) > 0 {
			job = last.Jobs[0]
		}
		out[i] = r.state(k, job)
	}
	return out, nil
}

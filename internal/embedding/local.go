package embedding

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pml-run/pml/internal/embedding/bert"
	"github.com/pml-run/pml/internal/embedding/kernel"
	"github.com/pml-run/pml/internal/embedding/wordpiece"
	"github.com/pml-run/pml/internal/fault"
)

// groupTokens is how many tokens are computed at once: enough to read the weights
// seldom, few enough for the second-level cache and for a soon end when ctx ends.
const groupTokens = 128

// LocalOptions describe a model on disk.
type LocalOptions struct {
	// Dir has model.safetensors (fp16, or fp32, which is rounded), tokenizer.json and
	// config.json of an uncased BERT with mean pooling. Path gives that of the built-in one.
	Dir string
	// CacheDir is where the int8 copy is kept (bert.CopyName), for kernels that use one.
	// Default: nowhere; then the copy is made at each start and stays on the heap.
	CacheDir string
	// Kernel is vnni, avx2 or go; default: the fastest that the processor has.
	Kernel string
	// Workers bounds the goroutines of one Encode; default: GOMAXPROCS.
	Workers int
	// Model is the id of the vectors; default MiniLM, with that model's prefixes.
	Model string
	// QueryPrefix and DocumentPrefix belong to a Model of one's own.
	QueryPrefix, DocumentPrefix string
	// Logger gets a warning when the int8 copy cannot be kept; default: none.
	Logger *slog.Logger
}

// Local is a model that this process computes. What stays in memory is said at
// bert.Model: 20 to 30 MB, most of it pages of files, and up to 4 MB for each worker.
type Local struct {
	opts      LocalOptions
	tokenizer *wordpiece.Tokenizer
	kernels   string

	mu    sync.RWMutex // read-locked while model computes, so that Close waits
	model *bert.Model  // nil when closed
}

// OpenLocal loads a model. That takes about 50 ms, and at the first time with int8
// weights half a second. Errors name the file and what is wrong with it.
func OpenLocal(opts LocalOptions) (*Local, error) {
	if opts.Model == "" {
		opts.Model, opts.QueryPrefix, opts.DocumentPrefix = MiniLM, miniLMQuery, ""
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	set, err := kernel.Select(opts.Kernel)
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "%v", err).WithHint("leave the kernel empty to have it chosen")
	}
	return openWith(opts, set)
}

// openWith loads a model for given kernels.
func openWith(opts LocalOptions, set kernel.Set) (*Local, error) {
	tokenizer, err := wordpiece.Load(filepath.Join(opts.Dir, "tokenizer.json"))
	if err != nil {
		return nil, unreadable(opts, err)
	}
	model, err := bert.Open(opts.Dir, bert.Options{Kernels: set, Cache: opts.CacheDir})
	if err != nil {
		return nil, unreadable(opts, err)
	}
	if tokenizer.Size() > model.Vocabulary() {
		err := fmt.Errorf("tokenizer.json has %d tokens, model.safetensors %d: they are not of one model", tokenizer.Size(), model.Vocabulary())
		return nil, unreadable(opts, errors.Join(err, model.Close()))
	}
	if problem := model.Problem(); problem != nil {
		opts.Logger.Warn("the int8 weights stay in memory", "error", problem)
	}
	return &Local{opts: opts, tokenizer: tokenizer, kernels: set.Name(), model: model}, nil
}

func unreadable(opts LocalOptions, err error) error {
	return fault.New(fault.Unavailable, "the embedding model in %s cannot be used: %v", opts.Dir, err).
		WithHint("search works by words until then; delete the folder and run pml setup to fetch the built-in model again")
}

// Model implements Encoder.
func (l *Local) Model() string { return l.opts.Model }

// QueryPrefix implements Encoder.
func (l *Local) QueryPrefix() string { return l.opts.QueryPrefix }

// DocumentPrefix implements Encoder.
func (l *Local) DocumentPrefix() string { return l.opts.DocumentPrefix }

// Kernel names what computes: vnni, avx2 or go.
func (l *Local) Kernel() string { return l.kernels }

// Dimensions implements Encoder. It is 0 after Close.
func (l *Local) Dimensions() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.model == nil {
		return 0
	}
	return l.model.Dimensions()
}

// Encode implements Encoder. A text is cut after 256 tokens; an empty one has a
// vector too, that of no words. Its work is spread over Workers goroutines.
func (l *Local) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.model == nil {
		return nil, fault.New(fault.Unavailable, "the embedding model is closed")
	}
	ids := make([][]int32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids[i] = l.tokenizer.Encode(text, l.model.Tokens())
	}
	out := make([][]float32, len(texts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.opts.Workers)
	for from, to := range groups(ids) {
		group.Go(func() error {
			vectors, err := l.model.Encode(ctx, ids[from:to])
			copy(out[from:to], vectors)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, failure(err)
	}
	return out, nil
}

// failure passes on the end of a context, and hides what only a developer can mend.
func failure(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.New(fault.Internal, "encode: %v", err)
}

// groups cuts a list of sequences into runs of about groupTokens.
func groups(ids [][]int32) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from, tokens := 0, 0
		for i := range ids {
			if tokens > 0 && tokens+len(ids[i]) > groupTokens {
				if !yield(from, i) {
					return
				}
				from, tokens = i, 0
			}
			tokens += len(ids[i])
		}
		if from < len(ids) {
			yield(from, len(ids))
		}
	}
}

// Close gives the model's files back, after waiting for what is being computed. It may
// be called twice.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.model == nil {
		return nil
	}
	err := l.model.Close()
	l.model = nil
	return err
}

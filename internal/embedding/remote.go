package embedding

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pml-run/pml/internal/embedding/bert"
	"github.com/pml-run/pml/internal/fault"
)

// Limits of Remote.
const (
	// MaxBatch is how many texts go into one request.
	MaxBatch = 128
	// mostRetries is how often a request is sent again.
	mostRetries = 3
	// firstWait is what is waited before the first of them; it doubles each time.
	firstWait = 500 * time.Millisecond
	// longestWait bounds what a provider can ask for with Retry-After; a longer wait
	// is an error, so that a caller may do something else meanwhile.
	longestWait = 30 * time.Second
	// defaultTimeout bounds one request.
	defaultTimeout = 30 * time.Second
)

// RemoteOptions describe a provider with an OpenAI-compatible interface.
type RemoteOptions struct {
	// URL is what /embeddings is appended to, like "https://api.openai.com/v1".
	URL string
	// Name is the model, as the provider calls it.
	Name string
	// Key is the bearer token; default none.
	Key string
	// Dimensions is sent along when it is not 0, and vectors of other lengths are
	// refused. Without it the first answer decides.
	Dimensions int
	// QueryPrefix and DocumentPrefix are for models that want them.
	QueryPrefix, DocumentPrefix string
	// Timeout bounds one request; default 30 s.
	Timeout time.Duration
	// Client sends; default one of its own that follows no redirects.
	Client *http.Client

	// wait returns after d or with ctx; tests put their own here.
	wait func(ctx context.Context, d time.Duration) error
}

// Remote is a model behind an HTTP interface.
type Remote struct {
	opts       RemoteOptions
	endpoint   string
	dimensions atomic.Int64
}

// OpenRemote checks the options. It sends nothing.
func OpenRemote(opts RemoteOptions) (*Remote, error) {
	var problems []error
	u, err := url.Parse(opts.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		problems = append(problems, errors.New("url is no http or https address without a user"))
	}
	if opts.Name == "" {
		problems = append(problems, errors.New("model is missing"))
	}
	if opts.Dimensions < 0 {
		problems = append(problems, fmt.Errorf("dimensions is %d", opts.Dimensions))
	}
	if strings.ContainsAny(opts.Key, "\r\n") {
		problems = append(problems, errors.New("key has a line break"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fault.New(fault.InvalidInput, "embedding: %v", err)
	}
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.Client == nil {
		opts.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if opts.wait == nil {
		opts.wait = wait
	}
	r := &Remote{opts: opts, endpoint: u.JoinPath("embeddings").String()}
	r.dimensions.Store(int64(opts.Dimensions))
	return r, nil
}

// Model implements Encoder: the provider's name of the model, and its dimensions when
// they are chosen, since vectors of different lengths cannot be compared.
func (r *Remote) Model() string {
	if r.opts.Dimensions > 0 {
		return fmt.Sprintf("%s@%d", r.opts.Name, r.opts.Dimensions)
	}
	return r.opts.Name
}

// Dimensions implements Encoder.
func (r *Remote) Dimensions() int { return int(r.dimensions.Load()) }

// QueryPrefix implements Encoder.
func (r *Remote) QueryPrefix() string { return r.opts.QueryPrefix }

// DocumentPrefix implements Encoder.
func (r *Remote) DocumentPrefix() string { return r.opts.DocumentPrefix }

// Encode implements Encoder. It sends up to MaxBatch texts at a time, one request
// after the other. What is too busy or broken on the other side (429, 5xx, no
// connection) is tried again three times, later each time; Retry-After is honoured.
// Texts are sent whole: what a model does with long ones is its affair. Invalid UTF-8
// is replaced, and an empty text is sent as a space, because many providers refuse it.
func (r *Remote) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(len(texts), MaxBatch)
		vectors, err := r.batch(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		out, texts = append(out, vectors...), texts[n:]
	}
	return out, nil
}

// batch sends one request, several times if need be.
func (r *Remote) batch(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := r.encodeRequest(texts)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		a, err := r.send(ctx, body, len(texts))
		if err == nil {
			return r.vectors(a, len(texts))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		busy, ok := errors.AsType[*busyError](err)
		if !ok {
			return nil, err
		}
		if attempt == mostRetries || busy.after > longestWait {
			return nil, fault.New(fault.Unavailable, "the embedding provider %s: %v", r.host(), busy).
				WithHint("search works by words meanwhile; check embedding.url, or wait")
		}
		if err := r.opts.wait(ctx, max(busy.after, firstWait<<attempt)); err != nil {
			return nil, err
		}
	}
}

// vectors checks an answer and puts it in the order of the texts.
func (r *Remote) vectors(a answer, n int) ([][]float32, error) {
	if len(a.Data) != n {
		return nil, r.wrong("%d vectors for %d texts", len(a.Data), n)
	}
	out := make([][]float32, n)
	for _, d := range a.Data {
		if d.Index < 0 || d.Index >= n || out[d.Index] != nil {
			return nil, r.wrong("the index %d twice or out of range", d.Index)
		}
		r.dimensions.CompareAndSwap(0, int64(len(d.Embedding)))
		if want := r.Dimensions(); len(d.Embedding) != want || want == 0 {
			return nil, r.wrong("a vector of length %d instead of %d", len(d.Embedding), want)
		}
		if !bert.Normalize(d.Embedding) {
			return nil, r.wrong("a vector that is zero or not finite")
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// wrong is an answer that cannot be used.
func (r *Remote) wrong(format string, args ...any) error {
	return fault.New(fault.Unavailable, "the embedding provider %s answered with "+format, append([]any{r.host()}, args...)...).
		WithHint("check embedding.model and embedding.dimensions")
}

// host is what errors may show of the address.
func (r *Remote) host() string {
	u, err := url.Parse(r.endpoint)
	if err != nil {
		return "" // it was parsed before
	}
	return u.Host
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package embedding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/fault"
)

const secret = "sk-very-secret"

// question is what a provider is sent.
type question struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions"`
}

// provider answers with its handler and remembers what it was asked and what waits
// its client had.
type provider struct {
	remote *embedding.Remote

	mu        sync.Mutex
	questions []question
	waits     []time.Duration
}

// newProvider starts a server; answer gets the number of the request, from 0.
func newProvider(t *testing.T, opts embedding.RemoteOptions, answer func(w http.ResponseWriter, r *http.Request, n int, q question)) *provider {
	t.Helper()
	p := &provider{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			return // the client has gone
		}
		p.mu.Lock()
		n := len(p.questions)
		p.questions = append(p.questions, q)
		p.mu.Unlock()
		answer(w, r, n, q)
	}))
	t.Cleanup(server.Close)
	if opts.URL == "" {
		opts.URL = server.URL + "/v1"
	}
	opts.Name, opts.Key, opts.Client = "some-model", secret, server.Client()
	remote, err := embedding.OpenRemote(embedding.WithWait(opts, func(ctx context.Context, d time.Duration) error {
		p.waits = append(p.waits, d)
		return ctx.Err()
	}))
	must(t, err)
	p.remote = remote
	return p
}

// vectors answers each text with its length, last text first.
func vectors(w http.ResponseWriter, _ *http.Request, _ int, q question) {
	list := make([]string, 0, len(q.Input))
	for i, text := range slices.Backward(q.Input) {
		list = append(list, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,0,1.0]}`, i, len(text)))
	}
	fmt.Fprintf(w, `{"data":[%s],"usage":{"total_tokens":1}}`, strings.Join(list, ","))
}

func TestRemote(t *testing.T) {
	t.Parallel()
	p := newProvider(t, embedding.RemoteOptions{Dimensions: 3, QueryPrefix: "q: "}, func(w http.ResponseWriter, r *http.Request, n int, q question) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+secret {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		vectors(w, r, n, q)
	})
	texts := make([]string, 300)
	for i := range texts {
		texts[i] = strings.Repeat("x", i)
	}
	texts[2] = "\xff"
	got, err := p.remote.Encode(t.Context(), texts)
	must(t, err)
	for i, v := range got {
		if x := max(1, i); i != 2 && (v[0]/v[2]-float32(x))/float32(x) > 1e-5 || cosine(v, v) < 0.99999 || cosine(v, v) > 1.00001 {
			t.Fatalf("vector %d is %v", i, v)
		}
	}
	if len(got) != 300 || len(p.questions) != 3 || len(p.questions[0].Input) != embedding.MaxBatch || len(p.questions[2].Input) != 44 {
		t.Errorf("%d vectors by %d requests", len(got), len(p.questions))
	}
	first := p.questions[0]
	if diff := cmp.Diff([]any{"some-model", 3, " ", "\ufffd"}, []any{first.Model, first.Dimensions, first.Input[0], first.Input[2]}); diff != "" {
		t.Error(diff)
	}
	if r := p.remote; r.Model() != "some-model@3" || r.Dimensions() != 3 || r.QueryPrefix() != "q: " || r.DocumentPrefix() != "" {
		t.Errorf("%q %d", r.Model(), r.Dimensions())
	}
	if none, err := p.remote.Encode(t.Context(), nil); err != nil || len(none) != 0 || len(p.questions) != 3 {
		t.Errorf("no texts: %v, %v", none, err)
	}
}

func TestRemoteLearnsItsDimensions(t *testing.T) {
	t.Parallel()
	p := newProvider(t, embedding.RemoteOptions{}, func(w http.ResponseWriter, r *http.Request, n int, q question) {
		if n == 1 {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2]}]}`)
			return
		}
		vectors(w, r, n, q)
	})
	if p.remote.Dimensions() != 0 || p.remote.Model() != "some-model" {
		t.Errorf("%d %q", p.remote.Dimensions(), p.remote.Model())
	}
	_, err := p.remote.Encode(t.Context(), []string{"a"})
	must(t, err)
	if p.remote.Dimensions() != 3 {
		t.Errorf("%d dimensions", p.remote.Dimensions())
	}
	if _, err := p.remote.Encode(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "length 2 instead of 3") {
		t.Errorf("other dimensions: %v", err)
	}
}

// status answers with a status, then with vectors from request n on.
func status(code, until int, retryAfter string) func(http.ResponseWriter, *http.Request, int, question) {
	return func(w http.ResponseWriter, r *http.Request, n int, q question) {
		if n >= until {
			vectors(w, r, n, q)
			return
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":"we do not like %s"}}`, secret)
	}
}

func TestRemoteTriesAgain(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, int, question)
		waits  []time.Duration
		err    string
	}{
		{"one 503", status(503, 1, ""), []time.Duration{500 * ms}, ""},
		{"three 429", status(429, 3, ""), []time.Duration{500 * ms, 1000 * ms, 2000 * ms}, ""},
		{"four 500", status(500, 4, ""), []time.Duration{500 * ms, 1000 * ms, 2000 * ms}, "status 500: we do not like [key]"},
		{"wish", status(429, 1, "7"), []time.Duration{7000 * ms}, ""},
		{"no wish", status(429, 1, "soon"), []time.Duration{500 * ms}, ""},
		{"a past date", status(429, 1, "Fri, 31 Dec 1999 23:59:59 GMT"), []time.Duration{500 * ms}, ""},
		{"too long a wish", status(429, 1, "3600"), nil, "status 429"},
		{"a date far away", status(503, 1, "Fri, 31 Dec 2199 23:59:59 GMT"), nil, "status 503"},
		{"400", status(400, 1, ""), nil, "status 400"},
		{"401", status(401, 1, ""), nil, "status 401"},
		{"redirect", status(302, 1, ""), nil, "status 302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, embedding.RemoteOptions{}, c.answer)
			_, err := p.remote.Encode(t.Context(), []string{"a"})
			if diff := cmp.Diff(c.waits, p.waits); diff != "" {
				t.Error(diff)
			}
			checkFault(t, err, c.err)
		})
	}
}

// checkFault wants an error that a person can read, or none.
func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unwanted: %v", err)
	case want != "" && (fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), want)):
		t.Errorf("%v, want %q", err, want)
	}
	if err != nil && strings.Contains(fmt.Sprintf("%+v", err), secret) {
		t.Errorf("the error shows the key: %v", err)
	}
}

func TestRemoteChecksAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, err string }{
		"not JSON":     {"<html>" + secret, "no list of vectors"},
		"too few":      {`{"data":[{"index":0,"embedding":[1]}]}`, "1 vectors for 2 texts"},
		"twice":        {`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "index 0"},
		"out of range": {`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`, "index 2"},
		"negative":     {`{"data":[{"index":0,"embedding":[1]},{"index":-1,"embedding":[1]}]}`, "index -1"},
		"lengths":      {`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, "length 2 instead of 1"},
		"empty":        {`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, "length 0"},
		"zero":         {`{"data":[{"index":0,"embedding":[0]},{"index":1,"embedding":[1]}]}`, "zero or not finite"},
		"too large":    {`{"data":[{"index":0,"embedding":[1e39]},{"index":1,"embedding":[1]}]}`, "no list of vectors"},
		"null":         {`{"data":[null,null]}`, "length 0"},
		"no end":       {strings.Repeat(" ", 1<<20), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, embedding.RemoteOptions{}, func(w http.ResponseWriter, _ *http.Request, _ int, _ question) { fmt.Fprint(w, c.answer) })
			_, err := p.remote.Encode(t.Context(), []string{"a", "b"})
			checkFault(t, err, c.err)
		})
	}
}

func TestRemoteUnreachable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	p := newProvider(t, embedding.RemoteOptions{URL: gone.URL}, vectors)
	_, err := p.remote.Encode(t.Context(), []string{"a"})
	checkFault(t, err, "refused")
	if len(p.waits) != 3 {
		t.Errorf("waited %v", p.waits)
	}
	quiet := newProvider(t, embedding.RemoteOptions{Timeout: time.Millisecond}, func(_ http.ResponseWriter, r *http.Request, _ int, _ question) { <-r.Context().Done() })
	_, err = quiet.remote.Encode(t.Context(), []string{"a"})
	checkFault(t, err, "no answer in time")
	ctx, cancel := context.WithCancel(t.Context())
	stopped := newProvider(t, embedding.RemoteOptions{}, func(_ http.ResponseWriter, r *http.Request, _ int, _ question) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := stopped.remote.Encode(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOpenRemoteSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]embedding.RemoteOptions{
		"url":        {URL: "ftp://x", Name: "m"},
		"a user":     {URL: "http://u:p@x", Name: "m"},
		"model":      {URL: "http://x"},
		"dimensions": {URL: "http://x", Name: "m", Dimensions: -1},
		"line break": {URL: "http://x", Name: "m", Key: secret + "\n"},
	} {
		if _, err := embedding.OpenRemote(opts); fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

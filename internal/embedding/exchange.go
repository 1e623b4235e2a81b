package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pml-run/pml/internal/fault"
)

// maxPerText bounds an answer, in bytes for each text: 8,192 numbers of 16 digits and
// more. maxQuote is how many runes of a provider's own words an error shows.
const (
	maxPerText = 256 << 10
	maxQuote   = 300
)

// answer is what is read of a provider's answer.
type answer struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// busyError is a failure that may pass.
type busyError struct {
	reason string
	after  time.Duration // what the provider asks to wait; 0 when it does not say
}

func (e *busyError) Error() string { return e.reason }

func (r *Remote) encodeRequest(texts []string) ([]byte, error) {
	input := make([]string, len(texts))
	for i, t := range texts {
		input[i] = strings.ToValidUTF8(t, "\ufffd")
		if strings.TrimSpace(t) == "" {
			input[i] = " "
		}
	}
	return json.Marshal(struct {
		Model      string   `json:"model"`
		Input      []string `json:"input"`
		Format     string   `json:"encoding_format"`
		Dimensions int      `json:"dimensions,omitempty"`
	}{r.opts.Name, input, "float", r.opts.Dimensions})
}

// send makes one request for n texts. It returns a *busyError for what may pass.
func (r *Remote) send(ctx context.Context, body []byte, n int) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.endpoint, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if r.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.opts.Key)
	}
	res, err := r.opts.Client.Do(req)
	if err != nil {
		return answer{}, &busyError{reason: r.masked(cause(err))}
	}
	defer res.Body.Close() //nolint:errcheck // only read
	limit := int64(n) * maxPerText
	data, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		return answer{}, &busyError{reason: r.masked(cause(err))}
	case int64(len(data)) > limit:
		return answer{}, r.wrong("more than %d bytes", limit)
	case res.StatusCode != http.StatusOK:
		return answer{}, r.refused(res, data)
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return answer{}, r.wrong("something that is no list of vectors: %s", r.masked(err.Error()))
	}
	return a, nil
}

// cause leaves out the address, which the caller says better.
func cause(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// refused turns a status into an error; what may pass is a *busyError.
func (r *Remote) refused(res *http.Response, body []byte) error {
	reason := fmt.Sprintf("status %d: %s", res.StatusCode, r.quote(body))
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500 {
		return &busyError{reason: reason, after: retryAfter(res.Header.Get("Retry-After"))}
	}
	err := fault.New(fault.Unavailable, "the embedding provider %s refuses: %s", r.host(), reason)
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return err.WithHint("check embedding.key")
	}
	return err.WithHint("check embedding.url, embedding.model and embedding.dimensions")
}

// retryAfter reads the two forms of the header (RFC 9110, §10.2.3); 0 is no wish.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// quote returns the message of an OpenAI-style error, or the beginning of the body.
func (r *Remote) quote(body []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		text = e.Error.Message
	}
	text = r.masked(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if runes := []rune(text); len(runes) > maxQuote {
		text = string(runes[:maxQuote]) + "…"
	}
	return text
}

// masked takes the key out of a text that may repeat it.
func (r *Remote) masked(text string) string {
	if r.opts.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, r.opts.Key, "[key]")
}

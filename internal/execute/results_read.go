package execute

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
)

// reading is a ResultRequest that was checked.
type reading struct {
	ResultRequest

	path []step
	grep *regexp.Regexp // nil for all lines
	// The call that is read; no node for the run's own result.
	node       string
	occurrence int
}

// reading checks the request and fills in its defaults.
func (req ResultRequest) reading() (reading, error) {
	if req.Limit == 0 {
		req.Limit = defaultPage
	}
	if req.Format == "" {
		req.Format = formatRaw
	}
	out := reading{ResultRequest: req}
	var err error
	switch {
	case req.Limit < 1 || req.Limit > maxPage:
		return out, fault.New(fault.InvalidInput, "limit is %d", req.Limit).WithHint("use 1 to %d characters", maxPage)
	case req.Offset < 0:
		return out, fault.New(fault.InvalidInput, "offset is %d", req.Offset).WithHint("use 0 or the last answer's next_offset")
	case req.Format != formatRaw && req.Format != formatPretty && req.Format != formatShape:
		return out, fault.New(fault.InvalidInput, "format is %q", Preview(req.Format, maxName)).WithHint(`use "raw", "pretty" or "shape"`)
	case req.Format == formatShape && req.Grep != "":
		return out, fault.New(fault.InvalidInput, "format \"shape\" and grep cannot be had at once").WithHint("ask for one, then for the other")
	}
	if out.path, err = parsePath(req.Path); err != nil {
		return out, err
	}
	if req.Grep != "" {
		out.grep, err = compilePattern(req.Grep)
	}
	return out, err
}

// fill puts the page that was asked for into the answer. load reads the whole result.
func (r *Results) fill(ctx context.Context, a *ResultAnswer, id uuid.UUID, expires time.Time, req reading, load func() (json.RawMessage, error)) (*ResultAnswer, error) {
	whole := viewKey{run: id, task: req.TaskID}
	key := whole
	key.path, key.format, key.grep = req.Path, req.Format, req.Grep
	kept, ok := r.cache.get(key)
	if !ok {
		value, err := r.whole(whole, load)
		if err != nil {
			return nil, err
		}
		if value, err = r.part(ctx, id, req, value); err != nil {
			return nil, err
		}
		kept.key = key
		if kept.view, err = req.view(ctx, value); err != nil {
			return nil, err
		}
		r.cache.put(kept)
	}
	if !expires.IsZero() {
		a.ExpiresAt = &expires
	}
	return a, a.page(kept.view, req)
}

// whole is a whole result as JSON.
func (r *Results) whole(key viewKey, load func() (json.RawMessage, error)) (string, error) {
	if kept, ok := r.cache.get(key); ok {
		return kept.json, nil
	}
	raw, err := load()
	if err != nil {
		return "", err
	}
	value := string(raw)
	if !json.Valid(raw) {
		value = string(mustJSON(value)) // then it is a text
	}
	begin := withoutSpace(value, 0)
	value = value[begin:]
	r.cache.put(keptView{key: key, json: value})
	return value, nil
}

// part is what the request's path leads to in a whole result; where that is a data_ref,
// what it stands for.
func (r *Results) part(ctx context.Context, id uuid.UUID, req reading, whole string) (string, error) {
	value, err := follow(whole, req.path)
	if err != nil {
		return "", err
	}
	if ref, ok := referred(req.path, value); ok {
		return r.payload(ctx, id, req, ref)
	}
	return value, nil
}

// view makes the text that was asked for of the chosen value.
func (req reading) view(ctx context.Context, value string) (*view, error) {
	switch {
	case req.grep != nil:
		return grep(ctx, value, req.grep)
	case req.Format == formatShape:
		return shapeOf(value), nil
	}
	return render(value, req.Format), nil
}

// page puts one page of a view into the answer.
func (a *ResultAnswer) page(v *view, req reading) error {
	content, from, to, err := v.page(req.Offset, req.Limit)
	if err != nil {
		return err
	}
	a.Type, a.Content, a.TotalChars = v.kind, content, v.total
	if from != req.Offset {
		a.Offset = from
	}
	if to < v.total {
		a.NextOffset = to
	}
	if req.grep != nil {
		a.Matches = &v.matches
		if v.listed < v.matches {
			a.MatchesListed = v.listed
		}
	}
	return nil
}

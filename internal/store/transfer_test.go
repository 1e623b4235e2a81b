package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/trace"
)

// filled returns a store with a row or more in several tables, and a run of it.
func filled(t *testing.T) (*store.Store, trace.Trace) {
	t.Helper()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read", "write")
	var last trace.Trace
	for range 20 {
		last = finished(begun(t, s), newCall("n1", 1, 1, "fs:read"), newCall("n2", 1, 2, "fs:write"))
		last.Run.Result = json.RawMessage(`"` + strings.Repeat("große ", 1000) + `"`)
		if err := s.FinishRun(ctx, last, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetSetting(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	if err := store.Exec(ctx, s, `insert into embedding (workspace_id, kind, ref_id, model, text_hash, vec)
		values (@ws, 'tool', 'fs:read', 'm', 'h', array_fill(0.25::real, array[384])::vector)`); err != nil {
		t.Fatal(err)
	}
	if err := store.Exec(ctx, s, `insert into policy_rule (workspace_id, pattern, effect, origin) values (@ws, 'fs:*', 'allow', 'person')`); err != nil {
		t.Fatal(err)
	}
	return s, last
}

func TestExportImport(t *testing.T) {
	t.Parallel()
	from, last := filled(t)
	ctx := t.Context()
	var file bytes.Buffer
	if err := from.Export(ctx, &file); err != nil {
		t.Fatal(err)
	}
	to := storetest.New(t)
	data := file.Bytes()
	if err := to.Import(ctx, bytes.NewReader(data), store.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, to.Import(ctx, bytes.NewReader(data), store.ImportOptions{}), fault.InvalidInput)
	if err := to.Import(ctx, bytes.NewReader(data), store.ImportOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	got, _, err := to.RunResult(ctx, last.Run.ID)
	if err != nil || !bytes.Equal(got, last.Run.Result) {
		t.Errorf("result of %d bytes, %v; want %d", len(got), err, len(last.Run.Result))
	}
	if diff := cmp.Diff(lines(t, from), lines(t, to)); diff != "" {
		t.Errorf("the copy's export differs (-want +got):\n%s", diff)
	}
	// What is numbered goes on after what was imported.
	if err := store.Exec(ctx, to, `insert into policy_rule (workspace_id, pattern, effect, origin) values (@ws, 'x', 'deny', 'person')`); err != nil {
		t.Error(err)
	}
}

// lines returns an export's lines but for the first, which names time and workspace.
func lines(t *testing.T, s *store.Store) []string {
	t.Helper()
	var file bytes.Buffer
	if err := s.Export(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	plain, err := dec.DecodeAll(file.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(plain), "\n")[1:]
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"newer schema": `{"pml_export":1,"schema_version":99999}`,
		"newer format": `{"pml_export":2,"schema_version":1}`,
		"other file":   `{"hello":1}`,
		"no json":      `hello`,
		"cut off":      "{\"pml_export\":1,\"schema_version\":1}\n{\"table\":\"setting\",\"columns\":[\"key\",\"value\"]}\n{\"key\":\"a\",\"value\":\"b\"}\n",
		"other table":  "{\"pml_export\":1,\"schema_version\":1}\n{\"table\":\"pg_authid\",\"columns\":[\"key\"]}\nnull\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enc, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			s := storetest.New(t)
			err = s.Import(t.Context(), bytes.NewReader(enc.EncodeAll([]byte(content+"\n"), nil)), store.ImportOptions{})
			wantCode(t, err, fault.InvalidInput)
			if _, err := s.Setting(t.Context(), "a"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("a part of a refused file is there: %v", err)
			}
		})
	}
}

// TestEveryTableIsExported keeps the list of tables complete. Vectors of other models
// than the built-in one can be made again.
func TestEveryTableIsExported(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	got, err := store.Query(t.Context(), s, `select relname::text from pg_class
		where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'goose_db_version' and relname !~ '^embedding_[0-9]+$' and @ws <> ''`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, name := range store.TableNames() {
		want[name] = true
	}
	have := map[string]bool{}
	for _, name := range got {
		have[name] = true
	}
	if diff := cmp.Diff(have, want); diff != "" {
		t.Errorf("tables (-there +exported):\n%s", diff)
	}
}

func TestSizesAndVersions(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	sizes, err := s.Sizes(ctx)
	if err != nil || sizes.Database == 0 || len(sizes.Tables) != len(store.TableNames()) {
		t.Errorf("sizes %+v, %v", sizes, err)
	}
	backend, err := s.Backend(ctx)
	if err != nil || !strings.HasPrefix(backend, "embedded PGlite 18.") && !strings.HasPrefix(backend, "PostgreSQL 1") {
		t.Errorf("backend %q, %v", backend, err)
	}
	if v, err := s.VectorVersion(ctx); err != nil || !strings.HasPrefix(v, "0.") {
		t.Errorf("pgvector %q, %v", v, err)
	}
}

func TestCallersEndIsTheCallersError(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ping(ctx); err != context.Canceled { //nolint:errorlint // it is handed on as it is
		t.Errorf("got %v, want context.Canceled", err)
	}
}

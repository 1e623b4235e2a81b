package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/tool"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	tools := withTools(t, s, "a", "b", "c")
	yes := true
	changedTool := tools[1]
	changedTool.SchemaHash, changedTool.OutputSchema = "2", json.RawMessage(`{"type": "string"}`)
	annotated := tools[0]
	annotated.Annotations.ReadOnly = &yes
	added := tool.Tool{ID: "fs:d:with colon", SchemaHash: "1"}

	changed, err := s.SaveCatalog(ctx, "fs", []tool.Tool{annotated, changedTool, added})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tool.ID{"fs:b", "fs:c"}, changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	got, err := s.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tool.Tool{annotated, changedTool, added}, got); diff != "" {
		t.Errorf("catalog (-want +got):\n%s", diff)
	}
	// What comes back is there again; another server's list is none of its business.
	if _, err := s.SaveCatalog(ctx, "other", nil); err != nil {
		t.Fatal(err)
	}
	if changed, err = s.SaveCatalog(ctx, "fs", []tool.Tool{annotated, changedTool, tools[2], added}); err != nil || len(changed) != 0 {
		t.Errorf("changed %v, %v; want none", changed, err)
	}
	if got, err = s.Catalog(ctx); err != nil || len(got) != 4 {
		t.Errorf("%d tools, %v; want 4", len(got), err)
	}
	if _, err := s.SaveCatalog(ctx, "other", tools); err == nil {
		t.Error("a tool of another server was accepted")
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	seen := tool.ServerState{Name: "fs", ConfigHash: "h", State: "connected", ProtocolVersion: "2025-11-25", LastSeen: moment()}
	down := seen
	down.State, down.LastError = "failed", "exit status 1"
	for _, v := range []tool.ServerState{seen, down, {Name: "db", State: "starting"}} {
		if err := s.SaveServer(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Servers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tool.ServerState{{Name: "db", State: "starting"}, down}, got, equalTimes); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	_, err := s.Setting(ctx, "model")
	wantCode(t, err, fault.NotFound)
	for _, v := range []string{"a", "b"} {
		if err := s.SetSetting(ctx, "model", v); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Setting(ctx, "model"); err != nil || got != "b" {
		t.Errorf("setting %q, %v", got, err)
	}
}

package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/pml-run/pml/internal/fault"
)

// EmbeddingKind tells what a vector is of.
type EmbeddingKind string

// The kinds of vectors that can be found.
const (
	ToolEmbedding       EmbeddingKind = "tool"
	CapabilityEmbedding EmbeddingKind = "capability"
)

// EmbeddingKey names what a vector is of: a tool by its id, a capability by its uuid.
type EmbeddingKey struct {
	Kind EmbeddingKind
	Ref  string
}

// Embedding is the vector of one text, and what its use has added.
type Embedding struct {
	EmbeddingKey

	TextHash string
	Vector   []float32 // what it is found by
	// Text is the text's own vector and Used the mean of the Uses intents' that it
	// served; both are nil without uses, when Vector is the text's.
	Text, Used []float32
	Uses       int
}

// Embeddings returns the vectors of a space that were written after a version, and
// the version to ask with the next time; 0 is before all. Text and Used are left out.
func (s *Store) Embeddings(ctx context.Context, space EmbeddingSpace, after int64) ([]Embedding, int64, error) {
	if err := s.makeSpace(ctx, space); err != nil {
		return nil, after, err
	}
	latest := after
	list, err := collect(ctx, s, `
		select kind, ref_id, text_hash, vec, uses, version from `+space.table()+`
		where workspace_id = @ws and model = @model and version > @after and kind <> 'intent'`,
		pgx.NamedArgs{"model": space.Model, "after": after}, func(row pgx.CollectableRow) (Embedding, error) {
			var e Embedding
			var v pgvector.Vector
			var version int64
			err := row.Scan(&e.Kind, &e.Ref, &e.TextHash, &v, &e.Uses, &version)
			e.Vector = v.Slice()
			latest = max(latest, version)
			return e, err
		})
	return list, latest, err
}

// ChangeEmbeddings gives change the present vectors of the keys, those that there
// are, and stores what it returns, in one transaction. Changes of a space's vectors
// come one after the other; change must not use the store and may be called twice.
// Each vector costs the embedded database about 7 ms, during which nothing else can
// be done: give it few keys at a time.
func (s *Store) ChangeEmbeddings(ctx context.Context, space EmbeddingSpace, keys []EmbeddingKey,
	change func(map[EmbeddingKey]Embedding) []Embedding,
) error {
	if err := s.makeSpace(ctx, space); err != nil {
		return err
	}
	return s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		version, err := tx.nextEmbeddingVersion(ctx, space)
		if err != nil {
			return err
		}
		present, err := tx.embeddings(ctx, space, keys)
		if err != nil {
			return err
		}
		args, err := s.embeddingArgs(space, version, change(present))
		if err != nil {
			return err
		}
		_, err = tx.tx.Exec(ctx, `
			insert into `+space.table()+` (workspace_id, kind, ref_id, model, text_hash, vec, text_vec, used_vec, uses, version)
			select @ws, u.kind, u.ref_id, @model, u.hash, u.vec::vector, u.text_vec::vector, u.used_vec::vector, u.uses, @version
			from unnest(@kind::text[], @ref::text[], @hash::text[], @vec::text[], @text::text[], @used::text[], @uses::bigint[])
				as u (kind, ref_id, hash, vec, text_vec, used_vec, uses)
			on conflict (workspace_id, kind, ref_id, model) do update
			set text_hash = excluded.text_hash, vec = excluded.vec, text_vec = excluded.text_vec, used_vec = excluded.used_vec,
				uses = excluded.uses, version = excluded.version, updated_at = now()`, args)
		return err
	})
}

// nextEmbeddingVersion makes the others wait who change the same space: whatever
// commits later has a higher version.
func (t *Tx) nextEmbeddingVersion(ctx context.Context, space EmbeddingSpace) (int64, error) {
	var text string
	err := t.tx.QueryRow(ctx, `
		insert into setting as s (workspace_id, key, value) values (@ws, @key, '1')
		on conflict (workspace_id, key) do update set value = (s.value::bigint + 1)::text, updated_at = now()
		returning value`, t.store.args(pgx.NamedArgs{"key": space.setting()})).Scan(&text)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func (t *Tx) embeddings(ctx context.Context, space EmbeddingSpace, keys []EmbeddingKey) (map[EmbeddingKey]Embedding, error) {
	kinds, refs := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		kinds[i], refs[i] = string(k.Kind), text(k.Ref)
	}
	rows, err := t.tx.Query(ctx, `
		select e.kind, e.ref_id, e.text_hash, e.vec, e.text_vec, e.used_vec, e.uses
		from unnest(@kind::text[], @ref::text[]) as u (kind, ref_id)
		join `+space.table()+` e on e.workspace_id = @ws and e.model = @model and e.kind = u.kind and e.ref_id = u.ref_id`,
		t.store.args(pgx.NamedArgs{"model": space.Model, "kind": kinds, "ref": refs}))
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Embedding, error) {
		var e Embedding
		var found pgvector.Vector
		var own, used *pgvector.Vector
		err := row.Scan(&e.Kind, &e.Ref, &e.TextHash, &found, &own, &used, &e.Uses)
		e.Vector = found.Slice()
		if own != nil && used != nil {
			e.Text, e.Used = own.Slice(), used.Slice()
		}
		return e, err
	})
	out := make(map[EmbeddingKey]Embedding, len(list))
	for _, e := range list {
		out[e.EmbeddingKey] = e
	}
	return out, err
}

func (s *Store) embeddingArgs(space EmbeddingSpace, version int64, list []Embedding) (pgx.NamedArgs, error) {
	n := len(list)
	kinds, refs, hashes := make([]string, n), make([]string, n), make([]string, n)
	found, own, used, uses := make([]*string, n), make([]*string, n), make([]*string, n), make([]int64, n)
	for i, e := range list {
		for _, v := range [][]float32{e.Vector, e.Text, e.Used} {
			if len(v) != space.Dimensions && (v != nil || len(e.Vector) == 0) {
				return nil, fault.New(fault.InvalidInput, "a vector of %s has %d dimensions, not %d", e.Ref, len(v), space.Dimensions)
			}
		}
		kinds[i], refs[i], hashes[i], uses[i] = string(e.Kind), text(e.Ref), e.TextHash, int64(e.Uses)
		found[i], own[i], used[i] = vectorText(e.Vector), vectorText(e.Text), vectorText(e.Used)
	}
	return s.args(pgx.NamedArgs{
		"model": space.Model, "version": version, "kind": kinds, "ref": refs, "hash": hashes,
		"vec": found, "text": own, "used": used, "uses": uses,
	}), nil
}

// vectorText is what an array of vectors is sent as: their own type has no array
// that the driver knows. Every float32 comes back as it was.
func vectorText(v []float32) *string {
	if v == nil {
		return nil
	}
	s := pgvector.NewVector(v).String()
	return &s
}

// NearEmbedding is a neighbour of a vector.
type NearEmbedding struct {
	Ref    string
	Cosine float32
}

// maxExplored is the widest search that pgvector's graph allows.
const maxExplored = 1000

// NearestEmbeddings finds the n nearest to a vector, the nearest first, over the
// index: at 100,000 rows about one in a hundred of them is missed.
func (s *Store) NearestEmbeddings(ctx context.Context, space EmbeddingSpace, vector []float32, n int) ([]NearEmbedding, error) {
	if err := s.makeSpace(ctx, space); err != nil {
		return nil, err
	}
	var out []NearEmbedding
	err := s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		// From 0.8 on pgvector looks further when rows of other workspaces were in the way.
		_, err := tx.tx.Exec(ctx, `
			select set_config('hnsw.ef_search', @explored, true),
				case when (select extversion from pg_extension where extname = 'vector') !~ '^0\.[0-7](\.|$)'
					then set_config('hnsw.iterative_scan', 'strict_order', true) end`,
			pgx.NamedArgs{"explored": strconv.Itoa(min(max(n, 100), maxExplored))})
		if err != nil {
			return err
		}
		rows, err := tx.tx.Query(ctx, `
			select ref_id as ref, (1 - `+space.distance()+`)::real as cosine from `+space.table()+`
			where workspace_id = @ws and model = @model and kind <> 'intent' order by `+space.distance()+` limit @limit`,
			s.args(pgx.NamedArgs{"model": space.Model, "vec": *vectorText(vector), "limit": n}))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[NearEmbedding])
		return err
	})
	return out, err
}

// PruneEmbeddings deletes the vectors of tools and capabilities that are gone, or
// were put away before a time, and returns how many went.
func (s *Store) PruneEmbeddings(ctx context.Context, space EmbeddingSpace, before time.Time) (int64, error) {
	if err := s.makeSpace(ctx, space); err != nil {
		return 0, err
	}
	return s.exec(ctx, `
		delete from `+space.table()+` e
		where e.workspace_id = @ws and (
			e.kind = 'tool' and not exists (select from tool_schema t
				where t.workspace_id = @ws and t.tool_id = e.ref_id and (t.removed_at is null or t.removed_at >= @before))
			or e.kind = 'capability' and not exists (select from workflow_pattern p
				where p.workspace_id = @ws and p.pattern_id::text = e.ref_id and (p.state <> 'retired' or p.updated_at >= @before)))`,
		pgx.NamedArgs{"before": before})
}

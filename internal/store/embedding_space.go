package store

import (
	"context"
	"fmt"

	"github.com/pml-run/pml/internal/fault"
)

const (
	// schemaDimensions is the length of the vectors that the schema has a table for.
	schemaDimensions = 384
	// mostDimensions is what a vector column takes; indexes take fewer, with halves of
	// the precision in the second range.
	mostDimensions       = 16_000
	mostIndexedDimension = 2_000
	mostHalvedDimension  = 4_000
)

// EmbeddingSpace is where vectors compare with each other: those of one model. Two
// models never share one, even with the same number of dimensions.
type EmbeddingSpace struct {
	Model      string
	Dimensions int // 1 to 16,000
}

// table is where the space's vectors are: a column has one number of dimensions, so
// each number has a table.
func (e EmbeddingSpace) table() string {
	if e.Dimensions == schemaDimensions {
		return "embedding"
	}
	return fmt.Sprintf("embedding_%d", e.Dimensions)
}

// setting is the key of the space's version.
func (e EmbeddingSpace) setting() string { return "embedding_version:" + text(e.Model) }

// distance is the cosine distance to @vec as the table's index has it.
func (e EmbeddingSpace) distance() string {
	if e.halved() {
		return fmt.Sprintf("(vec::halfvec(%[1]d) <=> @vec::vector::halfvec(%[1]d))", e.Dimensions)
	}
	return fmt.Sprintf("(vec <=> @vec::vector(%d))", e.Dimensions)
}

func (e EmbeddingSpace) halved() bool {
	return e.Dimensions > mostIndexedDimension && e.Dimensions <= mostHalvedDimension
}

// makeSpace makes the table of a number of dimensions that the schema does not have.
// Such tables are no part of an export: their vectors are made again from the texts.
func (s *Store) makeSpace(ctx context.Context, e EmbeddingSpace) error {
	if e.Model == "" || e.Dimensions < 1 || e.Dimensions > mostDimensions {
		return fault.New(fault.InvalidInput, "no vectors of %d dimensions of model %q can be stored", e.Dimensions, e.Model)
	}
	if e.Dimensions == schemaDimensions {
		return nil
	}
	if _, made := s.spaces.Load(e.Dimensions); made {
		return nil
	}
	err := s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		// Two gateways that make it at once would both find it missing.
		_, err := tx.tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('embedding spaces', 0))`)
		if err != nil {
			return err
		}
		_, err = tx.tx.Exec(ctx, e.definition())
		return err
	})
	if err == nil {
		s.spaces.Store(e.Dimensions, true)
	}
	return err
}

// definition is that of the table embedding in the migrations, with other vectors.
func (e EmbeddingSpace) definition() string {
	sql := fmt.Sprintf(`
		create table if not exists %[1]s (
			like embedding including defaults including constraints,
			primary key (workspace_id, kind, ref_id, model));
		do $$ begin
			if (select atttypmod from pg_attribute where attrelid = '%[1]s'::regclass and attname = 'vec') <> %[2]d then
				alter table %[1]s alter vec type vector(%[2]d), alter text_vec type vector(%[2]d), alter used_vec type vector(%[2]d);
			end if;
		end $$;
		create index if not exists %[1]s_version on %[1]s (workspace_id, model, version);`, e.table(), e.Dimensions)
	switch {
	case e.Dimensions <= mostIndexedDimension:
		sql += fmt.Sprintf(`create index if not exists %[1]s_vec on %[1]s using hnsw (vec vector_cosine_ops);`, e.table())
	case e.halved():
		sql += fmt.Sprintf(`create index if not exists %[1]s_vec on %[1]s using hnsw ((vec::halfvec(%[2]d)) halfvec_cosine_ops);`, e.table(), e.Dimensions)
	}
	return sql
}

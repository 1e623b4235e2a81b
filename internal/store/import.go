package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/pml-run/pml/internal/fault"
)

const (
	// importBatch is how many bytes of rows are sent in one statement.
	importBatch = 4 << 20
	// maxRow bounds one row of an import: hexadecimal doubles what a result has.
	maxRow = 256 << 20
)

// ImportOptions says what an import may do.
type ImportOptions struct {
	// Replace empties the workspace first; without it, it must be empty.
	Replace bool
}

// Import reads what Export has written into the workspace, all or nothing.
func (s *Store) Import(ctx context.Context, r io.Reader, opts ImportOptions) error {
	plain, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDecoded))
	if err != nil {
		return err
	}
	defer plain.Close()
	in := &rowReader{in: bufio.NewReaderSize(plain, 1<<20)}
	if err := in.header(); err != nil {
		return err
	}
	run := func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if err := s.makeRoom(ctx, tx, opts.Replace); err != nil {
				return err
			}
			return s.importTables(ctx, tx, in)
		})
	}
	if s.server != nil {
		return translate(ctx, s.server.Unlimited(run))
	}
	return translate(ctx, run())
}

// makeRoom sees to it that the workspace is empty.
func (s *Store) makeRoom(ctx context.Context, tx pgx.Tx, replace bool) error {
	for _, t := range slices.Backward(tables) {
		if replace {
			if _, err := tx.Exec(ctx, `delete from `+t.name+t.where(), s.args(nil)); err != nil {
				return err
			}
			continue
		}
		var full bool
		if err := tx.QueryRow(ctx, `select exists (select from `+t.name+t.where()+`)`, s.args(nil)).Scan(&full); err != nil {
			return err
		}
		if full {
			return fault.New(fault.InvalidInput, "the database is not empty: table %s has rows", t.name).
				WithHint("import into a new data directory, or force the import, which deletes what is there")
		}
	}
	return nil
}

func (s *Store) importTables(ctx context.Context, tx pgx.Tx, in *rowReader) error {
	for {
		head, err := in.table()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.importTable(ctx, tx, head, in); err != nil {
			return fmt.Errorf("import %s: %w", head.Table, err)
		}
	}
}

func (s *Store) importTable(ctx context.Context, tx pgx.Tx, head tableHeader, in *rowReader) error {
	at := slices.IndexFunc(tables, func(t table) bool { return t.name == head.Table })
	if at < 0 {
		return fault.New(fault.InvalidInput, "the file has a table that this binary does not know")
	}
	known, err := columnsOf(ctx, tx, head.Table)
	if err != nil {
		return err
	}
	// Columns that came later than the file keep their defaults. Names come from a
	// file: only those that the table has go into the statement.
	columns := slices.DeleteFunc(slices.Clone(known), func(c string) bool { return !slices.Contains(head.Columns, c) })
	list := strings.Join(columns, ", ")
	sql := fmt.Sprintf(`insert into %[1]s (workspace_id, %[2]s) overriding system value
		select @ws, %[2]s from jsonb_populate_recordset(null::%[1]s, @rows::jsonb)`, head.Table, list)
	for {
		rows, more, err := in.rows(importBatch)
		if err != nil {
			return err
		}
		if rows != "" {
			if _, err := tx.Exec(ctx, sql, s.args(pgx.NamedArgs{"rows": rows})); err != nil {
				return err
			}
		}
		if !more {
			return s.advance(ctx, tx, tables[at])
		}
	}
}

// advance lets an identity column go on after what was imported.
func (s *Store) advance(ctx context.Context, tx pgx.Tx, t table) error {
	if t.identity == "" {
		return nil
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`
		select setval(pg_get_serial_sequence('%[1]s', '%[2]s'), greatest(max(%[2]s), 1)) from %[1]s having max(%[2]s) is not null`,
		t.name, t.identity))
	return err
}

// rowReader reads an export's lines.
type rowReader struct {
	in *bufio.Reader
}

func (r *rowReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxRow {
			return nil, fault.New(fault.InvalidInput, "the file has a row of more than %d bytes", maxRow)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// header reads and checks the first line.
func (r *rowReader) header() error {
	var h exportHeader
	line, err := r.line()
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil || h.Format == 0 {
		return fault.New(fault.InvalidInput, "this is not a file that 'pml db export' has written")
	}
	known, err := schemaVersion()
	if err != nil {
		return err
	}
	if h.Format > exportFormat || h.Schema > known {
		return fault.New(fault.InvalidInput, "the file is newer than this binary: format %d and schema %d, known are %d and %d",
			h.Format, h.Schema, exportFormat, known).WithHint("import it with the release that has written it, or a newer one")
	}
	return nil
}

func (r *rowReader) table() (tableHeader, error) {
	var h tableHeader
	line, err := r.line()
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(line, &h); err != nil || h.Table == "" {
		return h, fault.New(fault.InvalidInput, "the file is damaged")
	}
	return h, nil
}

// rows reads rows as one JSON array of about limit bytes; more is false when the
// table's last row was read.
func (r *rowReader) rows(limit int) (array string, more bool, err error) {
	var b strings.Builder
	for b.Len() < limit {
		line, err := r.line()
		if err != nil {
			return "", false, fault.New(fault.InvalidInput, "the file ends in the middle")
		}
		if string(line) == "null" {
			return closed(&b), false, nil
		}
		if b.Len() == 0 {
			b.WriteByte('[')
		} else {
			b.WriteByte(',')
		}
		b.Write(line)
	}
	return closed(&b), true, nil
}

func closed(b *strings.Builder) string {
	if b.Len() > 0 {
		b.WriteByte(']')
	}
	return b.String()
}

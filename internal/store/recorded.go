package store

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/tool"
)

// RecordedResult returns the latest result that is still kept of a call of a tool
// with these arguments; exact is false where there is only one with arguments of
// the same names.
func (s *Store) RecordedResult(ctx context.Context, id tool.ID, argsHash string, args json.RawMessage) (result json.RawMessage, exact, ok bool, err error) {
	type row struct {
		Packed []byte
		Exact  bool
	}
	found, err := collect(ctx, s, `
		select result as packed, args_hash = @hash as exact from task_result
		where workspace_id = @ws and tool = @tool and status = 'ok' and result is not null and (expires_at is null or expires_at > @now)
		  and (args_hash = @hash or jsonb_typeof(args) = 'object' and
		    array(select jsonb_object_keys(args) order by 1) = array(select jsonb_object_keys(@args::jsonb) order by 1))
		order by exact desc, started_at desc limit 1`,
		pgx.NamedArgs{"tool": text(string(id)), "hash": argsHash, "args": jsonb(args), "now": s.now()}, pgx.RowToStructByName[row])
	if err != nil || len(found) == 0 {
		return nil, false, false, err
	}
	result, err = unpack(found[0].Packed)
	return result, found[0].Exact, err == nil, err
}

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

const (
	mostExamples      = 3
	maxExampleArgs    = 2 << 10
	maxExamplePreview = 300

	// The rows were locked, in order, when they were read.
	updateToolCounters = `
		update tool_schema t
		set calls = t.calls + u.calls, failures = t.failures + u.failures, total_ms = t.total_ms + u.ms, updated_at = now(),
			observed_schema = coalesce(u.schema::jsonb, t.observed_schema), observed_count = coalesce(u.observed, t.observed_count)
		from unnest(@tool::text[], @calls::bigint[], @failures::bigint[], @ms::float8[], @schema::text[], @observed::bigint[])
			as u (tool_id, calls, failures, ms, schema, observed)
		where t.workspace_id = @ws and t.tool_id = u.tool_id`
	// For the same reason nobody else takes a slot at the same time.
	insertExamples = `
		insert into tool_example (workspace_id, tool_id, slot, args_hash, args, result_preview, seen_at)
		select @ws, n.tool_id, n.slot, n.args_hash, n.args::jsonb, n.preview, n.seen_at
		from (
			select u.*, (select count(*) from tool_example e where e.workspace_id = @ws and e.tool_id = u.tool_id)
				+ row_number() over (partition by u.tool_id order by u.seen_at, u.args_hash) as slot
			from unnest(@tool::text[], @hash::text[], @args::text[], @preview::text[], @seen::timestamptz[])
				as u (tool_id, args_hash, args, preview, seen_at)
			join tool_schema s on s.workspace_id = @ws and s.tool_id = u.tool_id
			where not exists (select from tool_example e
				where e.workspace_id = @ws and e.tool_id = u.tool_id and e.args_hash = u.args_hash)
		) n
		where n.slot <= @most
		on conflict do nothing`
)

// counters sums up the finished calls of one tool.
type counters struct {
	calls, failures int64
	ms              float64
}

// queueStatistics queues what the run's calls, and a lesson from them, say about its
// tools. Tools that are not in the catalog have no row, and no statistics. shown are
// the examples that the tools are known to have, by the hashes of their arguments.
func (s *Store) queueStatistics(b *pgx.Batch, t trace.Trace, observed map[tool.ID]tool.Observed, shown map[tool.ID][]string) error {
	sums := map[tool.ID]*counters{}
	for _, c := range t.Calls {
		if c.Status == trace.CallStarted {
			continue // its outcome is not known
		}
		sum := sums[c.Tool]
		if sum == nil {
			sum = &counters{}
			sums[c.Tool] = sum
		}
		sum.calls++
		if c.Status == trace.CallError {
			sum.failures++
		}
		sum.ms += milliseconds(c.Duration)
	}
	if len(sums) == 0 {
		return nil
	}
	args, err := s.counterArgs(sums, observed)
	if err != nil {
		return err
	}
	b.Queue(updateToolCounters, args)
	if examples := examplesOf(t.Calls, shown); len(examples) > 0 {
		b.Queue(insertExamples, s.exampleArgs(examples))
	}
	return nil
}

func (s *Store) counterArgs(sums map[tool.ID]*counters, observed map[tool.ID]tool.Observed) (pgx.NamedArgs, error) {
	var ids []string
	var calls, failures []int64
	var ms []float64
	var schemas []*string
	var counts []*int64
	for id, sum := range sums {
		ids = append(ids, text(string(id)))
		calls, failures, ms = append(calls, sum.calls), append(failures, sum.failures), append(ms, sum.ms)
		seen, ok := observed[id]
		if !ok {
			schemas, counts = append(schemas, nil), append(counts, nil)
			continue
		}
		schema, err := json.Marshal(seen.Shape)
		if err != nil {
			return nil, err
		}
		schemas, counts = append(schemas, jsonb(schema)), append(counts, &seen.Count)
	}
	return s.args(pgx.NamedArgs{
		"tool": ids, "calls": calls, "failures": failures, "ms": ms, "schema": schemas, "observed": counts,
	}), nil
}

// example is one successful call that shows how a tool is used.
type example struct {
	tool          tool.ID
	hash, preview string
	args          *string
	seen          time.Time
}

// examplesOf picks at most three different calls for each tool, with those it has.
func examplesOf(calls []trace.Call, shown map[tool.ID][]string) []example {
	var out []example
	for _, c := range calls {
		if c.Status != trace.CallOK || len(c.Args) == 0 || len(c.Args) > maxExampleArgs {
			continue
		}
		e := example{tool: c.Tool, hash: c.ArgsHash, args: jsonb(c.Args), preview: preview(c.Result), seen: c.StartedAt}
		if e.hash == "" {
			sum := sha256.Sum256(c.Args)
			e.hash = hex.EncodeToString(sum[:])
		}
		same := len(shown[c.Tool])
		known := slices.Contains(shown[c.Tool], e.hash) || slices.ContainsFunc(out, func(o example) bool {
			if o.tool == e.tool {
				same++
			}
			return o.tool == e.tool && o.hash == e.hash
		})
		if !known && same < mostExamples {
			out = append(out, e)
		}
	}
	return out
}

// preview is the beginning of a result, cut between characters.
func preview(result []byte) string {
	if len(result) <= maxExamplePreview {
		return text(string(result))
	}
	cut := maxExamplePreview
	for cut > 0 && !utf8.RuneStart(result[cut]) {
		cut--
	}
	return strings.TrimSpace(text(string(result[:cut]))) + "…"
}

func (s *Store) exampleArgs(list []example) pgx.NamedArgs {
	n := len(list)
	tools, hashes, previews := make([]string, n), make([]string, n), make([]string, n)
	args, seen := make([]*string, n), make([]time.Time, n)
	for i, e := range list {
		tools[i], hashes[i], previews[i] = text(string(e.tool)), e.hash, e.preview
		args[i], seen[i] = e.args, e.seen
	}
	return s.args(pgx.NamedArgs{"tool": tools, "hash": hashes, "args": args, "preview": previews, "seen": seen, "most": mostExamples})
}

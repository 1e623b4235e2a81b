package evaluate

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pml-run/pml/internal/search"
)

// Report is what was measured.
type Report struct {
	Model       string       `json:"model,omitempty"` // empty: there were no vectors
	Sets        []SetReport  `json:"sets"`
	Calibration *Calibration `json:"calibration,omitempty"`
}

// SetReport is what was measured on one data set.
type SetReport struct {
	Name    string   `json:"name"`
	Tools   int      `json:"tools"`
	Queries int      `json:"queries"`
	Scores  []Scores `json:"scores"`
}

// Score is the row of a variant.
func (s SetReport) Score(variant string) (Scores, bool) {
	for _, row := range s.Scores {
		if row.Variant == variant {
			return row, true
		}
	}
	return Scores{}, false
}

// Measure runs the variants on each data set. Without an encoder it measures what
// needs none.
func Measure(ctx context.Context, sets []*Dataset, e Encoder) (Report, error) {
	r := Report{Sets: []SetReport{}}
	if e != nil {
		r.Model = e.Model()
	}
	for _, d := range sets {
		s := SetReport{Name: d.Name, Tools: len(d.Tools), Queries: len(d.Queries)}
		c, err := Encode(ctx, d, e)
		if err != nil {
			return r, err
		}
		variants := []Variant{wordsOnly}
		if e != nil {
			variants = Variants(search.FusionFor(e.Model()), len(d.Examples) > 0)
		}
		for _, v := range variants {
			scores, err := c.Measure(ctx, v)
			if err != nil {
				return r, err
			}
			s.Scores = append(s.Scores, scores)
		}
		r.Sets = append(r.Sets, s)
	}
	return r, nil
}

// Print writes a report for people.
func (r Report) Print(w io.Writer) {
	if r.Model == "" {
		fmt.Fprintln(w, "no model: words only")
	} else {
		fmt.Fprintln(w, "model "+r.Model)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, s := range r.Sets {
		fmt.Fprintf(t, "\n%s: %d tools, %d queries\tnDCG@10\tR@5\tR@10\t\n", s.Name, s.Tools, s.Queries)
		for _, row := range s.Scores {
			fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t\n", row.Variant, row.NDCG10, row.Recall5, row.Recall10)
		}
	}
	_ = t.Flush() // what people read: a closed terminal is nobody's error
	if c := r.Calibration; c != nil {
		fmt.Fprintf(w, "\nconfidence fitted: offset %.3f, cosine %.3f, margin %.3f\n", c.Fit.Offset, c.Fit.Cosine, c.Fit.Margin)
		c.Fitted.print(w, "fitted")
		c.Used.print(w, "in use")
	}
}

func (q Quality) print(w io.Writer, name string) {
	fmt.Fprintf(w, "%s, on %d held-out intents (%d right): Brier %.3f (base rate %.3f), from %.2f on precision %.3f, recall %.3f\n",
		name, q.Intents, q.Right, q.Brier, q.Base, q.Threshold, q.Precision, q.Recall)
	for _, b := range q.Bins {
		fmt.Fprintf(w, "  said %.2f  true %.2f  of %d\n", b.Said, b.True, b.Count)
	}
}

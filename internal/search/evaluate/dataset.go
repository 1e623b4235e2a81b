// Package evaluate measures how well search finds tools, on data sets of tools and
// of queries whose tools are known, and fits the confidence of a match to them. It
// is behind pml bench-search; the gateway never uses it.
package evaluate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/tool"
)

// Files are where a data set is: JSON Lines each.
type Files struct {
	Name     string // for the report
	Corpus   string // {id, name, server?, description, input_schema?}
	Queries  string // {query, relevant: [id]}
	Examples string // {id, examples: [query]}; optional
}

// Dataset is a corpus with queries whose answers are known.
type Dataset struct {
	Name    string
	Tools   []Tool
	Queries []Query
	// Examples are past intents of tools, by id; none of them is among the queries.
	Examples map[string][]string
}

// Tool is one tool of a corpus.
type Tool struct {
	ID, Name, Description string
	Text                  search.Text
}

// Query is an intent with the tools that serve it.
type Query struct {
	Text     string   `json:"query"`
	Relevant []string `json:"relevant"`
}

// In are the files of a data set that has a folder of its own: corpus.jsonl,
// queries.jsonl and, where there is one, examples.jsonl.
func In(dir string) Files {
	f := Files{Name: filepath.Base(dir), Corpus: filepath.Join(dir, "corpus.jsonl"), Queries: filepath.Join(dir, "queries.jsonl")}
	examples := filepath.Join(dir, "examples.jsonl")
	if _, err := os.Stat(examples); err == nil {
		f.Examples = examples
	}
	return f
}

// maxLine bounds one line of a file in bytes.
const maxLine = 4 << 20

// Load reads a data set. What is wrong with it is an invalid_input that names the
// file and the line.
func Load(files Files) (*Dataset, error) {
	d := &Dataset{Name: files.Name, Examples: map[string][]string{}}
	known := map[string]bool{}
	if err := eachLine(files.Corpus, func(line []byte) error { return d.addTool(line, known) }); err != nil {
		return nil, err
	}
	if len(d.Tools) == 0 {
		return nil, fault.New(fault.InvalidInput, "%s has no tools", files.Corpus)
	}
	if err := eachLine(files.Queries, func(line []byte) error { return d.addQuery(line, known) }); err != nil {
		return nil, err
	}
	if len(d.Queries) == 0 {
		return nil, fault.New(fault.InvalidInput, "%s has no queries", files.Queries)
	}
	if files.Examples == "" {
		return d, nil
	}
	if err := eachLine(files.Examples, func(line []byte) error { return d.addExamples(line, known) }); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Dataset) addTool(line []byte, known map[string]bool) error {
	var in struct {
		ID          string          `json:"id"`
		Name        string          `json:"name"`
		Server      string          `json:"server"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if err := decode(line, &in); err != nil {
		return err
	}
	switch {
	case in.ID == "":
		return fault.New(fault.InvalidInput, "a tool without id")
	case known[in.ID]:
		return fault.New(fault.InvalidInput, "a second tool with the id %q", in.ID)
	}
	known[in.ID] = true
	if in.Name == "" {
		in.Name = in.ID
	}
	text := search.ToolText(tool.Tool{ID: tool.MakeID(in.Server, in.Name), Description: in.Description, InputSchema: in.InputSchema})
	d.Tools = append(d.Tools, Tool{ID: in.ID, Name: in.Name, Description: in.Description, Text: text})
	return nil
}

func (d *Dataset) addQuery(line []byte, known map[string]bool) error {
	var q Query
	if err := decode(line, &q); err != nil {
		return err
	}
	if q.Text == "" || len(q.Relevant) == 0 {
		return fault.New(fault.InvalidInput, "a query without text or without relevant tools")
	}
	for _, id := range q.Relevant {
		if !known[id] {
			return unknownID(id)
		}
	}
	d.Queries = append(d.Queries, q)
	return nil
}

func (d *Dataset) addExamples(line []byte, known map[string]bool) error {
	var in struct {
		ID       string   `json:"id"`
		Examples []string `json:"examples"`
	}
	if err := decode(line, &in); err != nil {
		return err
	}
	if !known[in.ID] {
		return unknownID(in.ID)
	}
	d.Examples[in.ID] = append(d.Examples[in.ID], in.Examples...)
	return nil
}

func unknownID(id string) error {
	return fault.New(fault.InvalidInput, "no tool has the id %q", id).WithHint("ids are those of the corpus")
}

func decode(line []byte, into any) error {
	if err := json.Unmarshal(line, into); err != nil {
		return fault.New(fault.InvalidInput, "not JSON of the right shape: %v", err)
	}
	return nil
}

// eachLine calls f for each line that is not blank, and says where its error was.
func eachLine(file string, f func(line []byte) error) error {
	text, err := os.Open(file) //nolint:gosec // the file that the user names
	if err != nil {
		return fault.New(fault.InvalidInput, "data set: %v", err).WithHint("is the path right?")
	}
	defer func() { _ = text.Close() }() // it was only read
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := f(lines.Bytes()); err != nil {
			return in(file, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fault.New(fault.InvalidInput, "%s:%d: %v", file, number+1, err)
	}
	return nil
}

// in puts the place into the message itself: that is what people see of a fault.
func in(file string, line int, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return fmt.Errorf("%s:%d: %w", file, line, err)
	}
	placed := *f
	placed.Message = fmt.Sprintf("%s:%d: %s", file, line, f.Message)
	return &placed
}

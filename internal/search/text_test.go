package search

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

func TestToolText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100) + "last"
	cases := map[string]struct {
		tool tool.Tool
		want Text
	}{
		"names are split, parameters follow in order": {
			tool.Tool{ID: "osm-mcp:geocodeAddress", Description: "Find a place.", InputSchema: json.RawMessage(
				`{"properties":{"zoom":true,"address":{"description":"Where it is. Defaults to home."}}}`)},
			Text{
				Dense:   "osm mcp geocode address: Find a place. Parameters: address, zoom.",
				Lexical: "osm mcp geocode address: Find a place. Parameters: address, zoom. Where it is.",
			},
		},
		"no server, no schema": {
			tool.Tool{ID: ":AI2sql", Description: "Writes SQL."},
			Text{Dense: "ai2sql: Writes SQL.", Lexical: "ai2sql: Writes SQL."},
		},
		"a schema that is none": {
			tool.Tool{ID: "a:b", Description: "x", InputSchema: json.RawMessage(`{"properties":[1`)},
			Text{Dense: "a b: x", Lexical: "a b: x"},
		},
		"the model reads the opening and the parameters": {
			tool.Tool{ID: "a:b", Description: long, InputSchema: json.RawMessage(`{"properties":{"q":{}}}`)},
			Text{
				Dense:   "a b: " + strings.Repeat("word ", 59) + "word Parameters: q.",
				Lexical: "a b: " + strings.Repeat("word ", 59) + "word Parameters: q." + strings.Repeat(" word", 40) + " last",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ToolText(c.tool)
			got.Lexical = strings.Join(strings.Fields(got.Lexical), " ")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	got := ToolText(tool.Tool{ID: "a:b", Description: strings.Repeat("日本", maxText)})
	if len(got.Lexical) > maxText || len(got.Dense) > maxText || !utf8.ValidString(got.Dense) {
		t.Errorf("%d and %d bytes, valid: %v", len(got.Dense), len(got.Lexical), utf8.ValidString(got.Dense))
	}
}

func TestCapabilityText(t *testing.T) {
	t.Parallel()
	got := CapabilityText(capability.Capability{
		Name: "weather_report", Intent: "report the weather", Description: "For a city.",
		ToolsUsed:  []tool.ID{"weather:getForecast", "mail:send"},
		Parameters: []structure.Parameter{{Name: "city", Schema: json.RawMessage(`{"description":"its name"}`)}, {Name: "day"}},
	})
	want := Text{
		Dense:   "weather report: report the weather For a city. Tools: weather get forecast, mail send. Parameters: city, day.",
		Lexical: "weather report: report the weather For a city. Tools: weather get forecast, mail send. Parameters: city, day.  its name",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"":                         nil,
		"read the file report.pdf": nil,
		"Read the file a.pdf. Then mail Bob a link! Thanks.": {"Read the file a.pdf.", "Then mail Bob a link!"},
		"read the file\nwrite the summary":                   nil, // too few words that count
		"读取这个文件。发送邮件给他！":                                     {"读取这个文件。", "发送邮件给他！"},
		strings.Repeat("Send another long mail. ", 12):       slicesRepeat("Send another long mail.", maxSentences),
	}
	for text, want := range cases {
		if diff := cmp.Diff(want, sentences(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func slicesRepeat(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func FuzzToolText(f *testing.F) {
	f.Add("server:tool", "does. things", `{"properties":{"a":{"description":"x"}}}`)
	f.Add("", "", "null")
	f.Add("a:天气", "\xff", `{"properties":{"a":7,"b":[]}}`)
	f.Fuzz(func(t *testing.T, id, description, schema string) {
		got := ToolText(tool.Tool{ID: tool.ID(id), Description: description, InputSchema: json.RawMessage(schema)})
		if len(got.Dense) > maxText || len(got.Lexical) > maxText {
			t.Error("a text is longer than the limit")
		}
		for _, term := range append(tokens(got.Lexical), tokens(description)...) {
			if term == "" {
				t.Error("an empty term")
			}
		}
		sentences(description)
	})
}

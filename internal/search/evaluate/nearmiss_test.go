package evaluate

import (
	"testing"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// job is a capability with intents that ask for it and intents that ask for something
// else in nearly the same words.
type job struct {
	name, intent string
	tools        []tool.ID
	parameters   []string
	same, misses []string
}

var jobs = []job{
	{
		name: "weather_forecast_city", intent: "get the weather forecast for a city", tools: []tool.ID{"weather:forecast"}, parameters: []string{"city"},
		same:   []string{"get a city's weather forecast"},
		misses: []string{"get the air quality of a city", "what time is it in Paris", "list cities in France"},
	},
	{
		name: "read_config_file", intent: "read the configuration file and return its settings", tools: []tool.ID{"filesystem:read_file"}, parameters: []string{"path"},
		same:   []string{"read the config file and give me its settings"},
		misses: []string{"write the settings to the configuration file", "delete the configuration file", "read the log file and count errors"},
	},
	{
		name: "create_github_issue", intent: "create a GitHub issue from a bug report", tools: []tool.ID{"github:create_issue"}, parameters: []string{"title", "body", "repo"},
		same:   []string{"file a bug report as a GitHub issue"},
		misses: []string{"close a GitHub issue", "list open GitHub issues", "create a GitHub pull request"},
	},
	{
		name: "sum_csv_column", intent: "sum a column of a CSV file", tools: []tool.ID{"filesystem:read_file"}, parameters: []string{"path", "column"},
		same:   []string{"compute the sum of a CSV column"},
		misses: []string{"sort a CSV file by a column", "count the rows of a CSV file", "convert a CSV file to JSON"},
	},
	{
		name: "translate_to_german", intent: "translate a text into German", tools: []tool.ID{"translator:translate"}, parameters: []string{"text"},
		same:   []string{"put this text into German"},
		misses: []string{"translate a text into French", "summarise a German text", "detect the language of a text"},
	},
	{
		name: "email_weekly_report", intent: "send the weekly sales report by email to the team", tools: []tool.ID{"mail:send", "sales:report"}, parameters: []string{"week"},
		same:   []string{"email this week's sales report to my team", "mail the team the weekly report on sales"},
		misses: []string{"send the monthly invoice by email", "create the weekly sales report as a PDF", "read my unread email"},
	},
	{
		name: "resize_images_folder", intent: "resize all images in a folder to 800 pixels", tools: []tool.ID{"image:resize", "filesystem:list"}, parameters: []string{"folder", "width"},
		same:   []string{"make all images in this folder 800 pixels wide"},
		misses: []string{"rotate all images in a folder", "delete all images in a folder", "list all images in a folder"},
	},
}

// TestNearMisses: an intent runs a capability by itself when it asks for the same in
// other words, and not when one word makes it another job. The other capabilities are
// about other things, so that nothing but the words can tell.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	e := model(t)
	x := search.NewIndex()
	for _, j := range jobs {
		c := capability.Capability{Name: j.name, Intent: j.intent, ToolsUsed: j.tools}
		for _, p := range j.parameters {
			c.Parameters = append(c.Parameters, structure.Parameter{Name: p})
		}
		text := search.CapabilityText(c)
		vectors, err := e.Encode(t.Context(), []string{text.Dense, e.QueryPrefix() + j.intent})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Put(search.Document{ID: j.name, Kind: search.Capabilities, Lexical: text.Lexical}); err != nil {
			t.Fatal(err)
		}
		if err := x.SetVectors(map[string][]float32{j.name: search.Uses{}.Add(vectors[1]).Vector(vectors[0])}); err != nil {
			t.Fatal(err)
		}
	}
	confidence := func(intent, name string) float64 {
		q, err := search.Ask(t.Context(), e, intent)
		if err != nil {
			t.Fatal(err)
		}
		hit, match, err := x.Best(t.Context(), q, search.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if hit.ID != name {
			return 0
		}
		return search.Confidence(match)
	}
	for _, j := range jobs {
		for _, intent := range append(j.same, j.intent) {
			if got := confidence(intent, j.name); got < search.DefaultThreshold {
				t.Errorf("%s would not run by %q: %.2f", j.name, intent, got)
			}
		}
		for _, intent := range j.misses {
			if got := confidence(intent, j.name); got >= search.DefaultThreshold {
				t.Errorf("%s would run by %q: %.2f", j.name, intent, got)
			}
		}
	}
}

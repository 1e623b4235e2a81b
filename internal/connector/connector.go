package connector

import (
	"encoding/json"
	"fmt"

	"github.com/pml-run/pml/internal/tool"
)

// Call is one call that is to be answered without its server.
type Call struct {
	Tool tool.Tool
	// Server has all tools of the tool's server, the tool itself among them.
	Server []tool.Tool
	// Args are the arguments: whatever they are, there is a bounded answer or none.
	Args json.RawMessage
	// Seed decides what is made up; calls of one seed agree with each other.
	Seed string
	// Place tells apart the calls of a run, so that what they create has numbers of its own.
	Place string
}

// Answer is a result that was made up.
type Answer struct {
	// Connector says in whose manner: github, slack or sql.
	Connector string
	// Result is what the server would have sent, as tools/call has it.
	Result json.RawMessage
}

// connector is the knowledge of one kind of server.
type connector struct {
	name string
	// methods are its tools by their names in snake_case.
	methods map[string]method
	// owns reports whether a tool whose name and parameters fit a method is of such a server.
	owns func(s server, t declared) bool
}

// method is one tool of a connector.
type method struct {
	// takes are the parameters without which a tool of that name is another one.
	takes []parameter
	// answer makes the value, which is sent as JSON text unless it is of type plain or
	// blocks. Nil means that nothing is known of what these arguments lead to.
	answer func(c *call) any
}

// plain is an answer in words.
type plain string

// blocks is an answer of more than one content block.
type blocks []any

// object is a JSON object that is made up.
type object = map[string]any

// registered are the connectors, in the order in which they are asked.
func registered() []connector { return []connector{github(), slack(), sql()} }

// Generate makes up the answer of a call; false means that no connector knows its
// tool, or what its arguments lead to.
func Generate(c Call) (Answer, bool) {
	s := server{name: c.Tool.ID.Server(), tools: c.Server}
	for _, k := range registered() {
		t, ok := k.knows(s, c.Tool)
		if !ok {
			continue
		}
		made := call{server: s, tool: t, args: readArguments(c.Args), chance: chance(c.Seed), place: fmt.Sprint(c.Place, string(c.Args))}
		value := t.method.answer(&made)
		if value == nil {
			return Answer{}, false
		}
		result, err := result(value)
		if err != nil {
			return Answer{}, false
		}
		return Answer{Connector: k.name, Result: result}, true
	}
	return Answer{}, false
}

// result writes a value as the result of tools/call.
func result(value any) (json.RawMessage, error) {
	content, ok := value.(blocks)
	if !ok {
		text, isPlain := value.(plain)
		if !isPlain {
			b, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			text = plain(b)
		}
		content = blocks{object{"type": "text", "text": string(text)}}
	}
	return json.Marshal(object{"content": content})
}

// call is what a method answers.
type call struct {
	chance

	server server
	tool   declared
	args   arguments
	place  string // differs between calls that have each made something of its own
}

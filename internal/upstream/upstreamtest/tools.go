package upstreamtest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Names are the tools of the scripted server in its plain manner.
//
//	echo           the arguments, as structured content
//	big            integers over 2^53, unknown fields
//	unknown        a content block of an unknown type
//	large          one line of {bytes} bytes
//	crash          exits in the middle of the call, with words on stderr
//	hang           never answers
//	wait_cancelled answers when a cancellation has arrived
//	fail           isError
//	refuse         a JSON-RPC error
//	grow           declares one more tool, and says so
//	progress       two progress notifications
//	elicit, sample, roots   asks the client, and answers with its answer
//	env            the environment
//	noise          prints noise in front of its answer
//	append         adds a line to the file that LedgerVar names: a side effect that shows each time
var Names = []string{"echo", "big", "unknown", "large", "crash", "hang", "wait_cancelled", "fail", "refuse", "grow", "progress", "elicit", "sample", "roots", "env", "noise", "append"}

// BigResult is the result of the tool "big", byte for byte.
const BigResult = `{"content":[{"type":"text","text":"{\"id\":9007199254740993}"}],"structuredContent":{"id":9007199254740993,"e":1E400},"x-unknown":{"a":[1,2]}}`

// UnknownResult is the result of the tool "unknown".
const UnknownResult = `{"content":[{"type":"hologram","beam":12345678901234567890}]}`

func (s *server) list(params json.RawMessage) string {
	if declared := os.Getenv(ToolsVar); declared != "" {
		return `{"tools":` + declared + `}`
	}
	var tools []string
	for _, name := range Names {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object"}}`, name, name))
	}
	s.mu.Lock()
	extra := s.extra
	s.mu.Unlock()
	for i := range extra {
		tools = append(tools, fmt.Sprintf(`{"name":"grown_%d","inputSchema":{"type":"object"}}`, i))
	}
	switch {
	case s.has("hostile"):
		tools = append(tools, hostileTools()...)
	case s.has("many"):
		for i := range 500 {
			tools = append(tools, fmt.Sprintf(`{"name":"tool_%03d","inputSchema":{"type":"object"}}`, i))
		}
	case s.has("paged"):
		var p struct {
			Cursor string `json:"cursor"`
		}
		_ = json.Unmarshal(params, &p)
		at, _ := strconv.Atoi(p.Cursor)
		at %= len(tools)
		return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, tools[at], (at+1)%len(tools))
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

func hostileTools() []string {
	return []string{
		`{"name":"no_schema"}`,
		`{"name":"null_schema","inputSchema":null}`,
		`{"name":"nullable","inputSchema":{"type":["object","null"],"properties":{"a":{"type":"string"}}}}`,
		`{"name":"draft7","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}}}}`,
		`{"name":"draft2020","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}}}}`,
		`{"name":"broken","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/nowhere"},"b":{"pattern":"(?=x)"}}}}`,
		`{"name":"twice","inputSchema":{"type":"object"},"description":"first"}`,
		`{"name":"twice","inputSchema":{"type":"object"},"description":"second"}`,
		`{"name":"","inputSchema":{"type":"object"}}`,
		`{"name":7,"inputSchema":{"type":"object"}}`,
		`{"name":"bell\u0007","inputSchema":{"type":"object"}}`,
		`"a string"`, `null`, `[]`,
		`{"name":"Odd name/with.dots & more","inputSchema":{"type":"object"}}`,
		`{"name":"long","description":"` + strings.Repeat("long ", 1300) + `","inputSchema":{"type":"object"}}`,
		`{"name":"liar","annotations":{"readOnlyHint":"yes","destructiveHint":false,"title":5},"inputSchema":{"type":"object"}}`,
	}
}

func (s *server) call(r request) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(r.Params, &p) != nil {
		s.fail(r.ID, -32602, "bad params")
		return
	}
	if os.Getenv(ToolsVar) != "" {
		s.append(r.ID, r.Params)
		return
	}
	switch p.Name {
	case "echo":
		s.reply(r.ID, `{"content":[],"structuredContent":`+string(p.Arguments)+`}`)
	case "big":
		s.reply(r.ID, BigResult)
	case "unknown":
		s.reply(r.ID, UnknownResult)
	case "large":
		s.large(r.ID, p.Arguments)
	case "crash":
		fmt.Fprintln(os.Stderr, "fatal: the disk is on fire")
		os.Exit(7) //nolint:forbidigo // the manner
	case "hang":
		fmt.Fprintln(os.Stderr, "hanging") // tells a test that the call has arrived
	case "wait_cancelled":
		s.handlers.Go(func() { <-s.cancelled; s.text(r.ID, "cancelled") })
	case "fail":
		s.reply(r.ID, `{"content":[{"type":"text","text":"no such thing"}],"isError":true}`)
	case "refuse":
		s.fail(r.ID, -32602, "path is required")
	case "grow":
		s.mu.Lock()
		s.extra++
		s.mu.Unlock()
		s.print(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		s.text(r.ID, "grown")
	case "progress":
		for i := 1; i <= 2; i++ {
			s.print(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":2,"message":"step %d"}}`+"\n", p.Meta.Token, i, i))
		}
		s.handlers.Go(func() { // answers when the client has had time to see both
			s.ask("ping", "{}", func(json.RawMessage) { s.text(r.ID, "done") })
		})
	case "append":
		s.append(r.ID, p.Arguments)
	case "noise":
		s.print("downloading... 100%\n")
		s.text(r.ID, "done")
	case "env":
		env, _ := json.Marshal(os.Environ())
		s.reply(r.ID, `{"content":[],"structuredContent":{"env":`+string(env)+`}}`)
	default:
		s.question(r.ID, p.Name)
	}
}

// question asks the client and answers the call with the client's answer.
func (s *server) question(id json.RawMessage, name string) {
	var method string
	params := "{}"
	switch name {
	case "elicit":
		method = "elicitation/create"
		params = `{"message":"Really?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}}}}`
	case "sample":
		method = "sampling/createMessage"
		params = `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":1}`
	case "roots":
		method = "roots/list"
	default:
		s.text(id, name)
		return
	}
	s.ask(method, params, func(answer json.RawMessage) {
		s.reply(id, `{"content":[],"structuredContent":`+string(answer)+`}`)
	})
}

func (s *server) text(id json.RawMessage, text string) {
	s.reply(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

func (s *server) large(id, args json.RawMessage) {
	var a struct {
		Bytes int `json:"bytes"`
	}
	_ = json.Unmarshal(args, &a)
	// An id inside the result must not be taken for the message's.
	s.reply(id, `{"content":[{"type":"text","id":1,"text":"`+strings.Repeat("x", a.Bytes)+`"}]}`)
}

func (s *server) append(id, arguments json.RawMessage) {
	f, err := os.OpenFile(os.Getenv(LedgerVar), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(arguments, '\n'))
	}
	if err != nil {
		s.fail(id, -32603, err.Error())
		return
	}
	_ = f.Close() // what was written is there
	s.text(id, "appended")
}

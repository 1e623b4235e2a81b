package upstreamtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Variables that turn a test binary into the scripted server.
const (
	// ModeVar holds the manners of the server, separated by commas; see Main.
	ModeVar = "PML_TEST_SERVER"
	// GateVar names a FIFO; the server starts when somebody has opened it for writing.
	GateVar = "PML_TEST_GATE"
	// LedgerVar names the file of the tool "append", and of those of ToolsVar.
	LedgerVar = "PML_TEST_LEDGER"
	// ToolsVar holds the tools that the server declares in place of its own, as
	// tools/list has them. A call of one is a line of the ledger.
	ToolsVar = "PML_TEST_TOOLS"
)

// Main turns the process into the scripted server when ModeVar is set; TestMain
// calls it first. The manners:
//
//	plain         nothing special
//	noise         prints to stdout what is no JSON-RPC
//	silent        does not answer server/discover
//	diediscover   exits on server/discover
//	mute          answers nothing at all
//	exit          exits at once with words on stderr
//	hostile       declares tools as badly as it can
//	many          declares 500 tools
//	paged         declares its tools one a page, with cursors that never end
//	grandchild    leaves a child behind that holds the pipes open
//	stubborn      ignores SIGTERM and the end of stdin
func Main() {
	mode, ok := os.LookupEnv(ModeVar)
	if !ok {
		return
	}
	s := &server{modes: strings.Split(mode, ","), out: os.Stdout, cancelled: make(chan struct{}, 64)}
	os.Exit(s.run(os.Stdin)) //nolint:forbidigo // the process is the server
}

// Environ is the environment that makes a test binary the server with these manners.
func Environ(modes ...string) map[string]string {
	return map[string]string{ModeVar: strings.Join(append(modes, "plain"), ",")}
}

type server struct {
	modes     []string
	cancelled chan struct{}
	handlers  sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	waiting map[string]chan json.RawMessage
	extra   int // tools grown by "grow"
	seq     int
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *server) has(mode string) bool { return slices.Contains(s.modes, mode) }

func (s *server) run(in io.Reader) int {
	if gate := os.Getenv(GateVar); gate != "" {
		f, err := os.Open(gate) //nolint:gosec // the test names it; blocks until there is a writer
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_ = f.Close()
	}
	if s.has("exit") {
		fmt.Fprintln(os.Stderr, "cannot start: API_KEY is not set")
		return 3
	}
	if s.has("noise") {
		s.print("Server is running!\n{\"level\":\"info\"}\n\n[1,2]\n")
	}
	if s.has("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if s.has("grandchild") {
		s.leaveChild()
	}
	fmt.Fprintln(os.Stderr, "scripted server is up")
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r request
		if json.Unmarshal(line, &r) == nil {
			s.receive(r)
		}
	}
	if s.has("stubborn") {
		forever := make(chan os.Signal, 1) // an empty select would be seen as a deadlock
		signal.Notify(forever, syscall.SIGUSR1)
		<-forever
	}
	return 0
}

// leaveChild starts a process that inherits stdout and stderr and outlives us.
func (s *server) leaveChild() {
	c := exec.Command("sleep", "300") //nolint:noctx // it is meant to be left behind
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Fprintln(os.Stderr, "grandchild", c.Process.Pid)
}

func (s *server) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.out, text)
}

func (s *server) reply(id json.RawMessage, result string) {
	s.print(`{"result":` + result + `,"jsonrpc":"2.0","id":` + string(id) + "}\n")
}

func (s *server) fail(id json.RawMessage, code int, text string) {
	s.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, code, text))
}

func (s *server) receive(r request) {
	if s.has("mute") {
		return
	}
	switch r.Method {
	case "": // an answer to a question of ours
		s.mu.Lock()
		ch := s.waiting[string(r.ID)]
		s.mu.Unlock()
		if ch != nil {
			if r.Error != nil {
				r.Result = r.Error
			}
			ch <- r.Result
		}
	case "server/discover":
		switch {
		case s.has("diediscover"):
			os.Exit(1) //nolint:forbidigo // the manner
		case !s.has("silent"):
			s.fail(r.ID, -32601, "Method not found")
		}
	case "initialize":
		s.reply(r.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"},"instructions":"be careful"}`)
	case "tools/list":
		s.reply(r.ID, s.list(r.Params))
	case "tools/call":
		s.call(r)
	case "ping":
		s.reply(r.ID, "{}")
	case "notifications/cancelled":
		s.cancelled <- struct{}{}
	}
}

// ask sends a request to the client and gives its answer to f.
func (s *server) ask(method, params string, f func(answer json.RawMessage)) {
	s.mu.Lock()
	s.seq++
	id := strconv.Itoa(9000 + s.seq)
	ch := make(chan json.RawMessage, 1)
	if s.waiting == nil {
		s.waiting = map[string]chan json.RawMessage{}
	}
	s.waiting[id] = ch
	s.mu.Unlock()
	s.print(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + "}\n")
	s.handlers.Go(func() { f(<-ch) })
}

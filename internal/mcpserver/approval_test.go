package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
)

// TestStateBelongsToItsRequest: a person's answer counts for the request that the
// question was about, and for no other.
func TestStateBelongsToItsRequest(t *testing.T) {
	server := func(key string) *Server {
		return New(backend{}, backend{}, backend{}, nil, Options{Key: func() []byte { return []byte(key) }})
	}
	ours, id := server("ours"), uuid.UUID{1, 2, 3}
	asked := json.RawMessage(`{"intent":"delete a","args":{"x":1,"y":2}}`)
	state := ours.sign(id, asked)
	flipped := []byte(state)
	flipped[30] ^= 1
	for name, c := range map[string]struct {
		server    *Server
		state     string
		arguments string
		want      bool
	}{
		"the same":         {ours, state, string(asked), true},
		"written anew":     {ours, state, ` {"args":{"y":2,"x":1}, "intent":"delete a"}`, true},
		"another replica":  {server("ours"), state, string(asked), true},
		"another program":  {ours, state, `{"intent":"delete all","args":{"x":1,"y":2}}`, false},
		"no arguments":     {ours, state, ``, false},
		"changed":          {ours, string(flipped), string(asked), false},
		"another key":      {server("theirs"), state, string(asked), false},
		"no key":           {server(""), server("").sign(id, asked), string(asked), false},
		"cut off":          {ours, state[:20], string(asked), false},
		"no base64":        {ours, "?", string(asked), false},
		"none":             {ours, "", string(asked), false},
		"another question": {ours, ours.sign(uuid.UUID{9}, asked)[:22] + state[22:], string(asked), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.server.verify(c.state, json.RawMessage(c.arguments))
			if ok != c.want || ok && got != id {
				t.Errorf("got %v, %t", got, ok)
			}
		})
	}
}

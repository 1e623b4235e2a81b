package tool

import "time"

// ServerState is what is remembered of one server between two runs of the
// gateway: neutral words, so that whoever talks to servers and whoever stores
// rows need not know each other.
type ServerState struct {
	Name string `json:"name"`
	// ConfigHash changes when the server's configuration changes; it holds no secret.
	ConfigHash string `json:"configHash"`
	// State is one of starting, ready, failed, stopped, disabled, open-breaker.
	State           string    `json:"state"`
	LastError       string    `json:"lastError,omitempty"`
	ProtocolVersion string    `json:"protocolVersion,omitempty"`
	Instructions    string    `json:"instructions,omitempty"`
	LastSeen        time.Time `json:"lastSeen,omitzero"`
}

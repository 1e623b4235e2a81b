package bert

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// MaxTokens is the longest sequence that is encoded; longer ones must be cut.
const MaxTokens = 256

// config is what is read of a config.json.
type config struct {
	Hidden     int     `json:"hidden_size"`
	Heads      int     `json:"num_attention_heads"`
	Inner      int     `json:"intermediate_size"`
	Layers     int     `json:"num_hidden_layers"`
	Positions  int     `json:"max_position_embeddings"`
	Vocabulary int     `json:"vocab_size"`
	Epsilon    float32 `json:"layer_norm_eps"`
	Activation string  `json:"hidden_act"`
	Type       string  `json:"model_type"`
}

func readConfig(path string) (config, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the model's folder is configuration
	if err != nil {
		return config{}, err
	}
	c := config{Epsilon: 1e-12, Activation: "gelu", Type: "bert"}
	if err := json.Unmarshal(data, &c); err != nil {
		return config{}, fmt.Errorf("%s: not a model's configuration: %w", path, err)
	}
	if err := c.validate(); err != nil {
		return config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// validate names everything that this package cannot compute.
func (c config) validate() error {
	var problems []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	refuse(c.Type != "bert", "the model is of type %q, not bert", c.Type)
	refuse(c.Activation != "gelu", "the activation is %q, not gelu", c.Activation)
	refuse(c.Hidden <= 0 || c.Hidden > 4096 || c.Hidden%kernel.Block != 0, "hidden_size %d is not a multiple of %d up to 4096", c.Hidden, kernel.Block)
	refuse(c.Inner <= 0 || c.Inner > 16384 || c.Inner%kernel.Block != 0, "intermediate_size %d is not a multiple of %d up to 16384", c.Inner, kernel.Block)
	refuse(c.Heads <= 0 || c.Heads > 128 || c.Hidden%max(1, 8*c.Heads) != 0, "%d attention heads do not divide hidden_size %d into multiples of 8", c.Heads, c.Hidden)
	refuse(c.Layers <= 0 || c.Layers > 64, "%d layers", c.Layers)
	refuse(c.Positions < 2 || c.Positions > 1<<20, "%d positions", c.Positions)
	refuse(c.Vocabulary <= 0 || c.Vocabulary > 1<<22, "a vocabulary of %d", c.Vocabulary)
	return errors.Join(problems...)
}

// tokens is the longest sequence that the model takes.
func (c config) tokens() int { return min(c.Positions, MaxTokens) }

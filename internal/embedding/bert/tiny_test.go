package bert

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// tiny is a model that is small and computes nothing of use.
var tiny = config{
	Hidden: 64, Heads: 4, Inner: 128, Layers: 2, Positions: 20, Vocabulary: 50,
	Epsilon: 1e-12, Activation: "gelu", Type: "bert",
}

// tinyShapes lists its tensors.
func tinyShapes() map[string][]int {
	h, inner := tiny.Hidden, tiny.Inner
	shapes := map[string][]int{
		"embeddings.word_embeddings.weight":       {tiny.Vocabulary, h},
		"embeddings.position_embeddings.weight":   {tiny.Positions, h},
		"embeddings.token_type_embeddings.weight": {2, h},
		"embeddings.LayerNorm.weight":             {h}, "embeddings.LayerNorm.bias": {h},
	}
	for i := range tiny.Layers {
		for name, sides := range map[string][2]int{
			"attention.self.query": {h, h}, "attention.self.key": {h, h}, "attention.self.value": {h, h},
			"attention.output.dense": {h, h}, "intermediate.dense": {inner, h}, "output.dense": {h, inner},
		} {
			shapes[fmt.Sprintf("encoder.layer.%d.%s.weight", i, name)] = sides[:]
			shapes[fmt.Sprintf("encoder.layer.%d.%s.bias", i, name)] = sides[:1]
		}
		for _, name := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
			shapes[fmt.Sprintf("encoder.layer.%d.%s.weight", i, name)] = []int{h}
			shapes[fmt.Sprintf("encoder.layer.%d.%s.bias", i, name)] = []int{h}
		}
	}
	return shapes
}

// tensorsFile makes a safetensors file of random numbers in fp16 or fp32.
func tensorsFile(shapes map[string][]int, kind string) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for name, shape := range shapes {
		from, n := len(data), 1
		for _, s := range shape {
			n *= s
		}
		random := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)/2])))
		for range n {
			bits := math.Float32bits(float32(random.NormFloat64() / 8))
			if kind == "F16" {
				data = binary.LittleEndian.AppendUint16(data, toHalf(bits))
			} else {
				data = binary.LittleEndian.AppendUint32(data, bits)
			}
		}
		header[name] = map[string]any{"dtype": kind, "shape": shape, "data_offsets": []int{from, len(data)}}
	}
	return join(header, data)
}

// join puts a header before the data.
func join(header any, data []byte) []byte {
	head, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...)
}

// tinyFolder writes the model.
func tinyFolder(t testing.TB, kind string) string {
	t.Helper()
	dir := t.TempDir()
	c, err := json.Marshal(map[string]any{
		"hidden_size": tiny.Hidden, "num_attention_heads": tiny.Heads, "intermediate_size": tiny.Inner,
		"num_hidden_layers": tiny.Layers, "max_position_embeddings": tiny.Positions, "vocab_size": tiny.Vocabulary,
	})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), c, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), tensorsFile(tinyShapes(), kind), 0o600))
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

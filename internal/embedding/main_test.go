package embedding_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/embedding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// weights is the folder of the built-in model, which pml setup fetches.
func weights(t testing.TB) string {
	t.Helper()
	tools := os.Getenv("PML_TOOLS")
	if tools == "" {
		tools = filepath.Join("..", "..", ".tools")
	}
	if dir := filepath.Join(tools, "runtime"); embedding.Installed(dir) {
		return embedding.Path(dir)
	}
	t.Skipf("the weights are not below %s: fetch them with Install", tools)
	return ""
}

// reference is a text with the tokens and the vector that the original model gives it.
type reference struct {
	Text   string    `json:"text"`
	Tokens []int32   `json:"tokens"`
	Vector []float32 `json:"vector"`
}

func references(t testing.TB) []reference {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "embedding", "refvec.json"))
	if os.IsNotExist(err) {
		t.Skip("the reference vectors are not beside the checkout, in ../shared/data/embedding")
	}
	must(t, err)
	var list []reference
	must(t, json.Unmarshal(data, &list))
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

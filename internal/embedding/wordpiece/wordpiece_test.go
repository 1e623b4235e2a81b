package wordpiece_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/embedding/wordpiece"
)

// words is a vocabulary whose ids are the positions.
var words = []string{
	"[PAD]", "[UNK]", "[CLS]", "[SEP]", "get", "##user", "##us", "##er", "naive", "cafe", "日", "##本", "-", ".", "$", "a", "##b", "i",
}

func tokenizer(t testing.TB) *wordpiece.Tokenizer {
	t.Helper()
	tok, err := wordpiece.Parse(tokenizerJSON(words))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func tokenizerJSON(list []string) []byte {
	vocab := map[string]int{}
	for i, w := range list {
		vocab[w] = i
	}
	data, err := json.Marshal(map[string]any{
		"normalizer": map[string]any{"type": "BertNormalizer", "lowercase": true},
		"model":      map[string]any{"type": "WordPiece", "vocab": vocab},
	})
	if err != nil {
		panic(err)
	}
	return data
}

func TestEncode(t *testing.T) {
	t.Parallel()
	tok := tokenizer(t)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"spaces of all kinds", " \t\r\n\u00a0\u2028\u3000", ""},
		{"longest piece first", "getuser getuser", "get ##user get ##user"},
		{"case and accents", "Na\u00efVE cafe\u0301 CAF\u00c9", "naive cafe cafe"},
		{"dotted capital i", "\u0130", "i"},
		{"punctuation alone", "get-user.$", "get - [UNK] . $"},
		{"ideographs alone", "a\u65e5a", "a 日 a"},
		{"not known to its end", "getx get", "[UNK] get"},
		{"control characters vanish", "g\x00e\x7ft\u0085\u200b\u000b\x0cuser", "get ##user"},
		{"invalid UTF-8 vanishes", "g\xff\xfeet\xc3", "get"},
		{"replacement character vanishes", "g\ufffdet", "get"},
		{"special names are text", "[SEP]", "[UNK] [UNK] [UNK]"},
		{"longest word", "a" + strings.Repeat("b", 99), "a" + strings.Repeat(" ##b", 99)},
		{"too long a word", "a" + strings.Repeat("b", 100) + " get", "[UNK] get"},
		{"accents do not count", "a" + strings.Repeat("b\u0301", 99), "a" + strings.Repeat(" ##b", 99)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, id := range tok.Encode(c.text, 200) {
				got = append(got, words[id])
			}
			want := strings.Fields("[CLS] " + c.want + " [SEP]")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	tok := tokenizer(t)
	for limit := 2; limit < 8; limit++ {
		ids := tok.Encode("getuser getuser getuser", limit)
		if len(ids) != limit || words[ids[limit-1]] != "[SEP]" {
			t.Errorf("limit %d: %v", limit, ids)
		}
	}
	if ids := tok.Encode(strings.Repeat("getuser ", 1<<17), 256); len(ids) != 256 {
		t.Errorf("1 MB of text is %d tokens", len(ids))
	}
	if ids := tok.Encode(strings.Repeat("b", 1<<20), 256); len(ids) != 3 || words[ids[1]] != "[UNK]" {
		t.Errorf("a word of 1 MB is %v", ids)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := string(tokenizerJSON(words))
	for _, c := range []struct{ name, data, want string }{
		{"nothing", "", "not a tokenizer"},
		{"cut off", good[:len(good)/2], "not a tokenizer"},
		{"other model", strings.Replace(good, "WordPiece", "BPE", 1), `"BPE"`},
		{"cased", strings.Replace(good, "true", "false", 1), "uncased"},
		{"no end token", strings.Replace(good, "[SEP]", "[sep]", 1), "no [SEP]"},
		{"id out of range", strings.Replace(good, `"get":4`, `"get":400`, 1), "the id 400"},
		{"negative id", strings.Replace(good, `"get":4`, `"get":-4`, 1), "the id -4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tokenizer.json")
			if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := wordpiece.Load(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v, want %s and the path", err, c.want)
			}
		})
	}
	if _, err := wordpiece.Load(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzEncode(f *testing.F) {
	tok := tokenizer(f)
	f.Add("getuser naïve 日本", 8)
	f.Add("\xff\x00a\u0301", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 2 + limit&0xff
		ids := tok.Encode(text, limit)
		if len(ids) < 2 || len(ids) > limit || words[ids[0]] != "[CLS]" || words[ids[len(ids)-1]] != "[SEP]" {
			t.Fatalf("limit %d: %v", limit, ids)
		}
		if diff := cmp.Diff(tok.Encode(strings.ToValidUTF8(text, ""), limit), ids); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(tokenizerJSON(words))
	f.Add([]byte(`{"model":{"vocab":{"[CLS]":0}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := wordpiece.Parse(data)
		if err != nil {
			return
		}
		for _, id := range tok.Encode("get [unk] user", 16) {
			if id < 0 || int(id) >= tok.Size() {
				t.Fatalf("the id %d in a vocabulary of %d", id, tok.Size())
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := tokenizer(b)
	text := strings.Repeat("getuser naïve cafe. ", 20)
	for b.Loop() {
		tok.Encode(text, 256)
	}
}

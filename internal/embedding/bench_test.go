package embedding_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/embedding/kernel"
)

// A query of 8 tokens, as the tables of runtimes count, and a description of 66.
const (
	shortText = "send an email message to someone"
	longText  = "Filesystem server read text file: read the complete contents of a file from the file system as text. " +
		"Handles various text encodings and provides detailed error messages if the file cannot be read. Use this tool when " +
		"you need to examine the contents of a single file. Parameters: path, head, tail, all."
)

// benchmark runs for every kernel of this processor.
func benchmark(b *testing.B, run func(b *testing.B, l *embedding.Local)) {
	b.Helper()
	dir := weights(b)
	for _, s := range kernel.Available() {
		b.Run(s.Name(), func(b *testing.B) {
			run(b, open(b, embedding.LocalOptions{Dir: dir, Kernel: s.Name(), CacheDir: b.TempDir()}))
		})
	}
}

func encodeTexts(b *testing.B, l *embedding.Local, texts ...string) {
	b.Helper()
	for b.Loop() {
		if _, err := l.Encode(b.Context(), texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
}

func BenchmarkQuery(b *testing.B) {
	benchmark(b, func(b *testing.B, l *embedding.Local) { encodeTexts(b, l, shortText) })
}

func BenchmarkPrefixedQuery(b *testing.B) {
	benchmark(b, func(b *testing.B, l *embedding.Local) { encodeTexts(b, l, l.QueryPrefix()+shortText) })
}

func BenchmarkDescription(b *testing.B) {
	benchmark(b, func(b *testing.B, l *embedding.Local) { encodeTexts(b, l, longText) })
}

// BenchmarkBulk encodes 1,000 descriptions and reports the process's memory.
func BenchmarkBulk(b *testing.B) {
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = "Number " + strconv.Itoa(i) + " " + longText
	}
	benchmark(b, func(b *testing.B, l *embedding.Local) {
		if l.Kernel() == kernel.Go {
			texts = texts[:100]
		}
		encodeTexts(b, l, texts...)
		b.ReportMetric(resident(b), "RSS-MB")
	})
}

// resident is this process's memory, where /proc tells.
func resident(b *testing.B) float64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

func BenchmarkOpen(b *testing.B) {
	dir := weights(b)
	for b.Loop() {
		l, err := embedding.OpenLocal(embedding.LocalOptions{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

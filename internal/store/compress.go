package store

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// compressFrom is the size from which compression pays.
	compressFrom = 1 << 10
	// mostDecoded is far above any result that is accepted; it stops a bomb.
	mostDecoded = 512 << 20
)

// zstdMagic begins what is compressed. No JSON text begins so, hence the column
// needs no flag beside it.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Both coders are safe for concurrent use and own no goroutine.
var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)))
	decoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDecoded)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options above are constants
	}
	return v
}

// pack returns value as a result column holds it; nil for nothing.
func pack(value []byte) []byte {
	if len(value) < compressFrom {
		return value
	}
	if packed := encoder.EncodeAll(value, nil); len(packed) < len(value) {
		return packed
	}
	return value
}

// unpack reverses pack.
func unpack(column []byte) ([]byte, error) {
	if !bytes.HasPrefix(column, zstdMagic) {
		return column, nil
	}
	value, err := decoder.DecodeAll(column, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress a result: %w", err)
	}
	return value, nil
}

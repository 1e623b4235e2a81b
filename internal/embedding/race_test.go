//go:build race

package embedding_test

// raceDetector tells that memory accesses are watched.
const raceDetector = true

package daemon

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
)

// logWriter turns a program's output into log lines.
type logWriter struct{ logger *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		w.logger.InfoContext(context.Background(), "installer", "line", lines.Text()) //nolint:forbidigo // an io.Writer has no context to pass on
	}
	return len(b), nil
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pml-run/pml/internal/analysis"
)

type analyzeCommand struct {
	File         string `arg:"" help:"TypeScript file; - reads standard input."`
	Instrumented bool   `help:"Print the program with the marks that it runs with."`
}

// Run analyses a program without running it; it needs no gateway.
func (c *analyzeCommand) Run(a *app) error {
	source, err := c.read(a.env.Stdin)
	if err != nil {
		return err
	}
	p, err := analysis.Analyse(source, analysis.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if !c.Instrumented {
		return a.print(p, func(w io.Writer) { analysis.Describe(w, p) })
	}
	code, err := p.Code(analysis.CodeOptions{})
	if err != nil {
		return err
	}
	return a.print(map[string]string{"code": code.Text}, func(w io.Writer) { fmt.Fprintln(w, code.Text) })
}

// maxFile bounds what is read; the analysis has a smaller limit of its own.
const maxFile = 8 << 20

func (c *analyzeCommand) read(stdin io.Reader) (string, error) {
	in := stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", usageError{fmt.Errorf("program: %w", err)}
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read program: %w", err)
	}
	if len(text) > maxFile {
		return "", usageError{errors.New("the program is longer than 8 MiB")}
	}
	return string(text), nil
}

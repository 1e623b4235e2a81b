package capability

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// fileFormat is the version of the layout that Export writes.
const fileFormat = 1

// maxFile bounds a file that is read.
const maxFile = 32 << 20

// file is capabilities on their way to another installation.
type file struct {
	Format       int             `json:"pml_capabilities"`
	ExportedAt   time.Time       `json:"exported_at"`
	SHA256       string          `json:"sha256"` // of the compact JSON of Capabilities
	Capabilities json.RawMessage `json:"capabilities"`
}

// Portable is what of a capability makes sense elsewhere: the program, not its
// evidence.
type Portable struct {
	Name        string                `json:"name"`
	Description string                `json:"description,omitempty"`
	Intent      string                `json:"intent"`
	HashExact   string                `json:"hash_exact"`
	HashShape   string                `json:"hash_shape"`
	Source      Source                `json:"source"`
	Parameters  []structure.Parameter `json:"parameters,omitempty"`
	Structure   structure.Structure   `json:"static_structure"`
	// Needs are the tools and capabilities without which it does not run.
	NeedsTools        []tool.ID `json:"needs_tools"`
	NeedsCapabilities []string  `json:"needs_capabilities,omitempty"`
}

// Export writes capabilities to a file.
func Export(w io.Writer, list []Capability, now time.Time) error {
	out := make([]Portable, len(list))
	for i, c := range list {
		out[i] = Portable{
			Name: c.Name, Description: c.Description, Intent: c.Intent, HashExact: c.HashExact, HashShape: c.HashShape,
			Source: c.Source, Parameters: c.Parameters, Structure: c.Structure,
		}
		out[i].NeedsTools, out[i].NeedsCapabilities = Needs(c.Structure)
	}
	inner, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("export capabilities: %w", err)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(file{Format: fileFormat, ExportedAt: now.UTC(), SHA256: sum(inner), Capabilities: inner})
}

// Needs lists the tools and capabilities that a program refers to, each once, in
// the order of the text. A name that the program computes is left out.
func Needs(s structure.Structure) (tools []tool.ID, capabilities []string) {
	tools = []tool.ID{}
	seen := map[string]bool{}
	for _, n := range s.Nodes {
		key := string(n.Type) + n.Tool + n.CapabilityID
		if seen[key] {
			continue
		}
		seen[key] = true
		id := tool.ID(n.Tool)
		switch {
		case n.Type == structure.Task && id != "" && id.Server() != "*" && id.Name() != "*":
			tools = append(tools, id)
		case n.Type == structure.Capability && n.CapabilityID != "*":
			capabilities = append(capabilities, n.CapabilityID)
		}
	}
	return tools, capabilities
}

// Import reads a file that Export has written. What it returns are candidates of
// imported origin, without ids: they have proved nothing here. hash computes a
// program's two hashes and its structure anew; a program whose hash is another one
// was changed, and is refused.
func Import(r io.Reader, hash func(Source) (exact, shape string, s structure.Structure, err error)) ([]Capability, error) {
	list, err := read(r)
	if err != nil {
		return nil, err
	}
	out := make([]Capability, len(list))
	for i, p := range list {
		if err := CheckName(p.Name); err != nil {
			return nil, err
		}
		exact, shape, s, err := hash(p.Source)
		if err != nil {
			return nil, fmt.Errorf("capability %s: %w", p.Name, err)
		}
		if exact != p.HashExact {
			return nil, fault.New(fault.InvalidInput, "the program of capability %q is not the one that was exported", p.Name).
				WithHint("export it again; if the exporting release is another one, use the same release on both sides")
		}
		out[i] = Capability{
			Name: p.Name, Description: p.Description, Intent: p.Intent, HashExact: exact, HashShape: shape, Version: 1,
			State: Candidate, Source: p.Source, Parameters: p.Parameters, Structure: s, Origin: Imported,
		}
	}
	return out, nil
}

// read reads a file as far as the file itself can be checked.
func read(r io.Reader) ([]Portable, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read capabilities: %w", err)
	}
	var f file
	if len(raw) > maxFile || json.Unmarshal(raw, &f) != nil || f.Format == 0 {
		return nil, fault.New(fault.InvalidInput, "this is not a file that 'pml capability export' has written")
	}
	if f.Format > fileFormat {
		return nil, fault.New(fault.InvalidInput, "the file has format %d, newer than this binary's %d", f.Format, fileFormat).
			WithHint("import it with the release that has written it, or a newer one")
	}
	var inner bytes.Buffer
	if err := json.Compact(&inner, f.Capabilities); err != nil || sum(inner.Bytes()) != f.SHA256 {
		return nil, fault.New(fault.InvalidInput, "the file was changed after it was exported: its checksum is wrong")
	}
	var list []Portable
	if err := json.Unmarshal(inner.Bytes(), &list); err != nil {
		return nil, fault.New(fault.InvalidInput, "the file is damaged: %v", err)
	}
	return list, nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// maxErrorMessage is how much of a tool's error text becomes the message, in runes.
const maxErrorMessage = 8000

// Value is what a program sees of a call's result.
type Value struct {
	// JSON is the value. What the server sent as JSON is in it byte for byte, so
	// that integers over 2^53 and unknown fields survive.
	JSON json.RawMessage
	// Blobs are the payloads that JSON refers to by data_ref.
	Blobs []Blob
}

// Blob is a payload (image, audio, binary resource) of a result.
type Blob struct {
	Ref      string // "blob:0", "blob:1", …: the data_ref in Value.JSON
	MIMEType string
	Data     []byte
}

// Unwrap turns a raw CallToolResult into the value that a program sees:
// structuredContent when there is one; else the one content block; else the list
// of blocks. A text block is its JSON value when it parses as an object or array,
// else a string. A result with isError becomes a *CallError.
func Unwrap(id ID, raw json.RawMessage) (Value, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return Value{}, notAResult(id)
	}
	if string(bytes.TrimSpace(fields["isError"])) == "true" {
		return Value{}, callError(id, fields)
	}
	if s, ok := fields["structuredContent"]; ok && !isNull(s) {
		return Value{JSON: s}, nil
	}
	if legacy, ok := fields["toolResult"]; ok && fields["content"] == nil {
		return Value{JSON: legacy}, nil // the shape of the very first protocol revision
	}
	blocks, err := contentBlocks(fields)
	if err != nil {
		return Value{}, notAResult(id)
	}
	var u unwrapper
	switch len(blocks) {
	case 0:
		return Value{JSON: json.RawMessage("null")}, nil
	case 1:
		v := u.block(blocks[0])
		return Value{JSON: v, Blobs: u.blobs}, nil
	}
	var list bytes.Buffer
	for i, b := range blocks {
		list.WriteByte("[,"[min(i, 1)])
		list.Write(u.block(b))
	}
	list.WriteByte(']')
	return Value{JSON: list.Bytes(), Blobs: u.blobs}, nil
}

func notAResult(id ID) error {
	err := fault.New(fault.ToolFailed, "%s answered with something that is no tool result", id)
	err.Tool = string(id)
	return err.WithHint("this is a fault of the server %q; the untouched answer is in the call's raw result", id.Server())
}

func contentBlocks(fields map[string]json.RawMessage) ([]json.RawMessage, error) {
	content := fields["content"]
	if len(content) == 0 {
		return nil, nil
	}
	var blocks []json.RawMessage
	err := json.Unmarshal(content, &blocks)
	return blocks, err
}

// callError builds the error of a result with isError from its text blocks.
func callError(id ID, fields map[string]json.RawMessage) error {
	e := &CallError{Server: id.Server(), Tool: id.Name(), Code: string(fault.ToolFailed), Content: fields["content"]}
	blocks, _ := contentBlocks(fields)
	var texts []string
	for _, b := range blocks {
		if f := decodeBlock(b); f.Type == "text" && strings.TrimSpace(f.Text) != "" {
			texts = append(texts, strings.TrimSpace(f.Text))
		}
	}
	s := fields["structuredContent"]
	switch {
	case len(texts) > 0:
		e.Message = strings.Join(texts, "\n")
	case len(s) > 0 && !isNull(s):
		e.Message = string(s)
	default:
		e.Message = "the tool reported an error without a message"
	}
	e.Message = cut(e.Message, maxErrorMessage)
	return e
}

// block holds the fields of all known kinds of content block.
type block struct {
	Type     string   `json:"type"`
	Text     string   `json:"text"`
	Data     string   `json:"data"`
	MIMEType string   `json:"mimeType"`
	Resource resource `json:"resource"`
}

type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"`
}

// decodeBlock returns an empty block for what does not fit.
func decodeBlock(raw json.RawMessage) block {
	var b block
	if err := json.Unmarshal(raw, &b); err != nil {
		return block{}
	}
	return b
}

// media stands for a block whose payload is elsewhere.
type media struct {
	Type     string  `json:"type"`
	MIMEType string  `json:"mimeType,omitempty"`
	URI      string  `json:"uri,omitempty"`
	DataRef  string  `json:"data_ref,omitempty"`
	Text     *string `json:"text,omitempty"`
	Bytes    int     `json:"bytes"`
}

// unwrapper numbers the payloads of one result.
type unwrapper struct{ blobs []Blob }

func (u *unwrapper) block(raw json.RawMessage) json.RawMessage {
	b := decodeBlock(raw)
	var m media
	switch {
	case b.Type == "text":
		return textValue(b.Text)
	case b.Type == "image" || b.Type == "audio":
		m = u.keep(media{Type: b.Type, MIMEType: b.MIMEType}, b.Data)
	case b.Type == "resource" && b.Resource.Blob != nil:
		m = u.keep(media{Type: b.Type, MIMEType: b.Resource.MIMEType, URI: b.Resource.URI}, *b.Resource.Blob)
	case b.Type == "resource" && b.Resource.Text != nil:
		// Text is of use in a program and needs no decoding: it stays in the value.
		t := b.Resource.Text
		m = media{Type: b.Type, MIMEType: b.Resource.MIMEType, URI: b.Resource.URI, Text: t, Bytes: len(*t)}
	default:
		return raw // resource_link, and whatever the protocol learns next
	}
	return encode(m)
}

// keep puts a payload aside. What is no base64 is kept as it came.
func (u *unwrapper) keep(m media, data string) media {
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		decoded = []byte(data)
	}
	m.DataRef = "blob:" + strconv.Itoa(len(u.blobs))
	m.Bytes = len(decoded)
	u.blobs = append(u.blobs, Blob{Ref: m.DataRef, MIMEType: m.MIMEType, Data: decoded})
	return m
}

// textValue is the JSON value in a text block, or the text as a JSON string.
// A bare number or boolean stays text: "42" is as likely an answer in words.
func textValue(text string) json.RawMessage {
	t := strings.TrimSpace(text)
	if t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	return encode(text)
}

// encode writes v without the escapes that are only of use inside HTML.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

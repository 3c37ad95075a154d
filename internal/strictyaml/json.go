package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// ReadJSON is Read for JSON (RFC 8259), which YAML's reader does not take in every layout.
func ReadJSON(data []byte) *Document {
	r := jsonReader{data: data, line: 1, decoder: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))}
	root, err := r.value(0)
	if err == nil {
		if _, more := r.decoder.ReadToken(); more == nil {
			return only(Problem{r.here(), "a second document; put one in each file"})
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	switch {
	case errors.Is(err, errDeep):
		return only(Problem{r.here(), err.Error()})
	case errors.Is(err, io.EOF) && root == nil && len(bytes.TrimSpace(data)) == 0:
		return only(Problem{0, "the file is empty"})
	case err != nil:
		return only(r.problem(err))
	}
	return convert(root)
}

var errDeep = fmt.Errorf("nested deeper than %d levels", MaxDepth)

// jsonReader makes of JSON the tree that YAML's reader would make.
type jsonReader struct {
	data    []byte
	decoder *jsontext.Decoder
	counted int64 // bytes whose lines are in line
	line    int
}

// here is the line of what was read last.
func (r *jsonReader) here() int {
	end := min(max(r.decoder.InputOffset(), r.counted), int64(len(r.data)))
	r.line += bytes.Count(r.data[r.counted:end], []byte("\n"))
	r.counted = end
	return r.line
}

func (r *jsonReader) problem(err error) Problem {
	line := r.here()
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return Problem{line, "the JSON ends too early"}
	}
	at := min(max(syntax.ByteOffset, 0), int64(len(r.data)))
	line = 1 + bytes.Count(r.data[:at], []byte("\n"))
	return Problem{line, strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")}
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > MaxDepth {
		return nil, errDeep
	}
	t, err := r.decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.here()}
	switch t.Kind() {
	case '{', '[':
		n.Kind = yaml.SequenceNode
		if t.Kind() == '{' {
			n.Kind = yaml.MappingNode
		}
		n.Style, n.Column = yaml.FlowStyle, r.column(1)
		for r.decoder.PeekKind() != '}' && r.decoder.PeekKind() != ']' {
			inner, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, inner)
		}
		_, err = r.decoder.ReadToken()
		return n, err
	case '"':
		n.Tag, n.Value, n.Style = "!!str", t.String(), yaml.DoubleQuotedStyle
	case 'n':
		n.Tag, n.Value = "!!null", "null"
	case '0':
		n.Tag, n.Value = "!!int", t.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
		n.Column = r.column(len(n.Value))
	default:
		n.Tag, n.Value = "!!bool", t.String()
	}
	return n, nil
}

// column is the character of its line that what was read last begins with, from 1; it has size bytes.
func (r *jsonReader) column(size int) int {
	begin := int(r.decoder.InputOffset()) - size
	return 1 + utf8.RuneCount(r.data[bytes.LastIndexByte(r.data[:begin], '\n')+1:begin])
}

// Package strictyaml reads one YAML or JSON document into JSON text and remembers the line of every value, so that each mistake is
// told with its place. Unknown and repeated members, aliases, tags, nulls, fractions and a second document are mistakes.
package strictyaml

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

const (
	// MaxDepth bounds how deep a document may nest.
	MaxDepth = 64
	// MaxProblems bounds how many mistakes of one document are told.
	MaxProblems = 100
)

// Problem is what is wrong at a line of a document, from 1; 0 for the document as a whole.
type Problem struct {
	Line    int
	Message string
}

// In prints p as of a file.
func (p Problem) In(file string) string {
	if p.Line == 0 {
		return file + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", file, p.Line, p.Message)
}

// Document is one that was read.
type Document struct {
	root     *yaml.Node
	text     bytes.Buffer
	encoder  *jsontext.Encoder
	lines    map[jsontext.Pointer]int
	problems []Problem
}

// Read reads one document of YAML. What is wrong is in Problems; with any, nothing else of it is of use.
func Read(data []byte) *Document {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return only(Problem{0, "the file is empty"})
	case err != nil:
		return only(syntaxProblem(err))
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return only(Problem{second.Line, "a second document; put one in each file"})
	case !errors.Is(err, io.EOF):
		return only(syntaxProblem(err))
	}
	return convert(document.Content[0])
}

func only(p Problem) *Document {
	d := convert(nil)
	d.problems = []Problem{p}
	return d
}

// syntaxProblem takes the line out of the library's words ("yaml: line 3: …").
func syntaxProblem(err error) Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, words, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				return Problem{line, words}
			}
		}
	}
	return Problem{0, message}
}

// Problems are all that is wrong with the document's form.
func (d *Document) Problems() []Problem { return d.problems }

// Text is the document as JSON.
func (d *Document) Text() jsontext.Value { return d.text.Bytes() }

// Line finds the line of a value, or of the nearest one around it.
func (d *Document) Line(p jsontext.Pointer) int {
	for {
		if line, ok := d.lines[p]; ok {
			return line
		}
		if p == "" {
			return 1
		}
		p = p.Parent()
	}
}

// Has tells whether there is a value at p.
func (d *Document) Has(p jsontext.Pointer) bool {
	_, ok := d.lines[p]
	return ok
}

// Scalar finds the text of a member of the outermost mapping and where its value begins: its line from 1 and the character in it
// from 0. It is false when there is no such member, or it is no scalar on one line.
func (d *Document) Scalar(member string) (line, at int, text string, ok bool) {
	if d.root == nil || d.root.Kind != yaml.MappingNode {
		return 0, 0, "", false
	}
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		v := d.root.Content[i+1]
		if d.root.Content[i].Value == member && v.Kind == yaml.ScalarNode && v.Style == 0 && v.Line > 0 {
			return v.Line, v.Column - 1, v.Value, true
		}
	}
	return 0, 0, "", false
}

// Without is the document without a member of its outermost mapping, whatever is wrong with that. One that stands there twice stays, and is told.
func (d *Document) Without(member string) *Document {
	if d.root == nil || d.root.Kind != yaml.MappingNode {
		return d
	}
	rest := *d.root
	rest.Content = nil
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if d.root.Content[i].Value != member {
			rest.Content = append(rest.Content, d.root.Content[i], d.root.Content[i+1])
		}
	}
	if len(d.root.Content)-len(rest.Content) != 2 {
		return d
	}
	return convert(&rest)
}

// Decode reads the document into v, a pointer, which keeps its value when there are problems. It tells every one
// that it can find.
func (d *Document) Decode(v any) []Problem {
	to := reflect.New(reflect.TypeOf(v).Elem())
	_, problems, _ := d.Salvage(to.Interface())
	if len(problems) == 0 {
		reflect.ValueOf(v).Elem().Set(to.Elem())
	}
	return problems
}

// prune takes the value at a pointer out of a tree; false when there is none, or it is the whole.
func prune(n *yaml.Node, at jsontext.Pointer) bool {
	parent, index, width := (*yaml.Node)(nil), 0, 1
	for token := range at.Tokens() {
		parent, index = n, -1
		switch n.Kind {
		case yaml.MappingNode:
			width = 2
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == token {
					index, n = i, n.Content[i+1]
					break
				}
			}
		case yaml.SequenceNode:
			width = 1
			if i, err := strconv.Atoi(token); err == nil && i < len(n.Content) {
				index, n = i, n.Content[i]
			}
		}
		if index < 0 {
			return false
		}
	}
	if parent == nil {
		return false
	}
	parent.Content = slices.Delete(parent.Content, index, index+width)
	return true
}

// readsText is what a value that is written as text is read by.
var readsText = reflect.TypeFor[encoding.TextUnmarshaler]()

// Explain says in the words of a YAML file why a member was not taken.
func Explain(err *json.SemanticError) string {
	member := strings.TrimPrefix(strings.ReplaceAll(string(err.JSONPointer), "/", "."), ".")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("unknown member %q", member)
	case err.Err != nil && (err.JSONKind == '"' || err.JSONKind == jsontext.KindInvalid || err.GoType == nil || !reflect.PointerTo(err.GoType).Implements(readsText)):
		if member == "" {
			return err.Err.Error()
		}
		return member + ": " + err.Err.Error()
	case member == "":
		return "the file must hold members, as NAME: VALUE"
	default:
		return fmt.Sprintf("%s: a %s does not belong here", member, KindName(err.JSONKind))
	}
}

// KindName is what a YAML file calls a JSON value.
func KindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "mapping"
	case '[':
		return "sequence"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "string"
	}
}

// Salvage reads into v, a pointer, whatever of the document can be read, and tells every problem that it can find. rest is the document
// without what could not be read, nil when nothing can; cut tells whether something that stood at a place of v was
// left out.
func (d *Document) Salvage(v any) (rest *Document, problems []Problem, cut func(jsontext.Pointer) bool) {
	out := map[jsontext.Pointer]bool{}
	cut = func(p jsontext.Pointer) bool { return out[p] }
	conv, problems := d, slices.Clone(d.problems)
	for len(conv.problems) == 0 {
		to := reflect.New(reflect.TypeOf(v).Elem())
		err := json.Unmarshal(conv.text.Bytes(), to.Interface(), json.RejectUnknownMembers(true))
		if err == nil {
			reflect.ValueOf(v).Elem().Set(to.Elem())
			return conv, problems, cut
		}
		var semantic *json.SemanticError
		if !errors.As(err, &semantic) {
			return nil, append(problems, Problem{0, err.Error()}), cut
		}
		problems = append(problems, Problem{conv.Line(semantic.JSONPointer), Explain(semantic)})
		// The decoder stops at its first mistake: without that value it finds the next.
		if len(problems) >= MaxProblems || !prune(conv.root, semantic.JSONPointer) {
			return nil, problems, cut
		}
		out[semantic.JSONPointer] = true
		conv = convert(conv.root)
	}
	return nil, problems, cut
}

// Place is where a document's outermost mapping begins.
type Place struct {
	Line, Column int  // of its first member or, of one in braces, of the brace; lines from 1, characters from 0
	Flow         bool // it is in braces
	Members      int
}

// Begin finds the outermost mapping; false when there is none.
func (d *Document) Begin() (Place, bool) {
	if d.root == nil || d.root.Kind != yaml.MappingNode {
		return Place{}, false
	}
	p := Place{d.root.Line, d.root.Column - 1, d.root.Style&yaml.FlowStyle != 0, len(d.root.Content) / 2}
	if !p.Flow && len(d.root.Content) > 0 {
		p.Line, p.Column = d.root.Content[0].Line, d.root.Content[0].Column-1
	}
	return p, true
}

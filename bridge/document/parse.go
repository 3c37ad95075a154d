package document

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/internal/strictyaml"
)

// Problem is one mistake in a document. Its message begins with where it is, by ids.
type Problem struct {
	Line    int    `json:"line,omitzero"` // from 1; 0: the document as a whole
	Message string `json:"message"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Message
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Message)
}

// Error is all that is wrong with a document, sorted by lines. There is at least one Problem.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "the document is not valid: " + e.Problems[0].String()
	}
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = "\n  " + p.String()
	}
	return fmt.Sprintf("the document is not valid: %d problems:%s", len(e.Problems), strings.Join(lines, ""))
}

// Process is what a document must fit beside itself: the settings of the process that is to run it.
type Process struct {
	MemberID     string // "": none was given
	RolloutStore bool   // whether there is one
	LeaseStore   bool
}

// Parse reads a document of YAML, or of JSON when it begins with a brace. The error is an *Error.
func Parse(data []byte) (*Document, error) { return parse(data, nil) }

// ParseFor is Parse for a process that is to run the document.
func ParseFor(data []byte, p Process) (*Document, error) { return parse(data, &p) }

func parse(data []byte, p *Process) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, &Error{[]Problem{{0, fmt.Sprintf("the document has %d bytes, more than %d", len(data), MaxBytes)}}}
	}
	text := read(data)
	version, wrong := versionIn(text)
	v := &validator{}
	if wrong != nil {
		v.problems = append(v.problems, *wrong)
		text = text.Without("version") // so that it hides nothing else that is wrong
	}
	var w wireDocument
	rest, problems, missing := text.Salvage(&w)
	v.text, v.missing = rest, missing
	for _, p := range problems {
		v.problems = append(v.problems, Problem{p.Line, p.Message})
	}
	if rest == nil {
		return nil, v.err()
	}
	d := v.document(w)
	d.Version = version
	if p != nil {
		v.process(d, *p)
	}
	if err := v.err(); err != nil {
		return nil, err
	}
	return d, nil
}

func read(data []byte) *strictyaml.Document {
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return strictyaml.ReadJSON(data)
	}
	return strictyaml.Read(data)
}

// validator turns what was written into a Document and notes all that is wrong.
type validator struct {
	text     *strictyaml.Document
	missing  func(jsontext.Pointer) bool // what was there and could not be read
	problems []Problem
}

func (v *validator) err() error {
	if len(v.problems) == 0 {
		return nil
	}
	slices.SortFunc(v.problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message)) })
	return &Error{slices.Compact(v.problems)}
}

// place is somewhere in the document.
type place struct {
	v    *validator
	at   jsontext.Pointer
	name string // for people: by ids rather than numbers
}

func (p place) member(name string) place {
	return place{p.v, p.at.AppendToken(name), join(p.name, name)}
}

// item is the i-th of a list, called by its id when it has one.
func (p place) item(i int, id *string) place {
	name := fmt.Sprint(i)
	if id != nil && *id != "" {
		name = *id
	}
	return place{p.v, p.at.AppendToken(fmt.Sprint(i)), join(p.name, name)}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "." + b
}

func (p place) problem(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if p.name != "" {
		message = p.name + ": " + message
	}
	p.v.problems = append(p.v.problems, Problem{p.v.text.Line(p.at), message})
}

// lacks notes that something must be given, unless it was and could not be read.
func (p place) lacks(format string, args ...any) {
	if !p.v.missing(p.at) {
		p.problem(format, args...)
	}
}

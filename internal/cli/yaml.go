package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// maxYAML bounds a file of rules, lists or other objects, in bytes; maxYAMLDepth its nesting.
const (
	maxYAML      = 16 << 20
	maxYAMLDepth = 64
)

// readFile reads a file of at most limit bytes; "-" is standard input. name is what errors call it.
func (a *app) readFile(path string, limit int64) (data []byte, name string, err error) {
	r, name := a.Stdin, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, path, err
		}
		defer f.Close()
		r, name = f, path
	}
	if data, err = readAtMost(r, limit); err != nil {
		return nil, name, fmt.Errorf("%s: %w", name, err)
	}
	return data, name, nil
}

// readAtMost reads all of r, which may be of at most limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("larger than %d MiB, the most that is read", limit>>20)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// readYAML reads one YAML document strictly into v: unknown and repeated members, aliases, tags and a
// second document are errors that name the line.
func (a *app) readYAML(path string, v any) error {
	data, name, err := a.readFile(path, maxYAML)
	if err != nil {
		return err
	}
	return decodeYAML(data, name, v)
}

// maxYAMLProblems bounds how many mistakes of one file are told.
const maxYAMLProblems = 100

// decodeYAML reads one document into v, a pointer, which keeps its value on an error.
func decodeYAML(data []byte, name string, v any) error {
	conv := parseYAML(data)
	problems := conv.problems
	for len(conv.problems) == 0 && len(problems) < maxYAMLProblems {
		to := reflect.New(reflect.TypeOf(v).Elem())
		err := json.Unmarshal(conv.text.Bytes(), to.Interface(), json.RejectUnknownMembers(true))
		if err == nil {
			if len(problems) == 0 {
				reflect.ValueOf(v).Elem().Set(to.Elem())
				return nil
			}
			break
		}
		var semantic *json.SemanticError
		if !errors.As(err, &semantic) {
			return fmt.Errorf("%s: %w", name, err)
		}
		problems = append(problems, lineProblem{conv.line(semantic.JSONPointer), semanticMessage(semantic)})
		// The decoder stops at its first mistake: without that value it finds the next.
		if !prune(conv.root, semantic.JSONPointer) {
			break
		}
		conv = convertYAML(conv.root)
	}
	if len(problems) == 1 {
		return errors.New(prefixLines(name, problems)[0])
	}
	return &lineErrors{
		summary: fmt.Sprintf("%s: %s", name, count(len(problems), "problem")),
		lines:   prefixLines(name, problems),
	}
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

// parseYAML reads one document into JSON text. What is wrong is in problems; with any, the text is of no use.
func parseYAML(data []byte) *yamlReader {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	none := convertYAML(nil)
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return none.only(lineProblem{0, "the file is empty"})
	case err != nil:
		return none.only(syntaxProblem(err))
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return none.only(lineProblem{second.Line, "a second document; put one in each file"})
	case !errors.Is(err, io.EOF):
		return none.only(syntaxProblem(err))
	}
	return convertYAML(document.Content[0])
}

// convertYAML turns a tree into JSON text.
func convertYAML(root *yaml.Node) *yamlReader {
	y := &yamlReader{root: root, lines: map[jsontext.Pointer]int{}}
	y.encoder = jsontext.NewEncoder(&y.text)
	if root != nil {
		y.value(root, "", 0)
	}
	return y
}

// syntaxProblem takes the line out of the library's words ("yaml: line 3: …").
func syntaxProblem(err error) lineProblem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, words, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				return lineProblem{line, words}
			}
		}
	}
	return lineProblem{0, message}
}

// semanticMessage says in the words of a YAML file why a member was not taken.
func semanticMessage(err *json.SemanticError) string {
	member := strings.TrimPrefix(strings.ReplaceAll(string(err.JSONPointer), "/", "."), ".")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("unknown member %q", member)
	case err.Err != nil:
		if member == "" {
			return err.Err.Error()
		}
		return member + ": " + err.Err.Error()
	case member == "":
		return "the file must hold members, as NAME: VALUE"
	default:
		return fmt.Sprintf("%s: a %s does not belong here", member, kindName(err.JSONKind))
	}
}

func kindName(k jsontext.Kind) string {
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

// lineProblem is what is wrong at a line of a file, 0 for the file as a whole.
type lineProblem struct {
	line    int
	message string
}

func (p lineProblem) in(file string) string {
	if p.line == 0 {
		return file + ": " + p.message
	}
	return fmt.Sprintf("%s:%d: %s", file, p.line, p.message)
}

func prefixLines(name string, problems []lineProblem) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.in(name)
	}
	return lines
}

// count prints a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// yamlReader turns a YAML tree into JSON text and remembers the line of every value.
type yamlReader struct {
	root     *yaml.Node
	text     bytes.Buffer
	encoder  *jsontext.Encoder
	lines    map[jsontext.Pointer]int
	problems []lineProblem
}

func (y *yamlReader) only(p lineProblem) *yamlReader {
	y.problems = []lineProblem{p}
	return y
}

// line finds the line of a value, or of the nearest one around it.
func (y *yamlReader) line(p jsontext.Pointer) int {
	for {
		if line, ok := y.lines[p]; ok {
			return line
		}
		if p == "" {
			return 1
		}
		p = p.Parent()
	}
}

func (y *yamlReader) problem(n *yaml.Node, format string, args ...any) {
	y.problems = append(y.problems, lineProblem{n.Line, fmt.Sprintf(format, args...)})
	y.token(jsontext.Null)
}

// token writes; after a problem what was written no longer matters, so its error does not either.
func (y *yamlReader) token(t jsontext.Token) {
	if err := y.encoder.WriteToken(t); err != nil && len(y.problems) == 0 {
		y.problems = append(y.problems, lineProblem{1, err.Error()})
	}
}

func (y *yamlReader) value(n *yaml.Node, at jsontext.Pointer, depth int) {
	if _, seen := y.lines[at]; !seen {
		y.lines[at] = n.Line
	}
	switch {
	case depth > maxYAMLDepth:
		y.problem(n, "nested deeper than %d levels", maxYAMLDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		y.problem(n, "anchors and aliases are not read; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		y.problem(n, "tags are not read (%s)", n.Tag)
	case n.Kind == yaml.MappingNode:
		y.mapping(n, at, depth)
	case n.Kind == yaml.SequenceNode:
		y.token(jsontext.BeginArray)
		for i, item := range n.Content {
			y.value(item, at.AppendToken(fmt.Sprint(i)), depth+1)
		}
		y.token(jsontext.EndArray)
	default:
		y.scalar(n)
	}
}

func (y *yamlReader) mapping(n *yaml.Node, at jsontext.Pointer, depth int) {
	y.token(jsontext.BeginObject)
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line, repeated := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || key.Anchor != "":
			y.problems = append(y.problems, lineProblem{key.Line, "a member's name must be plain text"})
			continue
		case repeated:
			y.problems = append(y.problems, lineProblem{key.Line, fmt.Sprintf("%q stands already on line %d", key.Value, line)})
			continue
		}
		first[key.Value] = key.Line
		child := at.AppendToken(key.Value)
		y.lines[child] = key.Line
		y.token(jsontext.String(key.Value))
		y.value(value, child, depth+1)
	}
	y.token(jsontext.EndObject)
}

func (y *yamlReader) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		y.problem(n, "there is no value here; write one, or leave the member out")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			y.problem(n, "%q is not true or false", n.Value)
			return
		}
		y.token(jsontext.Bool(b))
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			y.problem(n, "%s is not a whole number that fits", n.Value)
			return
		}
		y.token(jsontext.Int(i))
	case "!!float":
		y.problem(n, "%s: fractions are not used; write text in quotes", n.Value)
	case "!!binary":
		y.problem(n, "binary values are not read")
	default: // strings, and what YAML 1.1 takes for a date
		y.token(jsontext.String(n.Value))
	}
}

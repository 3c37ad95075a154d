package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/guardyn-edge/guardyn/internal/strictyaml"
)

// maxYAML bounds a file of rules, lists or other objects, in bytes.
const maxYAML = 16 << 20

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

// decodeYAML reads one document into v, a pointer, which keeps its value on an error.
func decodeYAML(data []byte, name string, v any) error {
	return yamlError(name, strictyaml.Read(data).Decode(v))
}

// yamlError is of the problems of one file; nil without any.
func yamlError(name string, problems []strictyaml.Problem) error {
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return errors.New(problems[0].In(name))
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.In(name)
	}
	return &lineErrors{summary: fmt.Sprintf("%s: %s", name, count(len(problems), "problem")), lines: lines}
}

// count prints a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

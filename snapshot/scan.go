package snapshot

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting is how deep a document may nest (spec §2).
const maxNesting = 64

// The scanner cuts a document into the values of its outer two objects without looking into them: that is
// for the strict decoder, which sees each value once, in parallel, and not at all when its bytes are known.
// The outer grammar is judged here exactly; of the values, only that their brackets match and how deep they
// nest. A value that is no JSON is found by who decodes it.
type scanner struct {
	b   []byte
	pos int
}

var errTruncated = errors.New("the document ends too early")

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %w", s.pos, fmt.Errorf(format, args...))
}

func (s *scanner) space() {
	for s.pos < len(s.b) {
		switch s.b[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// take reads one byte of the grammar, after white space.
func (s *scanner) take(want byte) error {
	s.space()
	if s.pos == len(s.b) {
		return errTruncated
	}
	if s.b[s.pos] != want {
		return s.errorf("%q where %q belongs", s.b[s.pos], want)
	}
	s.pos++
	return nil
}

// string skips a string, whose opening quote is next, and returns it with its quotes.
func (s *scanner) string() ([]byte, error) {
	start := s.pos
	for i := start + 1; ; {
		q := bytes.IndexByte(s.b[i:], '"')
		if q < 0 {
			s.pos = len(s.b)
			return nil, errTruncated
		}
		i += q + 1
		slashes := 0
		for j := i - 2; j > start && s.b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			s.pos = i
			return s.b[start:i], nil
		}
	}
}

// value skips a value and returns it. depth is how many arrays and objects are around it.
func (s *scanner) value(depth int) ([]byte, error) {
	s.space()
	start := s.pos
	if start == len(s.b) {
		return nil, errTruncated
	}
	switch s.b[start] {
	case '"':
		return s.string()
	case '{', '[':
	default:
		for s.pos < len(s.b) {
			switch s.b[s.pos] {
			case ' ', '\t', '\r', '\n', ',', ']', '}', ':', '"', '{', '[':
				if s.pos == start {
					return nil, s.errorf("%q where a value belongs", s.b[s.pos])
				}
				return s.b[start:s.pos], nil
			}
			s.pos++
		}
		return s.b[start:], nil
	}
	var open [maxNesting]byte
	base := depth
	for s.pos < len(s.b) {
		switch c := s.b[s.pos]; c {
		case '"':
			if _, err := s.string(); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			if depth == maxNesting {
				return nil, s.errorf("it nests deeper than %d", maxNesting)
			}
			open[depth] = c + 2 // the closing bracket
			depth++
		case '}', ']':
			depth--
			if open[depth] != c {
				return nil, s.errorf("%q closes nothing", c)
			}
			if depth == base {
				s.pos++
				return s.b[start:s.pos], nil
			}
		}
		s.pos++
	}
	return nil, errTruncated
}

// object reads an object that has depth arrays and objects around it. For each member it calls value with
// the unescaped name; value must read the member's value.
func (s *scanner) object(depth int, value func(name string) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.b) && s.b[s.pos] == '}' {
		s.pos++
		return nil
	}
	for {
		if err := s.take('"'); err != nil {
			return err
		}
		s.pos--
		quoted, err := s.string()
		if err != nil {
			return err
		}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return s.errorf("member name: %w", err)
		}
		if err := s.take(':'); err != nil {
			return err
		}
		s.space()
		if err := value(string(name)); err != nil {
			return err
		}
		s.space()
		if s.pos < len(s.b) && s.b[s.pos] == '}' {
			s.pos++
			return nil
		}
		if err := s.take(','); err != nil {
			return err
		}
	}
}

// end reports anything but white space that is left.
func (s *scanner) end() error {
	s.space()
	if s.pos < len(s.b) {
		return s.errorf("%d bytes follow the document", len(s.b)-s.pos)
	}
	return nil
}

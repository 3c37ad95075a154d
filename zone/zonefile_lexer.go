package zone

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// word is one word of an entry, escapes as they stand in the file, quotes taken off.
type word struct {
	text   string
	quoted bool
	// glued: no white space stands before it, as between alpn= and "h2".
	glued        bool
	line, column int
}

// entry is one directive or record: a line, or several joined by parentheses (RFC 1035 §5.1).
type entry struct {
	words []word
	line  int
	// indented: the first line begins with white space, so that the owner is the one before.
	indented bool
	// comment is the last comment of the entry, trimmed.
	comment string
	bad     bool // something in it did not read; errors has told
}

// entryReader splits a zone file into entries.
type entryReader struct {
	in     *bufio.Reader
	line   int
	report func(line, column int, format string, args ...any)
}

// next returns the next entry that has words, or io.EOF.
func (r *entryReader) next() (entry, error) {
	for {
		e, err := r.read()
		if err != nil {
			return entry{}, err
		}
		if len(e.words) > 0 || e.bad {
			return e, nil
		}
	}
}

// read reads one line and, while a parenthesis is open, those after it.
func (r *entryReader) read() (entry, error) {
	var e entry
	var open []word // parentheses not yet closed
	size := 0
	for {
		line, err := r.readLine(MaxFileEntry - size)
		if errors.Is(err, io.EOF) {
			if e.line == 0 {
				return entry{}, io.EOF
			}
			break
		}
		if err != nil && !errors.Is(err, errLongEntry) {
			return entry{}, err
		}
		first := e.line == 0
		if first {
			e.line = r.line
			e.indented = line != "" && (line[0] == ' ' || line[0] == '\t')
		}
		if err != nil {
			r.report(e.line, 0, "the entry has more than %d bytes", MaxFileEntry)
			e.bad = true
			return e, nil
		}
		size += len(line)
		open = r.split(&e, line, open)
		if len(open) == 0 {
			return e, nil
		}
	}
	for _, p := range open {
		r.report(p.line, p.column, "the parenthesis is not closed")
	}
	e.bad = true
	return e, nil
}

var errLongEntry = errors.New("entry too long")

// readLine returns a line without its end. A line of more than most bytes is read to its end and is
// errLongEntry.
func (r *entryReader) readLine(most int) (string, error) {
	var line []byte
	var err error
	long := false
	for {
		var part []byte
		part, err = r.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long) {
		return "", err
	}
	r.line++
	if long {
		return "", errLongEntry
	}
	if r.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r"))), nil
}

// split takes the words of a line and returns the parentheses that are open after it.
func (r *entryReader) split(e *entry, line string, open []word) []word {
	start := -1 // of the bare word that is being read
	last := -1  // where the last word ended
	add := func(w word, from, to int) {
		w.glued, w.line, last = from == last, r.line, to
		e.words = append(e.words, w)
	}
	end := func(i int) {
		if start >= 0 {
			add(word{text: line[start:i], column: start + 1}, start, i)
			start = -1
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			end(i)
		case c == ';':
			end(i)
			e.comment = strings.TrimSpace(line[i+1:])
			return open
		case c == '(':
			end(i)
			open = append(open, word{line: r.line, column: i + 1})
		case c == ')':
			end(i)
			if len(open) == 0 {
				r.report(r.line, i+1, "the parenthesis closes nothing")
				e.bad = true
				continue
			}
			open = open[:len(open)-1]
		case c == '"':
			end(i)
			n := closingQuote(line[i+1:])
			if n < 0 {
				r.report(r.line, i+1, "the quote is not closed on its line")
				e.bad = true
				return open
			}
			add(word{text: line[i+1 : i+1+n], quoted: true, column: i + 2}, i, i+n+2)
			i += n + 1
		case c < ' ' || c == 0x7f:
			r.report(r.line, i+1, `a control character; write it as \%03d`, c)
			e.bad = true
		default:
			if start < 0 {
				start = i
			}
			if c == '\\' && i+1 < len(line) {
				i++
			}
		}
	}
	end(len(line))
	return open
}

// closingQuote returns where the quote that ends s stands, -1 when there is none.
func closingQuote(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// fileDuration reads a TTL as BIND writes it: seconds, or numbers with the units w, d, h, m and s.
func fileDuration(s string) (uint32, error) {
	var total, n uint64
	have := false
	for i := range len(s) {
		c := s[i]
		if digit(c) {
			n, have = n*10+uint64(c-'0'), true
			if n > uint64(MaxTTL) {
				return 0, fmt.Errorf("ttl %s is over %d seconds (RFC 2181 §8)", quote(s), MaxTTL)
			}
			continue
		}
		unit, ok := map[byte]uint64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}[c|0x20]
		if !ok || !have {
			return 0, fmt.Errorf("ttl %s: write seconds, or units as in 1h30m", quote(s))
		}
		total += n * unit
		n, have = 0, false
	}
	if total += n; total > uint64(MaxTTL) {
		return 0, fmt.Errorf("ttl %s is over %d seconds (RFC 2181 §8)", quote(s), MaxTTL)
	}
	return uint32(total), nil
}

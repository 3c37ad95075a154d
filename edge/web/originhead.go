package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// field is one field line of a message.
type field struct{ name, value string }

// answerHead is the head of one answer of an origin by HTTP/1.1, read so that no two readers can take it for
// different ones. Refused beyond the grammar (RFC 9112 §2.2, §5.2, §6.1, §6.3): a line ended by LF alone, CR or
// NUL within a line, another control character in a field (RFC 9110 §5.5), a continued line (obs-fold), Transfer-Encoding beside Content-Length, twice, below HTTP/1.1 or
// other than chunked, and Content-Length of several values or other than digits.
type answerHead struct {
	status int
	// fields are in the order that they came in, their names in canonical form.
	fields []field
	// connection is the list of options in Connection, empty for none.
	connection []string
	// length is the value of Content-Length, -1 without one.
	length  int64
	chunked bool
	// keep says that the connection stays open after this answer (RFC 9112 §9.3).
	keep bool
}

var errHead = errors.New("the origin's answer is malformed")

func headError(what string) error { return fmt.Errorf("%w: %s", errHead, what) }

// lineScan finds the end of a head among octets that arrive in parts.
type lineScan struct {
	line int // where the current line begins
	at   int // what was looked at
}

// scan returns the length of the head that b begins with, the empty line included, or 0 when more must come. b has
// what it had at the last call, and more. A line that cannot be one is an error at once, the first line too.
func (s *lineScan) scan(b []byte) (int, error) {
	for {
		i := bytes.IndexByte(b[s.at:], '\n')
		if i < 0 {
			s.at = len(b)
			return 0, nil
		}
		end := s.at + i
		if end == s.line || b[end-1] != '\r' {
			return 0, headError("a line is ended by LF alone")
		}
		if s.line == 0 {
			if _, _, err := parseStatusLine(string(b[:end-1])); err != nil {
				return 0, err
			}
		} else if end-1 == s.line {
			return end + 1, nil
		}
		s.line, s.at = end+1, end+1
	}
}

// parseStatusLine returns the status, and whether the version is above HTTP/1.0.
func parseStatusLine(line string) (status int, above10 bool, err error) {
	const version, shortest = "HTTP/1.", len("HTTP/1.1 200")
	if len(line) < shortest || line[:len(version)] != version || !isDigit(line[7]) || line[8] != ' ' ||
		len(line) > shortest && line[shortest] != ' ' {
		return 0, false, headError("its first line is no status line of HTTP/1.1")
	}
	for _, c := range []byte(line[9:12]) {
		if !isDigit(c) {
			return 0, false, headError("its status is no number")
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		return 0, false, headError("its status is below 100")
	}
	return status, line[7] != '0', nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// parse reads a whole head, as lineScan found it. The memory of h is used again.
func (h *answerHead) parse(head string) error {
	line, rest, _ := strings.Cut(head, "\r\n")
	status, above10, err := parseStatusLine(line)
	if err != nil {
		return err
	}
	*h = answerHead{status: status, fields: h.fields[:0], connection: h.connection[:0], length: -1}
	if h.fields, err = parseFields(h.fields, rest); err != nil {
		return err
	}
	if strings.IndexByte(line, '\r') >= 0 || strings.IndexByte(line, 0) >= 0 {
		return headError("CR or NUL in its status line")
	}
	return h.frame(above10)
}

// frame reads what the fields say of the body's length and of the connection.
func (h *answerHead) frame(above10 bool) error {
	h.keep = above10
	for i := range h.fields {
		switch f := &h.fields[i]; f.name {
		case "Content-Length":
			n, ok := http1.ParseLength(f.value)
			if !ok || h.length >= 0 && h.length != n {
				return headError("its Content-Length")
			}
			h.length = n
		case "Transfer-Encoding":
			if h.chunked || !above10 || !http1.EqualFold(f.value, "chunked") {
				return headError("its Transfer-Encoding")
			}
			h.chunked = true
		case "Connection":
			h.connection = append(h.connection, f.value)
		}
	}
	if h.chunked && h.length >= 0 {
		return headError("both Transfer-Encoding and Content-Length")
	}
	if len(h.connection) > 0 {
		h.keep = above10 && !http1.Lists(h.connection, "close") || !above10 && http1.Lists(h.connection, "keep-alive")
	}
	return nil
}

// interim reports whether another head follows for the same request (RFC 9110 §15.2).
func (h *answerHead) interim() bool {
	return h.status < 200 && h.status != http.StatusSwitchingProtocols
}

// get returns the first value of the field of that canonical name.
func (h *answerHead) get(name string) string {
	for i := range h.fields {
		if h.fields[i].name == name {
			return h.fields[i].value
		}
	}
	return ""
}

// parseFields appends the field lines of s, which ends with the empty line, to fields (RFC 9112 §5).
func parseFields(fields []field, s string) ([]field, error) {
	for {
		line, rest, found := strings.Cut(s, "\r\n")
		if !found {
			return fields, headError("a field is cut off")
		}
		if line == "" {
			return fields, nil
		}
		s = rest
		colon := strings.IndexByte(line, ':')
		if colon <= 0 {
			return fields, headError("a line without a field's name")
		}
		name := line[:colon]
		if !http1.IsToken(name) {
			return fields, headError("a field's name, or white space beside it")
		}
		value := http1.Trim(line[colon+1:])
		for i := range len(value) {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return fields, headError("a control character in a field")
			}
		}
		if len(fields) == http1.MaxFields {
			return fields, headError("it has more than 256 fields")
		}
		fields = append(fields, field{http.CanonicalHeaderKey(name), value})
	}
}

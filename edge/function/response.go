package function

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Response is what a function answered.
type Response struct {
	// Status is from 200 to 599.
	Status int
	// Header has what the function said, but for Status and Content-Length. Fields that end at this hop may be among it.
	Header http.Header
	Body   []byte
	Usage  Usage

	release func()
}

// Close gives back what the body counts of the node's memory. It is called once, when nobody needs the body any more.
func (r *Response) Close() { r.release() }

// Usage is what a call took.
type Usage struct {
	Time   time.Duration // waiting included
	Memory int64         // bytes, at its end
	Output int           // bytes on standard output
	// Stderr is the end of what the function wrote to standard error, at most 4 KiB.
	Stderr []byte
}

// Bounds of the head of an answer.
const (
	maxHead   = 64 << 10
	maxFields = 256
)

var errNoHead = errors.New("its output does not begin with header lines and an empty line, with Status, Content-Type or Location among them")

// parseAnswer reads what a function wrote, by RFC 3875 §6: lines end in LF or CRLF. It keeps out.
func parseAnswer(out []byte) (*Response, error) {
	r := &Response{Header: make(http.Header, 4)}
	cgi, fields := false, 0
	for at := 0; ; {
		end := bytes.IndexByte(out[at:min(len(out), maxHead)], '\n')
		if end < 0 {
			if len(out) > maxHead {
				return nil, fmt.Errorf("its head is longer than %d bytes", maxHead)
			}
			return nil, errNoHead
		}
		line := string(bytes.TrimSuffix(out[at:at+end], []byte{'\r'}))
		if at += end + 1; line == "" {
			r.Body = out[at:]
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpguts.ValidHeaderFieldName(name) {
			return nil, errNoHead
		}
		if value = textproto.TrimString(value); !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("the value of its field %s holds what a field must not", strconv.Quote(name))
		}
		if fields++; fields > maxFields {
			return nil, fmt.Errorf("its head has more than %d fields", maxFields)
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Status":
			if r.Status != 0 {
				return nil, errors.New("it gives two statuses")
			}
			code, _, _ := strings.Cut(value, " ")
			status, err := strconv.Atoi(code)
			if err != nil || len(code) != 3 || status < 200 || status > 599 {
				return nil, fmt.Errorf("its status %s is not from 200 to 599", strconv.Quote(value))
			}
			r.Status, cgi = status, true
			continue
		case "Content-Length":
			continue // it is what there is
		case "Content-Type", "Location":
			if len(r.Header[name]) > 0 {
				return nil, fmt.Errorf("it gives %s twice", name)
			}
			cgi = true
		}
		r.Header[name] = append(r.Header[name], value)
	}
	if !cgi {
		return nil, errNoHead
	}
	if r.Status == 0 {
		if r.Status = http.StatusOK; len(r.Header["Location"]) > 0 {
			r.Status = http.StatusFound
		}
	}
	return r, nil
}

package api

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/control"
)

// Bounds of bodies in bytes.
const (
	MaxBody       = 1 << 20 // of every JSON body but those of functions and lists
	MaxLargeBody  = 8 << 20 // of functions and lists
	maxImportBody = control.MaxImport
	maxAckBody    = 64 << 10
)

// access is who may learn that a route exists. What they may do there is judged by control.
type access int

const (
	public access = iota
	forUsers
	forOperators
	forNodes
)

func (a access) admits(p control.Principal) bool {
	switch a {
	case public:
		return true
	case forUsers:
		return p.UserID != ""
	case forOperators:
		return p.UserID != "" && p.Operator
	case forNodes:
		return p.NodeID != ""
	}
	return false
}

// route is one method of one path, with what the OpenAPI document says of it.
type route struct {
	method, pattern string
	access          access
	role            string // that control asks for, for the document: viewer, editor, admin
	summary         string
	query           []string // names of the parameters that it takes, keys of queryParameters
	conditional     bool     // takes If-Match and If-None-Match
	slow            bool     // reads all rows, or makes a long answer: gets slowTimeout
	foreign         bool     // reads its query itself, and answers in another package's way
	serve           func(*call) error

	// For the document. in and out are nil when there is no JSON; inType and outType name another type.
	in, out         reflect.Type
	inType, outType string
	status          int
	accepted        bool     // may answer 202 too
	headers         []string // request headers, keys of headerParameters
	limit           int64    // of the body in bytes

	names []string // of the pattern's parameters; set by router.add
}

// read is a route that answers with a value and takes no body.
func read[Out any](rt route, f func(*call) (Out, error)) *route {
	rt.method, rt.status, rt.out = http.MethodGet, http.StatusOK, reflect.TypeFor[Out]()
	rt.serve = func(c *call) error {
		out, err := f(c)
		if err != nil {
			return err
		}
		return c.json(rt.status, out)
	}
	return &rt
}

// write is a route that takes a JSON body and answers with a value, by status rt.status or 200.
func write[In, Out any](rt route, f func(*call, In) (Out, error)) *route {
	rt.in, rt.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if rt.status == 0 {
		rt.status = http.StatusOK
	}
	if rt.limit == 0 {
		rt.limit = MaxBody
	}
	rt.serve = func(c *call) error {
		var in In
		if err := c.readJSON(&in, rt.limit); err != nil {
			return err
		}
		out, err := f(c, in)
		if err != nil {
			return err
		}
		if c.accepted {
			return c.json(http.StatusAccepted, out)
		}
		return c.json(rt.status, out)
	}
	return &rt
}

// act is a POST that takes no body and answers with a value.
func act[Out any](rt route, f func(*call) (Out, error)) *route {
	out := read(rt, f)
	out.method = http.MethodPost
	return out
}

// remove is a DELETE that answers 204.
func remove(rt route, f func(*call) error) *route {
	rt.method, rt.status = http.MethodDelete, http.StatusNoContent
	rt.serve = func(c *call) error {
		if err := f(c); err != nil {
			return err
		}
		return c.noContent()
	}
	return &rt
}

// call is one request on its way. It belongs to the goroutine that serves it.
type call struct {
	h         *Handler
	w         http.ResponseWriter
	r         *http.Request
	route     *route
	principal control.Principal
	params    params
	args      map[string]string // the query
	condition condition
	start     time.Time
	status    int // 0: nothing was answered yet
	bytes     int64
	large     bool // its body is one of Handler.large
	accepted  bool // what was asked for goes on after the answer: 202
}

// param returns the value of {name} in the route's pattern.
func (c *call) param(name string) string {
	for i, n := range c.route.names {
		if n == name {
			return c.params[i]
		}
	}
	panic("api: " + c.route.pattern + " has no {" + name + "}")
}

// setRevision gives the answer its ETag. A revision under 1 (never written) has none.
func (c *call) setRevision(n int64) {
	if n > 0 {
		c.w.Header().Set("ETag", formatETag(n))
	}
}

func (c *call) json(status int, v any) error {
	body, err := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false))
	if err != nil {
		return err
	}
	c.answer(status, "application/json", append(body, '\n'))
	return nil
}

func (c *call) noContent() error {
	c.answer(http.StatusNoContent, "", nil)
	return nil
}

// answer writes a whole answer. An error of writing is the client's going away; there is nobody to tell.
func (c *call) answer(status int, contentType string, body []byte) {
	hd := c.w.Header()
	secure(hd)
	if contentType != "" {
		hd["Content-Type"] = []string{contentType}
		hd["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	c.status, c.bytes = status, int64(len(body))
	c.w.WriteHeader(status)
	if len(body) > 0 {
		_, _ = c.w.Write(body)
	}
}

// Shared values of answers' headers; never changed.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
)

func secure(hd http.Header) {
	hd["Cache-Control"] = noStore
	hd["X-Content-Type-Options"] = noSniff
}

// errTooLarge is a body over its limit.
type errTooLarge struct{ limit int64 }

func (e *errTooLarge) Error() string {
	return "the body is larger than " + strconv.FormatInt(e.limit, 10) + " bytes"
}

// errMediaType is a body of a type that the route does not read.
type errMediaType struct{ got, want string }

func (e *errMediaType) Error() string {
	return "the body is of type " + strconv.Quote(clip(e.got)) + "; send " + e.want
}

// body bounds the request's body by size and, beyond what every request gets, by time.
func (c *call) body(limit int64, types ...string) (io.ReadCloser, error) {
	hd := c.r.Header
	if ce := hd.Get("Content-Encoding"); ce != "" && !strings.EqualFold(ce, "identity") {
		return nil, &errMediaType{ce, "it without Content-Encoding"}
	}
	if ct := hd.Get("Content-Type"); ct != "" {
		media, _, _ := strings.Cut(ct, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		ok := false
		for _, t := range types {
			ok = ok || t == media
		}
		if !ok {
			return nil, &errMediaType{ct, types[0]}
		}
	}
	if c.r.ContentLength > limit {
		return nil, &errTooLarge{limit}
	}
	if limit > MaxBody && (c.r.ContentLength < 0 || c.r.ContentLength > MaxBody) {
		if !c.large {
			if c.large = c.h.large.enter(c.principal.UserID); !c.large {
				return nil, control.ErrBusy
			}
		}
		// Deadlines are the connection's own clock, whatever the handler's is.
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(readTimeout + transferTime(limit)))
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeTimeout + transferTime(limit)))
	}
	return http.MaxBytesReader(c.w, c.r.Body, limit), nil
}

// transferTime is how long n bytes may take.
func transferTime(n int64) time.Duration {
	return time.Duration(n/transferRate) * time.Second
}

// readJSON reads one strict JSON value into v (RFC 8259, I-JSON names): unknown and repeated members, bad
// UTF-8 and whatever follows the value are errors that say where.
func (c *call) readJSON(v any, limit int64) error {
	return c.decodeJSON(v, limit, json.RejectUnknownMembers(true))
}

// decodeJSON is readJSON by other options.
func (c *call) decodeJSON(v any, limit int64, o ...json.Options) error {
	body, err := c.body(limit, "application/json")
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return bodyError(err)
	}
	return json.Unmarshal(raw, v, o...)
}

// bodyError tells a body that is too long from one that broke off.
func bodyError(err error) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return &errTooLarge{over.Limit}
	}
	return &errBody{err}
}

// errBody is a body that could not be read to its end.
type errBody struct{ err error }

func (e *errBody) Error() string { return "the body broke off: " + e.err.Error() }
func (e *errBody) Unwrap() error { return e.err }

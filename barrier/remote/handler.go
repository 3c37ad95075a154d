package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Backend is what a Handler serves: the same cohort through each. Leases and Artefacts may be nil; their paths
// are not there then.
type Backend struct {
	Store     barrier.Store
	Leases    barrier.Leases
	Artefacts barrier.Artefacts
}

// Options are the bounds of a Handler. What is zero takes the value that is named.
type Options struct {
	// Wait is the longest that a watch waits, 25 s, and at most that.
	Wait time.Duration

	// MaxWaiting is how many watches wait at once, 4,096, and MaxWaitingEach how many of one principal, 8. What
	// is more is answered 503.
	MaxWaiting, MaxWaitingEach int

	// StoreTimeout is how long one call of the Backend may take, 30 s.
	StoreTimeout time.Duration

	// Challenge is the WWW-Authenticate of an answer of 401, Bearer.
	Challenge string

	// Logger gets the errors of the Backend that are none of the ports', whose text no client sees. Nowhere.
	Logger *slog.Logger
}

const (
	maxWait      = 25 * time.Second
	retryAfter   = 5 * time.Second
	readTimeout  = 15 * time.Second // for a body
	writeTimeout = 15 * time.Second // for an answer, after it was made
	bytesPerSec  = 64 << 10         // a transfer may be that slow
)

func (o Options) withDefaults() Options {
	if o.Wait <= 0 || o.Wait > maxWait {
		o.Wait = maxWait
	}
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = 4096
	}
	if o.MaxWaitingEach <= 0 {
		o.MaxWaitingEach = 8
	}
	if o.StoreTimeout <= 0 {
		o.StoreTimeout = 30 * time.Second
	}
	if o.Challenge == "" {
		o.Challenge = "Bearer"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Handler serves one cohort. It is safe for concurrent use; Close it, after the server that uses it, to end its
// subscriptions to the Backend.
type Handler struct {
	b         Backend
	authorize Authorizer
	o         Options
	hub       *hub
	copies    copies
	body      time.Duration // readTimeout but in tests
}

// NewHandler returns a Handler of b that asks authorize about each request. It answers at paths like "/ack": mount
// it with http.StripPrefix.
func NewHandler(b Backend, authorize Authorizer, o Options) *Handler {
	o = o.withDefaults()
	return &Handler{b: b, authorize: authorize, o: o, hub: newHub(b.Store, o), body: readTimeout}
}

// Close ends what the Handler watches and waits for that; watches that wait are answered 503.
func (h *Handler) Close() { h.hub.close() }

// exchange is one request that was let in, and its answer.
type exchange struct {
	*Handler
	w   http.ResponseWriter
	r   *http.Request
	p   Principal
	ctx context.Context // of calls to the Backend
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	p, err := h.authorize(r)
	if err != nil {
		h.refuseUnseen(w, err)
		return
	}
	if word := r.Header.Get(headerRequest); checkWord(word) {
		w.Header().Set(headerAnswer, word)
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.o.StoreTimeout)
	defer cancel()
	x := &exchange{Handler: h, w: w, r: r, p: p, ctx: ctx}
	if err := x.serve(); err != nil {
		x.fail(err)
	}
}

func (x *exchange) serve() error {
	methods, ok := paths[x.r.URL.Path]
	if !ok {
		return &refusal{http.StatusNotFound, codeNotFound, "there is nothing at this path"}
	}
	rt, ok := methods[x.r.Method]
	if !ok {
		x.w.Header().Set("Allow", allowed(methods))
		return &refusal{http.StatusMethodNotAllowed, codeMethod, "the path does not take this method"}
	}
	if !x.p.is(rt.may) {
		return forbidden("the credentials do not allow this call")
	}
	return rt.serve(x)
}

// refuseUnseen answers a request whose credentials are not good: with no word of what is here.
func (h *Handler) refuseUnseen(w http.ResponseWriter, err error) {
	p := problem{Status: http.StatusUnauthorized, Code: codeUnauthenticated}
	if errors.Is(err, ErrUnavailable) {
		h.o.Logger.Error("barrier: credentials could not be checked", "error", err)
		w.Header().Set("Retry-After", seconds(retryAfter))
		p = problem{Status: http.StatusServiceUnavailable, Code: codeUnavailable}
	} else {
		w.Header().Set("WWW-Authenticate", h.o.Challenge)
	}
	p.Title = http.StatusText(p.Status)
	writeProblem(w, p)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// fail answers with err.
func (x *exchange) fail(err error) {
	p, named := problemOf(err)
	if !named {
		x.o.Logger.ErrorContext(x.ctx, "barrier: call failed", "method", x.r.Method, "path", x.r.URL.Path, "error", err)
	}
	if p.Status == http.StatusServiceUnavailable {
		x.w.Header().Set("Retry-After", seconds(retryAfter))
	}
	writeProblem(x.w, p)
}

func writeProblem(w http.ResponseWriter, p problem) {
	raw, err := json.Marshal(p, rounding)
	if err != nil {
		// A Backend's text that is not UTF-8: the code alone can be sent.
		raw, _ = json.Marshal(problem{Title: p.Title, Status: p.Status, Code: p.Code})
	}
	write(w, p.Status, "application/problem+json", raw)
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	limit := writeTimeout + time.Duration(len(body))*time.Second/bytesPerSec
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// answer sends v with status 200. Text in it that is not UTF-8 is an error of the Backend.
func (x *exchange) answer(v any) error {
	raw, err := json.Marshal(v, rounding)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	write(x.w, http.StatusOK, "application/json", raw)
	return nil
}

// query returns the query's parameters, each of which is one of names and comes once at most.
func (x *exchange) query(names ...string) (url.Values, error) {
	q, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return nil, invalid("query: %v", err)
	}
	n := 0
	for _, name := range names {
		switch len(q[name]) {
		case 0:
		case 1:
			n++
		default:
			return nil, invalid("query: %s comes more than once", name)
		}
	}
	if n != len(q) {
		return nil, invalid("query: it has other parameters than %s", strings.Join(names, ", "))
	}
	return q, nil
}

// read returns the whole body, of at most limit bytes.
func (x *exchange) read(contentType string, limit int64) ([]byte, error) {
	if ct, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || ct != contentType {
		return nil, invalid("the body is to be %s", contentType)
	}
	if x.r.ContentLength > limit {
		return nil, invalid("the body has %d bytes, more than %d", x.r.ContentLength, limit)
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(x.body + time.Duration(limit)*time.Second/bytesPerSec))
	raw, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, limit))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, invalid("the body has more than %d bytes", limit)
		}
		return nil, invalid("the body did not arrive whole")
	}
	return raw, nil
}

// taking makes a route of what takes a JSON body of at most limit bytes and answers with what it returns.
func taking[B any](limit int, f func(x *exchange, b B) (any, error)) func(*exchange) error {
	return func(x *exchange) error {
		if _, err := x.query(); err != nil {
			return err
		}
		raw, err := x.read("application/json", int64(limit))
		if err != nil {
			return err
		}
		var b B
		if err := json.Unmarshal(raw, &b, strict); err != nil {
			return invalid("the body: %w", err)
		}
		v, err := f(x, b)
		if err != nil {
			return err
		}
		return x.answer(v)
	}
}

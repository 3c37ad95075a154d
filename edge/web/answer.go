package web

import (
	"io"
	"net/http"
	"strconv"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// statusClientGone is what the access log shows for a request whose client left before it was answered.
const statusClientGone = 499

// recorder is the response, with what the access log and the counters need of it.
type recorder struct {
	http.ResponseWriter
	conn    *http1.Conn // that this request alone has; nil by HTTP/2
	version string      // of the snapshot, when it is to be told
	hsts    string      // Strict-Transport-Security, empty for none
	// cacheStatus is what this cache adds to Cache-Status, nil for nothing.
	cacheStatus []string
	// sink takes the body instead of the client, nil when nothing does; sunk is how much.
	sink   io.Writer
	sunk   int64
	status int // 0 before the header is written
	bytes  int64
	failed bool // a write of the answer failed: the client left, or was left
}

// WriteHeader implements http.ResponseWriter. The version is set here, on the final header alone, since
// interim ones clear what was set before.
func (w *recorder) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		if w.status == 0 {
			w.status = status
		}
		if w.version != "" {
			w.Header()[versionHeader] = []string{w.version}
		}
		if w.cacheStatus != nil {
			w.addCacheStatus()
		}
		if w.hsts != "" {
			w.Header()["Strict-Transport-Security"] = []string{w.hsts}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// addCacheStatus adds this cache's member behind those of caches nearer to the origin (RFC 9211 §2).
func (w *recorder) addCacheStatus() {
	h := w.Header()
	before := h["Cache-Status"]
	if len(before) == 0 {
		h["Cache-Status"] = w.cacheStatus
		return
	}
	h["Cache-Status"] = append(before[:len(before):len(before)], w.cacheStatus...)
}

// Write implements io.Writer.
func (w *recorder) Write(p []byte) (int, error) {
	if w.sink != nil {
		n, err := w.sink.Write(p)
		w.sunk += int64(n)
		return n, err
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	if err != nil && err != http.ErrBodyNotAllowed {
		w.failed = true
	}
	return n, err
}

// flush sends what was written for the client.
func (w *recorder) flush() {
	if w.sink == nil {
		w.flushClient()
	}
}

func (w *recorder) flushClient() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets http.ResponseController reach what is wrapped.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers with the zone's error page for status, or with a plain one that says text.
func (x *exchange) fail(status int, text string) {
	if x.cache.on && x.failing(status) {
		return
	}
	if x.zone != nil {
		if page, ok := x.zone.Config.Settings.ErrorPages[strconv.Itoa(status)]; ok {
			x.answer(status, "text/html; charset=utf-8", page)
			return
		}
	}
	x.answer(status, "text/plain; charset=utf-8", strconv.Itoa(status)+" "+http.StatusText(status)+"\n"+text+"\n")
}

// redirected answers that the resource is elsewhere. One that has moved for good clients may keep (RFC 9110 §15.4.2, §15.4.9), by
// themselves for as long as they like; an hour is what a mistake in the configuration lasts with them at most.
func (x *exchange) redirected(status int, location string) {
	x.w.Header().Set("Location", location)
	keep := noStore
	if status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect {
		keep = "private, max-age=3600" // what a rule asks of a client need not be true of the next
	}
	x.write(status, "text/plain; charset=utf-8", keep, http.StatusText(status)+"\n")
}

const noStore = "no-store"

// answer writes an answer of the node's own, which is not to be stored.
func (x *exchange) answer(status int, contentType, body string) {
	x.write(status, contentType, noStore, body)
}

func (x *exchange) write(status int, contentType, cacheControl, body string) {
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", cacheControl)
	h.Set("X-Content-Type-Options", "nosniff")
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		io.WriteString(x.w, body) //nolint:errcheck // a client that left needs no answer
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Ranges of what a demo origin is asked for.
const (
	maxSlow   = time.Minute
	maxEvents = 1000
)

// farewell is how long a WebSocket's client has to answer that it is closed.
const farewell = 500 * time.Millisecond

// originHelp is what the paths of a demo origin do; answer and told hold to it.
const originHelp = `  /                            says which origin it is, and who asked for what
  /headers                     the request's fields, as they reached the origin
  /status/CODE                 answers CODE, 200 to 599
  /slow?for=2s                 answers after a while, a minute at most
  /events?count=10&every=1s    server-sent events
  /websocket                   takes an upgrade and sends every message back
  /cached                      may be kept for a minute; counts the requests that reach the origin
  /healthz                     for health checks
  POST /demo/fail?status=503   every request is answered so, health checks too
  POST /demo/slow?by=2s        every answer comes so much later
  POST /demo/mend              as it was`

// answer answers a request by its path.
func (o *demoOrigin) answer(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/healthz":
		fmt.Fprintln(w, "ok")
	case path == "/headers":
		fmt.Fprintf(w, "Host: %s\n", r.Host)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			for _, value := range r.Header[name] {
				fmt.Fprintf(w, "%s: %s\n", name, value)
			}
		}
	case strings.HasPrefix(path, "/status/"):
		code, err := inRange("status", strings.TrimPrefix(path, "/status/"), 200, 599)
		if refused(w, err) {
			return
		}
		w.WriteHeader(code)
		if code != http.StatusNoContent && code != http.StatusNotModified {
			fmt.Fprintf(w, "Demo origin %d answers %d.\n", o.number, code)
		}
	case path == "/slow":
		d, err := parameter(r, "for", time.Second, 0, maxSlow)
		if refused(w, err) || !delayed(w, r, d) {
			return
		}
		fmt.Fprintf(w, "Demo origin %d answers after %s.\n", o.number, d)
	case path == "/events":
		o.events(w, r)
	case path == "/websocket":
		o.webSocket(w, r)
	case path == "/cached":
		w.Header().Set("Cache-Control", "public, max-age=60")
		w.Header().Set("Cache-Tag", "demo")
		fmt.Fprintf(w, "Answer %d of demo origin %d.\n", o.cacheable.Add(1), o.number)
	default:
		fmt.Fprintf(w, "Hello from demo origin %d.\n%s %q for host %q, forwarded for %q by %s\n",
			o.number, r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("X-Forwarded-For"), r.RemoteAddr)
	}
}

// told does what the paths under /demo/ say. When it returns false the request is none of them.
func (o *demoOrigin) told(w http.ResponseWriter, r *http.Request) bool {
	what, ok := strings.CutPrefix(r.URL.Path, "/demo/")
	if !ok || what != "fail" && what != "slow" && what != "mend" {
		return false
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "An origin is told by POST.", http.StatusMethodNotAllowed)
		return true
	}
	if r.Header.Get("X-Forwarded-For") != "" {
		http.Error(w, "An origin is told at its own address, not through a node, which chooses one.", http.StatusForbidden)
		return true
	}
	switch what {
	case "fail":
		status, err := inRange("status", r.URL.Query().Get("status"), 500, 599)
		if r.URL.Query().Get("status") == "" {
			status, err = http.StatusServiceUnavailable, nil
		}
		if refused(w, err) {
			return true
		}
		o.tell(func() { o.status = status })
		fmt.Fprintf(w, "Demo origin %d answers everything with %d.\n", o.number, status)
	case "slow":
		by, err := parameter(r, "by", 2*time.Second, 0, maxSlow)
		if refused(w, err) {
			return true
		}
		o.tell(func() { o.delay = by })
		fmt.Fprintf(w, "Demo origin %d answers everything %s later.\n", o.number, by)
	case "mend":
		o.tell(func() { o.status, o.delay = 0, 0 })
		fmt.Fprintf(w, "Demo origin %d works.\n", o.number)
	}
	return true
}

func (o *demoOrigin) tell(set func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	set()
}

// events sends server-sent events (HTML, §9.2).
func (o *demoOrigin) events(w http.ResponseWriter, r *http.Request) {
	count, err := 10, error(nil)
	if text := r.URL.Query().Get("count"); text != "" {
		count, err = inRange("count", text, 1, maxEvents)
	}
	every, bad := parameter(r, "every", time.Second, 10*time.Millisecond, maxSlow)
	if refused(w, errors.Join(err, bad)) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	timer := time.NewTicker(every)
	defer timer.Stop()
	for i := range count {
		if i > 0 {
			select {
			case <-timer.C:
			case <-r.Context().Done():
				return
			}
		}
		if control.SetWriteDeadline(time.Now().Add(originWrite)) != nil {
			return
		}
		fmt.Fprintf(w, "id: %d\ndata: event %d of %d from demo origin %d\n\n", i+1, i+1, count, o.number)
		if control.Flush() != nil {
			return
		}
	}
}

// webSocket sends every message back with the origin's number before it.
func (o *demoOrigin) webSocket(w http.ResponseWriter, r *http.Request) {
	o.streams.Add(1)
	defer o.streams.Done()
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	// A context that ends takes the connection with it, so this one goes on until the other side was told why.
	talk, cut := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cut()
	closed := make(chan struct{})
	stop := context.AfterFunc(r.Context(), func() {
		defer close(closed)
		late := time.AfterFunc(farewell, cut)
		defer late.Stop()
		_ = c.Close(websocket.StatusGoingAway, "the demo origin stops")
	})
	defer func() {
		if !stop() {
			<-closed
		}
	}()
	for {
		ctx, cancel := context.WithTimeout(talk, webSocketIdle)
		kind, message, err := c.Read(ctx)
		if err == nil {
			err = c.Write(ctx, kind, fmt.Appendf(nil, "demo origin %d: %s", o.number, message))
		}
		cancel()
		if err != nil {
			return
		}
	}
}

// refused answers 400 when err is not nil.
func refused(w http.ResponseWriter, err error) bool {
	if err == nil {
		return false
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
	return true
}

func inRange(name, text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s %q: want %d to %d", name, text, least, most)
	}
	return n, nil
}

// parameter reads a duration of the query.
func parameter(r *http.Request, name string, fallback, least, most time.Duration) (time.Duration, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%s %q: want a duration of %s to %s, as 2s", name, text, least, most)
	}
	return d, nil
}

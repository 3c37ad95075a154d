package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
)

// load is clients that ask again and again until they are stopped.
type load struct {
	t         *testing.T
	connected []*http.Transport
	clients   sync.WaitGroup
	failures  atomic.Int64
	mu        sync.Mutex
	seen      map[string]map[string]int // kind of question -> mark -> answers
}

func (l *load) fail(what string, err error) {
	if l.failures.Add(1) <= 10 {
		l.t.Errorf("%s: %v", what, err)
	}
}

func (l *load) saw(what, mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]map[string]int{}
	}
	if l.seen[what] == nil {
		l.seen[what] = map[string]int{}
	}
	l.seen[what][mark]++
}

func (l *load) hammer(ctx context.Context, what string, ask func() (mark string, err error)) {
	l.clients.Go(func() {
		for ctx.Err() == nil {
			mark, err := ask()
			if err != nil {
				l.fail(what, err)
				continue
			}
			l.saw(what, mark)
		}
	})
}

// socket keeps one WebSocket open until ctx is done and asks it for echoes all the time.
func (l *load) socket(ctx context.Context, what, url string, client *http.Client) {
	l.t.Helper()
	c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, Host: swapHost})
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
	l.clients.Go(func() {
		defer c.CloseNow()
		for i := 0; ctx.Err() == nil; i++ {
			text := strconv.Itoa(i) + strings.Repeat(".", i%2000)
			// The connection goes with the context of a call that is cut off: the last ones are not.
			err := c.Write(context.WithoutCancel(ctx), websocket.MessageText, []byte(text))
			var got []byte
			if err == nil {
				_, got, err = c.Read(context.WithoutCancel(ctx))
			}
			if err != nil || string(got) != text {
				l.fail(what, fmt.Errorf("echo %d: %q, %w", i, got, err))
				return
			}
			l.saw(what, "")
		}
		if err := c.Close(websocket.StatusNormalClosure, "done"); err != nil {
			l.fail(what, fmt.Errorf("closing: %w", err))
		}
	})
}

// stream reads one answer from before the first swap to after the last.
func (l *load) stream(ctx context.Context, what, url string, client *http.Client) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	req.Host = swapHost
	res, err := client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %v, %v", what, res, err)
	}
	l.clients.Go(func() {
		defer res.Body.Close()
		next, lines := 0, bufio.NewScanner(res.Body)
		for lines.Scan() {
			text, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			if text != strconv.Itoa(next) {
				l.fail(what, fmt.Errorf("line %q, want %d", text, next))
				return
			}
			next++
			l.saw(what, "")
		}
		if err := lines.Err(); ctx.Err() == nil {
			l.fail(what, fmt.Errorf("it ended: %w", errors.Join(err, io.ErrUnexpectedEOF)))
		}
	})
}

// askWhole fetches something whose body is the same in every version, and returns the mark that the answer's head has.
func askWhole(c *http.Client, url, body string) (mark string, err error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Host = swapHost
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	mark = res.Header.Get("x-mark")
	// The first version has mark 0.
	version, err := strconv.Atoi(res.Header.Get("x-guardyn-version"))
	if err != nil || res.StatusCode != http.StatusOK || string(got) != body || mark != strconv.Itoa(version-1) {
		return "", fmt.Errorf("answer is not whole or not of one version: %s %q, version %d, mark %q", res.Status, got, version, mark)
	}
	return mark, nil
}

// protocol fails requests that are answered by another version of HTTP than it should be.
type protocol struct {
	*http.Transport
	two bool
}

func (p protocol) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.Transport.RoundTrip(r)
	if err == nil && (res.ProtoMajor == 2) != p.two {
		res.Body.Close()
		return nil, fmt.Errorf("answered by %s", res.Proto)
	}
	return res, err
}

// report tells what was seen of each kind, and fails when that proves nothing.
func (l *load) report(applies int) {
	l.t.Helper()
	for what, marks := range l.seen {
		answers := 0
		for _, n := range marks {
			answers += n
		}
		l.t.Logf("%s: %d answers, of %d versions", what, answers, len(marks))
		long := marks[""] > 0
		if long && answers < applies/4 || !long && len(marks) < applies/4 {
			l.t.Errorf("%s: %d answers of %d versions, out of %d", what, answers, len(marks), applies+1)
		}
	}
	if len(l.seen) < 15 {
		l.t.Errorf("%d kinds of clients were answered", len(l.seen))
	}
}

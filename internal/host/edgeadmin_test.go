package host

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

// TestAdminIsBounded: connections beyond the bound wait until others are closed, and answers have an end.
func TestAdminIsBounded(t *testing.T) {
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := seal.Trust(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	e, err := StartEdge(t.Context(), EdgeConfig{
		APIURL: "http://127.0.0.1:1", Token: "gdn_x", PublicKeys: trusted, StateDir: t.TempDir(),
		DNSAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Interval: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context()) //nolint:errcheck // the node has nothing to lose
	if e.admin.WriteTimeout != adminWriteTimeout || e.admin.ReadHeaderTimeout <= 0 || e.admin.IdleTimeout <= 0 {
		t.Errorf("timeouts %s, %s, %s", e.admin.WriteTimeout, e.admin.ReadHeaderTimeout, e.admin.IdleTimeout)
	}
	ask := func() (net.Conn, chan int) {
		c, err := net.Dial("tcp", e.AdminAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		status := make(chan int, 1)
		go func() {
			if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
				return
			}
			if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				status <- res.StatusCode
			}
		}()
		return c, status
	}
	var first net.Conn
	for i := range maxAdminConns {
		c, status := ask()
		if got := <-status; got != http.StatusOK {
			t.Fatalf("connection %d: %d", i, got)
		}
		if i == 0 {
			first = c
		}
	}
	_, beyond := ask()
	select {
	case got := <-beyond:
		t.Fatalf("one beyond the bound is answered: %d", got)
	default:
	}
	first.Close()
	if got := <-beyond; got != http.StatusOK {
		t.Errorf("after a place is free: %d", got)
	}
}

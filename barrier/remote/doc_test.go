package remote_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// The package's documentation lists every call with who may make it, every code with its status, and the bounds.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	listed := map[remote.Route]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(GET|POST|PUT) +(/[a-z/]+)\S* +([mco](?: [mco])*)(?:  .*)?$`).FindAllStringSubmatch(doc, -1) {
		listed[remote.Route{Method: m[1], Path: m[2], May: m[3]}] = true
	}
	for _, rt := range remote.Routes() {
		if !listed[rt] {
			t.Errorf("%s %s by %s is not documented", rt.Method, rt.Path, rt.May)
		}
		delete(listed, rt)
	}
	if len(listed) > 0 {
		t.Errorf("documented, and not there: %v", listed)
	}

	status, documented := 0, map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(?:(4\d\d)  |     )([a-z_]+(?:, [a-z_]+)*),?$`).FindAllStringSubmatch(doc, -1) {
		if m[1] != "" {
			status, _ = strconv.Atoi(m[1])
		}
		for _, code := range strings.Split(m[2], ", ") {
			documented[code] = status
		}
	}
	codes, _ := namedErrors(t)
	for _, code := range codes {
		if documented[code] != remote.Status(code) {
			t.Errorf("%s is documented as %d, and is %d", code, documented[code], remote.Status(code))
		}
	}
	for _, code := range remote.OwnCodes {
		if !strings.Contains(doc, code) {
			t.Errorf("%s is not documented", code)
		}
	}
	if s := strconv.Itoa(remote.MaxRoster); !strings.Contains(doc, s[:2]+","+s[2:]+" bytes") || remote.MaxRequest != 64<<10 || barrier.MaxArtefactBytes != 4<<20 {
		t.Errorf("the bounds are %d, %s, %d", remote.MaxRequest, s, barrier.MaxArtefactBytes)
	}
}

// A host's own limits on the time of a request do not cut a watch off, over HTTP/1.1 and HTTP/2.
func TestHosts(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := newSpy()
			h := remote.NewHandler(s.backend(), authorize, remote.Options{Wait: 1300 * time.Millisecond})
			server := httptest.NewUnstartedServer(http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Proto != protocol {
					t.Errorf("asked by %s", r.Proto)
				}
				h.ServeHTTP(w, r)
			})))
			server.Config.ReadTimeout, server.Config.WriteTimeout = time.Second, time.Second
			server.EnableHTTP2 = protocol == "HTTP/2.0"
			server.StartTLS()
			defer server.Close()
			defer h.Close()
			for _, m := range methods {
				c := client(t, server.URL, m.who, remote.ClientOptions{HTTP: server.Client()})
				if err := m.call(t.Context(), c); err != nil {
					t.Errorf("%s: %v", m.name, err)
				}
			}
			poll := func(seen string) (int, string) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+prefix+"/watch?topic=head&seen="+seen, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+credential(coordinator))
				resp, err := server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body := make([]byte, resp.ContentLength)
				_, _ = resp.Body.Read(body)
				return resp.StatusCode, strings.TrimSuffix(strings.TrimPrefix(string(body), `{"seen":"`), `"}`)
			}
			_, seen := poll("")
			began := time.Now()
			if status, _ := poll(seen); status != 204 || time.Since(began) < 1300*time.Millisecond {
				t.Errorf("%d after %s", status, time.Since(began))
			}
		})
	}
}

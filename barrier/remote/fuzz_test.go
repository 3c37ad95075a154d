package remote_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// Whatever a request says, the handler answers in its manner, and nothing reaches the store that the credentials do
// not allow.
func FuzzRequests(f *testing.F) {
	seeds := 0
	for _, r := range matrix {
		_, path, _ := strings.Cut(r.path, " ")
		path, query, _ := strings.Cut(path, "?")
		for who := range principals {
			f.Add(strings.Fields(r.path)[0], path, query, uint8(who), []byte(r.body))
			seeds++
		}
	}
	for _, body := range []string{
		``, `{`, `null`, `[]`, `{"token":1,"token":1}`, `{"token":1e99}`, "{\"reason\":\"\xff\"}", `{"rollout":null}`, `{"by":{"member":"a","boot":"b","token":1}}`,
		`{"member":"a","Member":"b"}`, `{"\u006dember":"b"}`, strings.Repeat("[", 20000),
	} {
		for _, rt := range remote.Routes() {
			f.Add(rt.Method, rt.Path, "", uint8(0), []byte(body))
			seeds++
		}
	}
	if seeds < 200 {
		f.Fatalf("%d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, method, path, query string, who uint8, body []byte) {
		s := newSpy()
		h := remote.NewHandler(s.backend(), authorize, remote.Options{Wait: time.Microsecond})
		defer h.Close()
		p := principals[int(who)%len(principals)].p
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, ContentLength: int64(len(body)),
			Body: http.NoBody,
		}
		if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.Header.Set("Authorization", "Bearer "+credential(p))
		r.Header.Set("Barrier-Request", "word")
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPut {
			r.Header.Set("Content-Type", "application/octet-stream")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)

		answer := w.Body.Bytes()
		if w.Header().Get("Barrier-Answer") != "word" {
			t.Errorf("%d without the word", w.Code)
		}
		switch w.Code {
		case 200:
			if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && json.Unmarshal(answer, new(any)) != nil {
				t.Errorf("answered %q", answer)
			}
		case 204:
			if path != "/watch" || len(answer) > 0 {
				t.Errorf("204 at %s with %q", path, answer)
			}
		case 400, 403, 404, 405:
			var p struct {
				Title, Code, Detail string
				Status              int
			}
			err := json.Unmarshal(answer, &p, json.MatchCaseInsensitiveNames(true))
			if err != nil || p.Status != w.Code || p.Code == "" || len(answer) > remote.MaxAnswer {
				t.Errorf("%d: %.500q: %v", w.Code, answer, err)
			}
		default:
			t.Errorf("answered %d %.500q", w.Code, answer)
		}
		for _, c := range s.took() {
			if !allowed(p, c) {
				t.Errorf("%+v reached the store with %+v", p, c)
			}
		}
	})
}

// allowed says whether a call with p's credentials may reach the store: the rule, written down once more.
func allowed(p remote.Principal, c seen) bool {
	switch c.method {
	case "Look":
		return c.args[0] == p.Member && p.Member != "" || p.Coordinator || p.Operator != ""
	case "Watch":
		return p.Coordinator || p.Operator != "" || p.Member != "" && c.args[0] == barrier.TopicHead
	case "Join":
		return c.args[0] == p.Member && p.Member != ""
	case "Ack", "Nack", "Converge", "Withdraw":
		return c.args[1] == p.Member && p.Member != ""
	case "Abort", "Revert":
		by := c.args[1].(barrier.Authority)
		return (by.Member == "" && by.Boot == "" || by.Member == p.Member && p.Member != "") &&
			(by.Token == 0 || p.Coordinator) && (by.Operator == "" || by.Operator == p.Operator)
	case "Propose":
		return p.Coordinator || p.Operator != "" && c.args[0].(barrier.Proposal).Proposer == p.Operator
	case "Current", "SetRoster", "AdoptBaseline", "Put":
		return p.Coordinator || p.Operator != ""
	case "Get":
		return p.Coordinator || p.Member != "" && c.args[0] == barrier.Digest("test:named")
	default:
		return p.Coordinator
	}
}

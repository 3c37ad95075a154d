package web

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What is refused before anything was made of the request is logged with who asked for what.
func TestAccessLogOfWhatIsRefused(t *testing.T) {
	var out bytes.Buffer
	n := startNode(t, func(c *Config) { c.AccessLog = slog.New(slog.NewJSONHandler(&out, nil)) })
	n.publish(site("192.0.2.1:80"))
	r := httptest.NewRequest("GET", "http://unknown.test/x?y", nil)
	r.RemoteAddr, r.RequestURI = "[::ffff:198.51.100.7]:4711", "/x?y"
	r.URL.Scheme, r.URL.Host = "", ""
	n.Server.serve(httptest.NewRecorder(), r, nil)
	var got struct {
		Client, Path string
		Status       int
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Client != "198.51.100.7" || got.Path != "/x" || got.Status != 404 {
		t.Errorf("%+v, %v: %s", got, err, &out)
	}
}

// A field's value by HTTP/2 has no white space around it, which an origin by HTTP/1.1 would take off.
func TestWhiteSpaceAroundValuesByHTTP2(t *testing.T) {
	for value, refused := range map[string]bool{"": false, "1": false, "a b": false, " 1": true, "1 ": true, "\t1": true, "1\t": true, " ": true} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header = http.Header{"X-B": {"1", value}}
		if text := refusedHTTP2(r); (text != "") != refused {
			t.Errorf("%q: %q", value, text)
		}
	}
}

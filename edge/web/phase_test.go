package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestPhases(t *testing.T) {
	query := "q=2"
	type pass struct {
		path, wantURI string
		status        int
		header        map[string]string // of the answer
		body          string
		sent          map[string]string // of the origin's request
	}
	for _, tc := range []struct {
		name  string
		rules []func(*zone.Zone)
		asks  []pass
	}{
		{
			"redirect answers first, keeps the query when told",
			[]func(*zone.Zone){
				rule(zone.PhaseRedirect, `http.path == "/old"`, zone.ActionRedirect, zone.Parameters{Location: "https://new.example.com/x"}),
				rule(zone.PhaseRedirect, `http.path == "/keep"`, zone.ActionRedirect, zone.Parameters{Location: "/kept?a=1#f", Status: 308, PreserveQuery: true}),
				rule(zone.PhaseRedirect, `http.path.startsWith("/k")`, zone.ActionRedirect, zone.Parameters{Location: "/second"}),
				rule(zone.PhaseCustom, `http.path == "/old"`, zone.ActionBlock, zone.Parameters{}),
			},
			[]pass{
				{path: "/old?q=1", status: 302, header: map[string]string{"Location": "https://new.example.com/x", "Cache-Control": "no-store"}},
				{path: "/keep?q=1", status: 308, header: map[string]string{"Location": "/kept?a=1&q=1#f", "Cache-Control": "private, max-age=3600"}},
				{path: "/keep", status: 308, header: map[string]string{"Location": "/kept?a=1#f"}},
				{path: "/kx", status: 302, header: map[string]string{"Location": "/second"}},
				{path: "/other", status: 200, wantURI: "/other"},
			},
		},
		{
			"skip ends the phase, or passes over others",
			[]func(*zone.Zone){
				rule(zone.PhaseRedirect, `http.path == "/skip"`, zone.ActionSkip, zone.Parameters{}),
				rule(zone.PhaseRedirect, `http.path == "/free"`, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseCustom, zone.PhaseTransformResponse}}),
				rule(zone.PhaseRedirect, `http.path == "/skip"`, zone.ActionRedirect, zone.Parameters{Location: "/x"}),
				rule(zone.PhaseCustom, `true`, zone.ActionBlock, zone.Parameters{}),
				rule(zone.PhaseTransformResponse, `true`, zone.ActionSetHeader, zone.Parameters{Name: "X-Answer", Value: "1"}),
			},
			[]pass{
				{path: "/skip", status: 403},
				{path: "/free", status: 200, wantURI: "/free", header: map[string]string{"X-Answer": ""}},
				{path: "/x", status: 403},
			},
		},
		{
			"skip of a phase from within it ends it",
			[]func(*zone.Zone){
				rule(zone.PhaseCustom, `http.path == "/free"`, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseCustom, zone.PhaseTransformResponse}}),
				rule(zone.PhaseCustom, `http.path == "/other"`, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseTransformResponse}}),
				rule(zone.PhaseCustom, `true`, zone.ActionBlock, zone.Parameters{}),
			},
			[]pass{{path: "/free", status: 200, wantURI: "/free"}, {path: "/other", status: 403}},
		},
		{
			"custom blocks, allow ends it, log does not",
			[]func(*zone.Zone){
				rule(zone.PhaseCustom, `true`, zone.ActionLog, zone.Parameters{}),
				rule(zone.PhaseCustom, `http.path == "/good"`, zone.ActionAllow, zone.Parameters{}),
				rule(zone.PhaseCustom, `http.path == "/teapot"`, zone.ActionBlock, zone.Parameters{Status: 418, Body: "{}", ContentType: "application/json"}),
				rule(zone.PhaseCustom, `http.path == "/plain"`, zone.ActionBlock, zone.Parameters{Body: "no"}),
				rule(zone.PhaseCustom, `http.path != "/fine"`, zone.ActionBlock, zone.Parameters{}),
			},
			[]pass{
				{path: "/good", status: 200, wantURI: "/good"},
				{path: "/teapot", status: 418, body: "{}", header: map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}},
				{path: "/plain", status: 403, body: "no", header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
				{path: "/bad", status: 403, body: "403 Forbidden\nThis request is not allowed.\n"},
				{path: "/fine", status: 200, wantURI: "/fine"},
			},
		},
		{
			"later phases and the origin see what was rewritten",
			[]func(*zone.Zone){
				rule(zone.PhaseTransformRequest, `http.path == "/a"`, zone.ActionRewrite, zone.Parameters{Path: "/b"}),
				rule(zone.PhaseTransformRequest, `http.path == "/b"`, zone.ActionRewrite, zone.Parameters{Query: &query}),
				rule(zone.PhaseTransformRequest, `http.query == "q=2"`, zone.ActionSetHeader, zone.Parameters{Name: "x-step", Value: "three"}),
				rule(zone.PhaseTransformRequest, `http.headers["x-step"] == "three"`, zone.ActionRemoveHeader, zone.Parameters{Name: "X-Gone"}),
				rule(zone.PhaseCustom, `http.uri == "/a"`, zone.ActionBlock, zone.Parameters{}),
			},
			[]pass{
				{path: "/a?q=1", status: 200, wantURI: "/b?q=2", sent: map[string]string{"X-Step": "three", "X-Gone": ""}},
				{path: "/c?q=1", status: 200, wantURI: "/c?q=1", sent: map[string]string{"X-Step": "", "X-Gone": "here"}},
			},
		},
		{
			"the answer's header",
			[]func(*zone.Zone){
				rule(zone.PhaseTransformResponse, `http.path == "/h"`, zone.ActionSetHeader, zone.Parameters{Name: "x-frame-options", Value: "DENY"}),
				rule(zone.PhaseTransformResponse, `true`, zone.ActionRemoveHeader, zone.Parameters{Name: "X-Powered-By"}),
			},
			[]pass{
				{path: "/h", status: 200, wantURI: "/h", header: map[string]string{"X-Frame-Options": "DENY", "X-Powered-By": "", "X-Kept": "1"}},
				{path: "/i", status: 200, wantURI: "/i", header: map[string]string{"X-Frame-Options": ""}},
			},
		},
		{
			"rules of phases that this node does not run are carried",
			[]func(*zone.Zone){
				rule(zone.PhaseCache, `true`, zone.ActionCache, zone.Parameters{Bypass: true}),
			},
			[]pass{{path: "/1", status: 200, wantURI: "/1"}, {path: "/2", status: 200, wantURI: "/2"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Powered-By", "x")
				w.Header().Set("X-Kept", "1")
			})
			n := startNode(t)
			n.publish(site(o.address(), tc.rules...))
			for _, ask := range tc.asks {
				got := n.get(ask.path, "X-Gone: here")
				if got.status != ask.status || ask.body != "" && got.body != ask.body {
					t.Errorf("%s: got %+v, want %d", ask.path, got, ask.status)
				}
				for name, want := range ask.header {
					if got.header.Get(name) != want {
						t.Errorf("%s: %s: %q, want %q", ask.path, name, got.header.Get(name), want)
					}
				}
				reached := o.take()
				if ask.wantURI == "" {
					if len(reached) != 0 {
						t.Errorf("%s: the origin got %+v", ask.path, reached)
					}
					continue
				}
				if len(reached) != 1 || reached[0].uri != ask.wantURI {
					t.Errorf("%s: the origin got %+v, want %s", ask.path, reached, ask.wantURI)
					continue
				}
				for name, want := range ask.sent {
					if reached[0].header.Get(name) != want {
						t.Errorf("%s: the origin got %s: %q, want %q", ask.path, name, reached[0].header.Get(name), want)
					}
				}
			}
		})
	}
}

func TestWhichOriginServes(t *testing.T) {
	named := func(name string) *origin {
		return startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Origin", name) })
	}
	routed, balanced, fallback := named("routed"), named("balanced"), named("default")
	n := startNode(t)
	z := site(balanced.address(), rule(zone.PhaseOrigin, `http.path == "/routed"`, zone.ActionRoute, zone.Parameters{Pool: "routed"}))
	z.Pools["routed"] = zone.Pool{Origins: []zone.Origin{{Name: "r", Address: routed.address()}}}
	z.Records = append(z.Records, record("plain.example.com", "192.0.2.1"))
	z.Records[len(z.Records)-1].Proxied = false
	other := &zone.Zone{ID: "0190c1d2-0000-7000-8000-00000000000a", Name: zone.MustName("example.net"), Records: []zone.Record{record("www.example.net", "192.0.2.1")}}
	n.publish(z, other)
	ask := func(host, path string) string {
		got := n.ask("GET", host, path)
		if got.status != 200 {
			return http.StatusText(got.status)
		}
		return got.header.Get("X-Origin")
	}
	for _, tc := range []struct{ host, path, want string }{
		{"www.example.com", "/routed", "routed"},
		{"plain.example.com", "/routed", "routed"},
		{"www.example.com", "/", "balanced"},
		{"a.wild.example.com", "/", "balanced"},
		{"a.b.wild.example.com", "/", "balanced"},
		{"plain.example.com", "/", "Not Found"},
		{"none.example.com", "/", "Not Found"},
		{"www.example.org", "/", "Not Found"},
		{"192.0.2.1", "/", "Not Found"},
		{"[2001:db8::1]", "/", "Not Found"},
	} {
		if got := ask(tc.host, tc.path); got != tc.want {
			t.Errorf("%s%s: got %s, want %s", tc.host, tc.path, got, tc.want)
		}
	}
	z = site(balanced.address())
	z.Pools["default"] = zone.Pool{Origins: []zone.Origin{{Name: "d", Address: fallback.address()}}}
	z.Records = append(z.Records, record("other.example.com", "192.0.2.1"))
	n.publish(z, other)
	if got := ask("other.example.com", "/"); got != "default" {
		t.Errorf("with a default pool: got %s", got)
	}
	if got := ask("www.example.com", "/"); got != "balanced" {
		t.Errorf("with a default pool and a balancer: got %s", got)
	}
}

func TestErrorPages(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "the origin's own", http.StatusForbidden) })
	n := startNode(t)
	n.publish(site(o.address(), rule(zone.PhaseCustom, `http.path == "/no"`, zone.ActionBlock, zone.Parameters{}),
		func(z *zone.Zone) {
			z.Settings.ErrorPages = map[string]string{"403": "<h1>No</h1>", "404": "<h1>Where?</h1>"}
			z.Settings.VersionHeader = true
		}))
	for _, tc := range []struct{ host, path, want string }{
		{"www.example.com", "/no", "<h1>No</h1>"},
		{"none.example.com", "/", "<h1>Where?</h1>"},
		{"www.example.com", "/", "the origin's own\n"},
	} {
		got := n.ask("GET", tc.host, tc.path)
		if got.body != tc.want || got.header.Get("X-Guardyn-Version") != "1" {
			t.Errorf("%s%s: got %+v, want %q", tc.host, tc.path, got, tc.want)
		}
		if html := strings.HasPrefix(tc.want, "<"); html != strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s%s: Content-Type %s", tc.host, tc.path, got.header.Get("Content-Type"))
		}
	}
	if got := n.ask("HEAD", "www.example.com", "/no"); got.status != 403 {
		t.Errorf("HEAD: got %+v", got)
	}
}

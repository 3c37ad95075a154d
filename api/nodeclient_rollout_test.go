package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// answerWith is an answer with a body of the given bytes.
func answerWith(r *http.Request, status int, h http.Header, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}
}

// What a node holds need not be sent, and an empty body means that only to one that said what it holds.
func TestNodeClientHeld(t *testing.T) {
	const held = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	for _, row := range []struct {
		name, held, trial, body string
		isHeld                  bool
		payload                 int
	}{
		{name: "left out", held: held, trial: "0190f6a0-0000-7000-8000-0000000000ff", isHeld: true},
		{name: "sent all the same", held: held, body: "payload", payload: 7},
		{name: "empty for one who holds nothing", payload: 0},
		{name: "nothing held", body: "payload", payload: 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
				q := r.URL.Query()
				if q.Get("held") != row.held || q.Get("trial") != row.trial || q.Has("held") != (row.held != "") || q.Has("trial") != (row.trial != "") {
					t.Errorf("asks %s", r.URL.RawQuery)
				}
				return answerWith(r, http.StatusOK, artefactHeader(), row.body), nil
			})
			a, err := c.Poll(t.Context(), nodeproto.Poll{Held: row.held, Trial: row.trial})
			if err != nil {
				t.Fatal(err)
			}
			if a.Held != row.isHeld || a.Artefact == nil || len(a.Artefact.Payload) != row.payload {
				t.Errorf("answer %+v", a)
			}
		})
	}
}

func TestNodeClientSelf(t *testing.T) {
	c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/v1/node/self" || r.Header.Get("Authorization") != "Bearer gdn_x" {
			t.Errorf("asks %s", r.URL)
		}
		return answerWith(r, http.StatusOK, http.Header{"Content-Type": {"application/json"}}, `{"id":"u","name":"edge-1","cohort":true,"news":1}`), nil
	})
	self, err := c.Self(t.Context())
	if err != nil || self != (nodeproto.Self{ID: "u", Name: "edge-1", Cohort: true}) {
		t.Errorf("%+v, %v", self, err)
	}
}

func TestNodeClientCandidate(t *testing.T) {
	edit := func(f func(http.Header)) http.Header {
		h := artefactHeader()
		h.Del(seal.HeaderActivation)
		h.Set(headerMargin, "150")
		f(h)
		return h
	}
	for _, row := range []struct {
		name   string
		status int
		header http.Header
		body   string
		says   string
		is     error
		code   string // of a refusal
	}{
		{name: "whole", status: 200, header: edit(func(http.Header) {}), body: "payload"},
		{name: "none", status: 404, header: http.Header{}, is: barrier.ErrNoArtefact},
		{name: "not now", status: 503, header: http.Header{}, says: "Service Unavailable"},
		{name: "activated", status: 200, header: edit(func(h http.Header) { h.Set(seal.HeaderActivation, "x") }), code: seal.CodeEnvelopeMismatch},
		{name: "empty activation", status: 200, header: edit(func(h http.Header) { h[http.CanonicalHeaderKey(seal.HeaderActivation)] = []string{""} }), code: seal.CodeEnvelopeMismatch},
		{name: "unsigned", status: 200, header: edit(func(h http.Header) { h.Del(seal.HeaderSignature) }), code: seal.CodeUnsigned},
		{name: "no margin", status: 200, header: edit(func(h http.Header) { h.Del(headerMargin) }), says: headerMargin},
		{name: "margin over all", status: 200, header: edit(func(h http.Header) { h.Set(headerMargin, "10001") }), says: headerMargin},
		{name: "two margins", status: 200, header: edit(func(h http.Header) { h.Add(headerMargin, "1") }), code: seal.CodeEnvelopeMismatch},
		{name: "something else", status: 200, header: http.Header{"Content-Type": {"text/html"}}, says: "text/html"},
		{name: "too large", status: 200, header: edit(func(http.Header) {}), body: strings.Repeat("x", 65), code: seal.CodeTooLarge},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
				if r.URL.Path != "/v1/node/candidate" || r.URL.Query().Get("digest") != "content:ab" || r.Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("asks %s", r.URL)
				}
				return answerWith(r, row.status, row.header, row.body), nil
			})
			c.maxPayload = 64
			got, err := c.Candidate(t.Context(), "content:ab")
			var r *seal.Refusal
			switch {
			case row.is != nil:
				if !errors.Is(err, row.is) {
					t.Errorf("error %v", err)
				}
			case row.code != "":
				if !errors.As(err, &r) || r.Code != row.code {
					t.Errorf("error %v, want %s", err, row.code)
				}
			case row.says != "":
				if err == nil || errors.Is(err, barrier.ErrNoArtefact) || !strings.Contains(err.Error(), row.says) {
					t.Errorf("error %v, want %q", err, row.says)
				}
			case err != nil || got.Version != 3 || got.Margin != 150 || string(got.Payload) != "payload":
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

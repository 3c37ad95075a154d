package dynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// request is one that a store sends.
type request struct {
	operation string // "PutItem"
	body      string // JSON
	n         int    // how many of its operation were sent before
}

// writes tells whether it can change the table.
func (r request) writes() bool {
	switch r.operation {
	case "PutItem", "TransactWriteItems", "DeleteItem", "BatchWriteItem", "UpdateItem":
		return true
	}
	return false
}

// fate is what becomes of a request.
type fate func(wire *wire, req *http.Request) (*http.Response, error)

var errBroken = errors.New("the connection broke")

// pass lets it through.
func pass(w *wire, req *http.Request) (*http.Response, error) { return w.next.RoundTrip(req) }

// lose breaks the connection before the request arrives.
func lose(*wire, *http.Request) (*http.Response, error) { return nil, errBroken }

// forget breaks it after the server has done what was asked.
func forget(w *wire, req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return nil, errBroken
}

// hang answers nothing until the caller has had enough.
func hang(_ *wire, req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// answer gives an error in the server's stead.
func answer(status int, code, more string) fate {
	return func(*wire, *http.Request) (*http.Response, error) {
		return respond(status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","Message":"by the test"%s}`, code, more)), nil
	}
}

func respond(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// wire is the network between a store and the server; decide, when it is not nil, is asked for each request's fate.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	decide func(request) fate
	sent   map[string]int
	log    []request
}

func newWire() *wire {
	return &wire{next: http.DefaultTransport, sent: map[string]int{}}
}

// use is for testdynamo.Client.
func (w *wire) use(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: w} }

// set makes f decide from now on, and counts anew.
func (w *wire) set(f func(request) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decide, w.sent, w.log = f, map[string]int{}, nil
}

// requests returns what was sent since set.
func (w *wire) requests() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log
}

// writes counts the requests since set that can change the table.
func (w *wire) writes() int {
	n := 0
	for _, r := range w.requests() {
		if r.writes() {
			n++
		}
	}
	return n
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	r := request{operation: operation, body: string(body), n: w.sent[operation]}
	w.sent[operation]++
	w.log = append(w.log, r)
	decide := w.decide
	w.mu.Unlock()
	f := fate(pass)
	if decide != nil {
		f = decide(r)
	}
	return f(w, req)
}

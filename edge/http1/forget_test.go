package http1

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"
)

// A connection that waits for its next request holds nothing of the last one's head, nor of the answer's: 60 KiB of each would be
// a gigabyte over the connections that a node has.
func TestConnectionThatWaitsForgets(t *testing.T) {
	var asked, told weak.Pointer[byte]
	_, address := start(t, func(w *Response, r *http.Request) {
		value := strings.Repeat("y", 60<<10)
		asked, told = weak.Make(unsafe.StringData(r.Header["A"][0])), weak.Make(unsafe.StringData(value))
		w.Header()["B"] = []string{value}
		w.Header()["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusOK)
	})
	c := dial(t, address)
	if _, err := io.WriteString(c, get+"A: "+strings.Repeat("x", 60<<10)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for got, end := 0, 61<<10; got < end; {
		n, err := c.Read(make([]byte, 4<<10))
		if got += n; err != nil {
			t.Fatalf("after %d octets: %v", got, err)
		}
		end = max(60<<10, got) // that and a little more has come
	}
	// The connection goes on to wait a moment after its client has the answer.
	for range 1000 {
		runtime.GC()
		if asked.Value() == nil && told.Value() == nil {
			return
		}
	}
	t.Errorf("held: the request's head %v, the answer's %v", asked.Value() != nil, told.Value() != nil)
}

func TestHeaderOfManyFieldsIsNotKept(t *testing.T) {
	few, many := make(http.Header), make(http.Header)
	for i := range fewFields + 1 {
		name := "A" + strings.Repeat("a", i)
		if many[name] = []string{"b"}; i < fewFields {
			few[name] = []string{"b"}
		}
	}
	same := func(a, b http.Header) bool {
		a["Same"] = nil
		_, ok := b["Same"]
		return ok
	}
	if h := emptied(few); len(h) != 0 || !same(h, few) {
		t.Errorf("of a header of %d fields %v is kept", fewFields, h)
	}
	if h := emptied(many); len(h) != 0 || same(h, many) {
		t.Errorf("a header of %d fields is kept: %v", fewFields+1, h)
	}
}

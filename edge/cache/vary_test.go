package cache

import (
	"net/http"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// TestLateAnswerByOtherFields: an answer that came first and was whole last does not push out what came after it.
func TestLateAnswerByOtherFields(t *testing.T) {
	c := New(MinMemory)
	p := policyOf(t, zone.CachePolicy{})
	asked := &Asked{Header: http.Header{"Cookie": {"a"}}, Generation: 1}
	judged := func(received time.Time, fields ...string) *Object {
		h := answer(append(fields, "Cache-Control", "max-age=3600")...)
		h.Received = received
		o, why := p.Judge(asked, h)
		if o == nil {
			t.Fatal(why)
		}
		o.setBody(nil)
		return o
	}
	varies, before := judged(noon.Add(time.Second), "Vary", "Cookie"), judged(noon)
	if c.put(*key("/"), varies) != "" {
		t.Error("the answer that varies is not stored")
	}
	if c.put(*key("/"), before) != ReasonOvertaken {
		t.Error("the one that came before it is stored")
	}
	if got := c.Lookup(key("/"), p, &Asked{Header: http.Header{}}, noon.Add(2*time.Second)); got.Outcome != Unselected {
		t.Errorf("another request finds %d", got.Outcome)
	}
}

package host_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// A snapshot that is over its own ceilings is refused by nodes although it is sealed and activated by the right key, since a control
// plane can be at fault; what was served is served on, and the control plane is told why.
func TestSnapshotOverItsCeilings(t *testing.T) {
	key := signingKey(t)
	trusted, err := seal.Trust(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	name := zone.MustName("example.test")
	content := func(texts ...string) *zone.Zone {
		z := &zone.Zone{ID: "0190f6a0-0000-7000-8000-000000000001", Name: name, Ceilings: zone.Ceilings{Records: len(texts)}}
		for _, text := range texts {
			r, err := zone.ParseRecord(name, "v", "TXT", text, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			z.Records = append(z.Records, r)
		}
		return z
	}
	built := func(version uint64, z *zone.Zone) *snapshot.Snapshot {
		s, _, err := snapshot.Build(snapshot.Input{
			Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}, Now: time.Unix(0, 0),
		}, snapshot.Meta{Version: version, CreatedAt: time.Unix(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	good, sound := built(1, content("one")), built(2, content("two", "three"))
	doc := bytes.Replace(sound.JSON(), []byte(`"ceilings":{"records":2}`), []byte(`"ceilings":{"records":1}`), 1)
	_, zones, _ := bytes.Cut(doc, []byte(`"zones":`))
	sum := blake3.Sum256(bytes.TrimSuffix(zones, []byte("}")))
	faulty, err := snapshot.Parse(bytes.Replace(doc, []byte(sound.ContentHash()), []byte(hex.EncodeToString(sum[:])), 1), nil)
	if err != nil {
		t.Fatal(err)
	}

	plane := &lyingControlPlane{t: t, acks: make(chan nodeproto.Ack, 16), offers: make(chan seal.Artefact, 2), key: key}
	server := httptest.NewServer(plane)
	defer server.Close()
	node, err := host.StartEdge(t.Context(), host.EdgeConfig{
		APIURL: server.URL, Token: "gdn_" + fmt.Sprintf("%064x", 1), PublicKeys: trusted, StateDir: t.TempDir(),
		DNSAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0", Interval: time.Millisecond, Wait: 50 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	plane.offer(1, good)
	if ack := plane.ack(func(a nodeproto.Ack) bool { return a.Version == 1 }); ack.Error != nil {
		t.Fatalf("the first: %+v", ack.Error)
	}
	plane.offer(2, faulty)
	ack := plane.ack(func(a nodeproto.Ack) bool { return a.Error != nil })
	if ack.Version != 1 || ack.Error.Code != "compile_failed" || ack.Error.Version != 2 ||
		!strings.Contains(ack.Error.Message, "zone example.test: ceiling records: it has 2 records, at most 1") {
		t.Errorf("acknowledged %+v, error %+v", ack, ack.Error)
	}
	q := new(dns.Msg).SetQuestion("v.example.test.", dns.TypeTXT)
	answer, _, err := (&dns.Client{Net: "tcp"}).Exchange(q, node.DNSAddr())
	if err != nil || len(answer.Answer) != 1 || answer.Answer[0].(*dns.TXT).Txt[0] != "one" {
		t.Errorf("what is served: %v %v", err, answer)
	}
	plane.offer(3, built(3, content("good again")))
	plane.ack(func(a nodeproto.Ack) bool { return a.Version == 3 && a.Error == nil })
}

// lyingControlPlane offers what a test gives it, sealed by the right key.
type lyingControlPlane struct {
	t      *testing.T
	key    seal.SigningKey
	offers chan seal.Artefact
	acks   chan nodeproto.Ack
}

func (c *lyingControlPlane) offer(version uint64, s *snapshot.Snapshot) {
	c.t.Helper()
	sealed, err := seal.Seal(c.key, s)
	if err != nil {
		c.t.Fatal(err)
	}
	signed, err := seal.Activate(c.key, sealed, seal.Activation{
		Platform: "0190f6a0-0000-7000-8000-000000000000", Epoch: 1, Generation: version, Kind: seal.KindApply,
		ParentGeneration: version - 1, IssuedAt: time.Unix(int64(version), 0),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.offers <- seal.Artefact{Sealed: sealed, Activation: signed}
}

// ack waits for an acknowledgement of that kind.
func (c *lyingControlPlane) ack(is func(nodeproto.Ack) bool) nodeproto.Ack {
	c.t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		select {
		case a := <-c.acks:
			if is(a) {
				return a
			}
		case <-late.C:
			c.t.Fatal("no such acknowledgement within a minute")
		}
	}
}

func (c *lyingControlPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var a nodeproto.Ack
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			c.t.Error(err)
		}
		c.acks <- a
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/node/config") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	select {
	case o := <-c.offers:
		if nonce := r.URL.Query().Get("nonce"); nonce != "" {
			fresh, err := seal.SignFreshness(c.key, seal.FreshnessStatement{
				Nonce: nonce, Epoch: 1, Generation: o.Version, ContentHash: o.ContentHash, IssuedAt: time.Now(),
			})
			if err != nil {
				c.t.Error(err)
			}
			w.Header().Set(seal.HeaderFreshness, fresh)
		}
		seal.WriteHeader(w.Header(), o)
		_, _ = w.Write(o.Payload)
	case <-r.Context().Done():
	}
}

package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// The certificate that ends first is known after each swap, and all zones are only passed over when that one went.
func TestExpiry(t *testing.T) {
	identity := newIdentity(t)
	secrets, err := ParseIdentities(identity.String())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed := sealedTo(t, identity.Recipient(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	now := time.Now().Truncate(time.Second)
	serial := int64(0)
	host := func(name string, days int) zone.TLSHost {
		serial++
		template := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, days), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return zone.TLSHost{Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), SealedKey: sealed}
	}
	zones := map[string]*zone.Zone{}
	put := func(name string, days ...int) {
		z := &zone.Zone{Name: zone.MustName(name), TLSHosts: map[zone.Name]zone.TLSHost{}}
		for i, d := range days {
			h := fmt.Sprintf("h%d.%s", i, name)
			z.TLSHosts[zone.MustName(h)] = host(h, d)
		}
		zones[name] = z
	}
	var x expiry
	var live *edge.View
	for i, step := range []struct {
		name  string
		edit  func()
		days  int // until the first end; 0: no certificate
		whole int // passes over all zones so far
	}{
		{"no zone has any", func() { put("a.example"); put("b.example") }, 0, 0},
		{"the first", func() { put("a.example", 30) }, 30, 0},
		{"a later one", func() { put("b.example", 40, 50) }, 30, 0},
		{"an earlier one", func() { put("c.example", 20) }, 20, 0},
		{"another setting, the same certificate", func() {
			z := *zones["c.example"]
			z.Settings.AlwaysHTTPS = true
			zones["c.example"] = &z
		}, 20, 0},
		{"a later one goes", func() { put("b.example", 40) }, 20, 0},
		{"the first is renewed", func() { put("c.example", 90) }, 30, 1},
		{"the zone of the first goes", func() { delete(zones, "a.example") }, 40, 2},
		{"all go", func() { clear(zones); put("d.example") }, 0, 3},
		{"one comes again", func() { put("d.example", 10) }, 10, 3},
	} {
		step.edit()
		in := snapshot.Input{Now: now}
		for name, z := range zones {
			if z.ID == "" {
				z.ID = zone.ID(fmt.Sprintf("0190c1d2-0000-7000-8000-%012d", name[0]))
			}
			if err := z.Normalize(); err != nil {
				t.Fatal(err)
			}
			in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z.Served()})
		}
		s, _, err := snapshot.Build(in, snapshot.Meta{Version: uint64(i + 1), CreatedAt: now})
		if err != nil {
			t.Fatal(err)
		}
		v, err := edge.Compile(live, s, uint64(i+1), edge.Options{Secrets: secrets})
		if err != nil {
			t.Fatal(err)
		}
		x.swapped(live, v)
		live = v
		want := time.Time{}
		if step.days > 0 {
			want = now.AddDate(0, 0, step.days)
		}
		if got := x.first(); !got.Equal(want) || x.passes != step.whole {
			t.Errorf("%s: ends %s after %d passes, want %s after %d", step.name, got, x.passes, want, step.whole)
		}
	}
}

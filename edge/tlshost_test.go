package edge_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// identity opens what is sealed to it, and counts.
type identity struct {
	*age.X25519Identity
	unsealed atomic.Int32
}

func newIdentity(t *testing.T) *identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return &identity{X25519Identity: id}
}

func (i *identity) Unseal(armoured string) ([]byte, error) {
	i.unsealed.Add(1)
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(armoured)), i)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (i *identity) seal(t *testing.T, plain []byte) string {
	t.Helper()
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, i.Recipient())
	if err == nil {
		_, err = w.Write(plain)
	}
	if err != nil || w.Close() != nil || a.Close() != nil {
		t.Fatal("seal: ", err)
	}
	return out.String()
}

// pair makes a key and a certificate of its own for names, until end.
func pair(t *testing.T, end time.Time, names ...string) (certificate string, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, crypto.Signer(key).Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func tlsSnapshot(t *testing.T, version uint64, now time.Time, zones ...*zone.Zone) *snapshot.Snapshot {
	t.Helper()
	in := snapshot.Input{Now: now}
	for i, z := range zones {
		z.ID = zone.ID(fmt.Sprintf("0190c1d2-0000-7000-8000-%012d", i+1))
		if err := z.Normalize(); err != nil {
			t.Fatal(err)
		}
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z.Served()})
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: version, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tlsZone(name string, hosts map[string]zone.TLSHost) *zone.Zone {
	z := &zone.Zone{Name: zone.MustName(name), TLSHosts: make(map[zone.Name]zone.TLSHost)}
	for h, v := range hosts {
		z.TLSHosts[zone.MustName(h)] = v
	}
	return z
}

// TestKeysThatDoNotOpen: a snapshot with a key that cannot serve does not compile, and the error names zone and host.
func TestKeysThatDoNotOpen(t *testing.T) {
	mine, others := newIdentity(t), newIdentity(t)
	now := time.Now()
	cert, key := pair(t, now.Add(time.Hour), "www.example.com")
	_, otherKey := pair(t, now.Add(time.Hour), "www.example.com")
	expired, expiredKey := pair(t, now.Add(-time.Minute), "www.example.com")
	for _, tc := range []struct {
		name    string
		host    zone.TLSHost
		secrets edge.Secrets
		built   time.Time
		want    string // of the error; empty: it compiles
	}{
		{"its own", zone.TLSHost{Certificate: cert, SealedKey: mine.seal(t, key)}, mine, now, ""},
		{"sealed to another fleet", zone.TLSHost{Certificate: cert, SealedKey: others.seal(t, key)}, mine, now, "cannot be unsealed"},
		{"no identity", zone.TLSHost{Certificate: cert, SealedKey: mine.seal(t, key)}, nil, now, "no identity"},
		{"the key of another certificate", zone.TLSHost{Certificate: cert, SealedKey: mine.seal(t, otherKey)}, mine, now, "do not go together"},
		{"no key inside", zone.TLSHost{Certificate: cert, SealedKey: mine.seal(t, []byte("secret-text"))}, mine, now, "do not go together"},
		{"expired since", zone.TLSHost{Certificate: expired, SealedKey: mine.seal(t, expiredKey)}, mine, now.Add(-2 * time.Minute), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tlsSnapshot(t, 1, tc.built, tlsZone("example.com", map[string]zone.TLSHost{"www.example.com": tc.host}), tlsZone("example.net", nil))
			v, err := edge.Compile(nil, s, 1, edge.Options{Secrets: tc.secrets})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if h, z := v.Certificate("www.example.com"); h == nil || z == nil || h.Leaf().DNSNames[0] != "www.example.com" {
					t.Errorf("host %v", h)
				}
				return
			}
			if err == nil || v != nil {
				t.Fatal("it compiles")
			}
			for _, want := range []string{tc.want, "zone example.com: TLS host www.example.com: "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret-text") || strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the error tells what was sealed: %v", err)
			}
		})
	}
}

// TestUnsealedKeysAreShared: a host that did not change is not unsealed again, whatever else of its zone did.
func TestUnsealedKeysAreShared(t *testing.T) {
	id, now := newIdentity(t), time.Now()
	host := func(names ...string) zone.TLSHost {
		cert, key := pair(t, now.Add(time.Hour), names...)
		return zone.TLSHost{Certificate: cert, SealedKey: id.seal(t, key)}
	}
	www, wild := host("www.example.com"), host("*.example.com")
	both := map[string]zone.TLSHost{"www.example.com": www, "*.example.com": wild}
	changed := tlsZone("example.com", both)
	changed.Settings.TLSMinVersion, changed.Settings.TLSCiphers = "1.3", []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
	var v *edge.View
	for i, step := range []struct {
		what     string
		zone     *zone.Zone
		unsealed int32
	}{
		{"first", tlsZone("example.com", both), 2},
		{"another setting", changed, 2},
		{"a new certificate", tlsZone("example.com", map[string]zone.TLSHost{"www.example.com": host("www.example.com"), "*.example.com": wild}), 3},
	} {
		o := edge.Options{}
		if v == nil {
			o.Secrets = id // later views take the old one's
		}
		next, err := edge.Compile(v, tlsSnapshot(t, uint64(i+1), now, step.zone), uint64(i+1), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := id.unsealed.Load(); got != step.unsealed {
			t.Errorf("%s: %d keys unsealed, want %d", step.what, got, step.unsealed)
		}
		if v = next; i == 1 {
			_, z := v.Certificate("www.example.com")
			if z.TLS.MinVersion != tls.VersionTLS13 || len(z.TLS.Ciphers) != 1 || z.TLS.Ciphers[0] != tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 {
				t.Errorf("settings %+v", z.TLS)
			}
		}
	}
	hosts := 0
	v.TLSHosts(func(string, *edge.TLSHost) bool { hosts++; return true })
	if hosts != 2 {
		t.Errorf("%d hosts", hosts)
	}
	for name, want := range map[string]string{
		"www.example.com": "www.example.com", "a.example.com": "*.example.com", "example.com": "", "a.b.example.com": "", "www.example.net": "", "": "",
		"..": "", "*.example.com": "*.example.com",
	} {
		h, _ := v.Certificate(name)
		if (h == nil) != (want == "") || h != nil && h.Leaf().DNSNames[0] != want {
			t.Errorf("%q: %v, want %q", name, h, want)
		}
	}
}

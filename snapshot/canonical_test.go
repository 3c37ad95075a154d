package snapshot

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/zone"
)

// libraryCanonical is what the JSON library makes of a zone: the reference.
func libraryCanonical(t interface{ Fatal(...any) }, z *zone.Zone) []byte {
	b, err := json.Marshal(z, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(b)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return v
}

// filler sets every field of a value by reflection, so that a member that is added to a type of package
// zone and forgotten by the encoder is found.
type filler struct {
	r *rand.Rand
	// each field is left out with this chance in 100
	sparse int
}

var (
	texts = []string{"a", "b c", `q"uo\te`, "<&>", "\x00\x1f\u007f", "é", "\u2028", "😀", "\uE000", "\uFFFD", "tab\tnl\ncr\rbs\bff\f", "/"}
	names = []string{"example.com", "*.example.com", "www.example.com", "a-b.c_d.example.com", "xn--nxasmq6b.example.com"}
)

func (f filler) fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[zone.Name]():
		v.Set(reflect.ValueOf(zone.MustName(names[f.r.IntN(len(names))])))
		return
	case reflect.TypeFor[zone.Mailbox]():
		v.Set(reflect.ValueOf(zone.MustMailbox([]string{"admin.example.com", `john\.doe.example.com`}[f.r.IntN(2)])))
		return
	case reflect.TypeFor[zone.RRType]():
		v.SetUint([]uint64{1, 5, 15, 16, 28, 65280}[f.r.IntN(6)])
		return
	case reflect.TypeFor[zone.Duration]():
		v.SetInt((1 + f.r.Int64N(100_000)) * 1_000_000)
		return
	case reflect.TypeFor[zone.Size]():
		v.SetInt(1 + f.r.Int64N(1<<30))
		return
	case reflect.TypeFor[zone.Percent]():
		v.SetUint(f.r.Uint64N(10_001))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f.r.IntN(100) >= f.sparse {
				f.fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(texts[f.r.IntN(len(texts))] + texts[f.r.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1 + f.r.Int64N(100_000))
	case reflect.Uint32, reflect.Uint8, reflect.Uint16:
		v.SetUint(1 + f.r.Uint64N(250))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		n := 1 + f.r.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + f.r.IntN(4) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(k)
			f.fill(e)
			v.SetMapIndex(k, e)
		}
	default:
		panic("no filler for " + v.Type().String())
	}
}

func sameAsLibrary(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, z *zone.Zone,
) {
	// The normal form of this TTL is zero, whatever the library prints.
	for i := range z.Records {
		if z.Records[i].TTL == zone.DefaultTTL {
			z.Records[i].TTL++
		}
	}
	got, err := appendZone(nil, z)
	if err != nil {
		t.Fatal(err)
	}
	if want := libraryCanonical(t, z); string(got) != string(want) {
		t.Fatalf("the encoder and the library differ:\n got %s\nwant %s", got, want)
	}
}

func TestCanonicalEveryMember(t *testing.T) {
	var z zone.Zone
	filler{r: rand.New(rand.NewPCG(1, 2))}.fill(reflect.ValueOf(&z).Elem())
	if v := reflect.ValueOf(z); true {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Fatalf("the filler left %s empty", v.Type().Field(i).Name)
			}
		}
	}
	sameAsLibrary(t, &z)
}

func TestCanonicalLikeLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		sparse := rapid.IntRange(0, 100).Draw(t, "sparse")
		var z zone.Zone
		filler{r: rand.New(rand.NewPCG(seed, 0)), sparse: sparse}.fill(reflect.ValueOf(&z).Elem())
		for h, l := range z.LoadBalancers { // the member has no default: [] and absent differ to the library
			if l.Pools == nil {
				l.Pools = []string{}
				z.LoadBalancers[h] = l
			}
		}
		sameAsLibrary(t, &z)
	})
}

func TestCanonicalStringsLikeLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ToValidUTF8(rapid.String().Draw(t, "s"), "")
		z := zone.Zone{
			ID: zone.ID(s), Name: zone.MustName("example.com"),
			Settings: zone.Settings{ErrorPages: rapid.MapOfN(rapid.String(), rapid.String(), 1, -1).Draw(t, "map")},
		}
		sameAsLibrary(t, &z)
	})
}

func TestCanonicalRefuses(t *testing.T) {
	name := zone.MustName("example.com")
	for what, z := range map[string]*zone.Zone{
		"invalid UTF-8 in text":   {Name: name, Records: []zone.Record{{Name: name, Type: zone.TypeTXT, Content: "\xff"}}},
		"invalid UTF-8 in a name": {Name: name, Functions: map[string]zone.Function{"f": {Environment: map[string]string{"\xc3": ""}}}},
		"a number beyond 2^53":    {Name: name, Ceilings: zone.Ceilings{Records: 1 << 53}},
	} {
		t.Run(what, func(t *testing.T) {
			if b, err := appendZone(nil, z); err == nil {
				t.Fatalf("encoded: %s", b)
			}
		})
	}
}

func TestCompareUTF16(t *testing.T) {
	ordered := []string{"", "a", "ab", "b", "\u00e9", "\u20ac", "\ud7ff", "\U00010000", "\U0001F600", "\ue000", "\uffff"}
	for i := range ordered {
		for j := range ordered {
			want := i - j
			got := compareUTF16(ordered[i], ordered[j])
			if (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("compareUTF16(%q, %q) = %d", ordered[i], ordered[j], got)
			}
		}
	}
}

// Equal meanings are equal bytes: empty and nil, a default that is written out and one that is left out.
func TestCanonicalOneFormOfEmpty(t *testing.T) {
	name := zone.MustName("example.com")
	plain := zone.Zone{ID: "i", Name: name, Records: []zone.Record{{Name: name, Type: zone.TypeA, Content: "192.0.2.1"}}}
	want, err := appendZone(nil, &plain)
	if err != nil {
		t.Fatal(err)
	}
	written := plain
	written.Records = []zone.Record{{Name: name, Type: zone.TypeA, Content: "192.0.2.1", TTL: zone.DefaultTTL}}
	written.Rulesets = map[zone.Phase][]zone.Rule{zone.PhaseCustom: {}}
	written.Lists = map[string]zone.List{}
	written.Settings.TLSCiphers = []string{}
	written.CachePolicy.QueryParameters = []string{}
	got, err := appendZone(nil, &written)
	if err != nil || string(got) != string(want) {
		t.Fatalf("got %s (%v), want %s", got, err, want)
	}
	if want := `{"id":"i","name":"example.com","records":[{"content":"192.0.2.1","name":"example.com","type":"A"}]}`; string(got) != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func BenchmarkAppendZone(b *testing.B) {
	z := &zone.Zone{ID: "01890000-0000-7000-8000-000000000000", Name: zone.MustName("example.com")}
	for i := range 10 {
		z.Records = append(z.Records, zone.Record{Name: zone.MustName(fmt.Sprintf("r%d.example.com", i)), Type: zone.TypeA, Content: "192.0.2.1"})
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = appendZone(buf[:0], z)
	}
	b.SetBytes(int64(len(buf)))
}

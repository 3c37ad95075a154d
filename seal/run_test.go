package seal

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// failing is what fixtures need of a test; *rapid.T is no testing.TB.
type failing interface {
	Helper()
	Fatal(...any)
}

// texts is a snapshot of zones with a TXT record for each text.
func texts(tb failing, version uint64, zones map[int][]string) *snapshot.Snapshot {
	tb.Helper()
	var in []snapshot.ZoneInput
	for n, all := range zones {
		name := zone.MustName(fmt.Sprintf("zone%d.example", n))
		z := &zone.Zone{ID: zone.ID(fmt.Sprintf("01890000-0000-7000-8000-%012x", n)), Name: name, Ceilings: zone.Ceilings{Records: 1_000_000}}
		for i, text := range all {
			r, err := zone.ParseRecord(name, fmt.Sprintf("t%d", i), "TXT", text, 0, false)
			if err != nil {
				tb.Fatal(err)
			}
			z.Records = append(z.Records, r)
		}
		in = append(in, snapshot.ZoneInput{Workspace: "w", Zone: z})
	}
	s, _, err := snapshot.Build(snapshot.Input{Zones: in, Now: at}, snapshot.Meta{Version: version, CreatedAt: at, CreatedBy: "ops@example.com"})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// noise is text that does not compress, another for each seed.
func noise(seed, bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "%x", sha256.Sum256(fmt.Append(nil, seed, i)))
	}
	return b.String()[:bytes]
}

// many is n zones of up to nine texts.
func many(n int) map[int][]string {
	zones := map[int][]string{}
	for i := range n {
		for j := range 1 + i%9 {
			zones[i] = append(zones[i], fmt.Sprintf("%s of zone %d", noise(i*10+j, 10+i%50), i))
		}
	}
	return zones
}

// plainly unpacks as somebody does who knows of zstd alone.
func plainly(tb failing, payload []byte) []byte {
	tb.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer dec.Close()
	doc, err := dec.DecodeAll(payload, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return doc
}

// Of any documents, sealed one after another by one Sealer: each payload unpacks to its document for every reader, is what
// a new Sealer makes, and opens.
func TestSealerProperty(t *testing.T) {
	k := key(t, 1)
	trusted := trust(t, k)
	rapid.Check(t, func(t *rapid.T) {
		var c Sealer
		text := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string {
				return noise(rapid.Int().Draw(t, "seed"), rapid.IntRange(1, 4000).Draw(t, "bytes"))
			}),
			// What repeats at the distances that a frame begins with.
			rapid.Custom(func(t *rapid.T) string {
				unit := rapid.StringMatching(`[a-c]{1,8}`).Draw(t, "unit")
				return strings.Repeat(unit, rapid.IntRange(1, 400).Draw(t, "times"))
			}),
			rapid.StringOfN(rapid.RuneFrom([]rune("az09 é漢={}[]:,")), 1, 60, 200),
		)
		zones := rapid.MapOfN(rapid.IntRange(0, 300), rapid.SliceOfN(text, 0, 12), 0, 60).Draw(t, "zones")
		for version := uint64(1); version <= 4; version++ {
			s := texts(t, version, zones)
			sealed, err := c.Seal(k, s)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(plainly(t, sealed.Payload), s.JSON()) {
				t.Fatal("the payload is not of the document")
			}
			if again, err := Seal(k, s); err != nil || !bytes.Equal(again.Payload, sealed.Payload) {
				t.Fatalf("a new Sealer makes another payload: %v", err)
			}
			if _, err := OpenSealed(sealed, trusted); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 3).Draw(t, "edits") {
				at := rapid.IntRange(0, 300).Draw(t, "at")
				if delete(zones, at); rapid.Bool().Draw(t, "put") {
					zones[at] = []string{text.Draw(t, "text")}
				}
			}
		}
	})
}

func TestPayloadOfUnusualDocuments(t *testing.T) {
	tool, _ := exec.LookPath("zstd")
	for _, row := range []struct {
		name  string
		zones map[int][]string
		most  float64 // of the document
	}{
		{"no zones", nil, 2},
		{"one", map[int][]string{7: {"v=spf1 -all"}}, 2},
		{"many", many(2000), 0.7},
		{"one byte, over and over", map[int][]string{1: slices.Repeat([]string{strings.Repeat("a", 60_000)}, 10)}, 0.01},
		{"a zone larger than a run", map[int][]string{1: {noise(1, 60_000), noise(2, 60_000), noise(3, 60_000)}, 2: {"x"}}, 0.7},
		{"a zone larger than what is compressed as one", map[int][]string{1: {"x"}, 2: func() (all []string) {
			for i := range 100 {
				all = append(all, noise(i, 60_000))
			}
			return all
		}(), 3: {"y"}}, 0.7},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := texts(t, 1, row.zones)
			sealed, err := Seal(key(t, 1), s)
			if err != nil {
				t.Fatal(err)
			}
			doc := s.JSON()
			if got := plainly(t, sealed.Payload); !bytes.Equal(got, doc) {
				t.Error("a decoder of zstd unpacks something else")
			}
			if most := row.most * float64(len(doc)); float64(len(sealed.Payload)) > most {
				t.Errorf("%d bytes of a document of %d", len(sealed.Payload), len(doc))
			}
			if tool == "" {
				return // the decoder above is another reader already
			}
			file := filepath.Join(t.TempDir(), "payload.zst")
			if err := os.WriteFile(file, sealed.Payload, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := exec.Command(tool, "-dc", file).Output(); err != nil || !bytes.Equal(got, doc) {
				t.Errorf("zstd -d unpacks %d bytes of %d: %v", len(got), len(doc), err)
			}
		})
	}
}

// What a change leaves of the payload: most of it, byte by byte, wherever it was made.
func TestUnchangedZonesKeepBytes(t *testing.T) {
	const zones = 2000
	base := many(zones)
	before, err := Seal(key(t, 1), texts(t, 1, base))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		at   int
		with []string // nil: the zone is removed
	}{
		{"a zone changed", zones / 2, []string{"changed"}},
		{"the first changed", 0, []string{"changed"}},
		{"the last changed", zones - 1, []string{"changed"}},
		{"a zone removed", zones / 3, nil},
		{"the first removed", 0, nil},
		{"a zone added", zones + 1, []string{"added"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			edited := many(zones)
			if edited[row.at] = row.with; row.with == nil {
				delete(edited, row.at)
			}
			s := texts(t, 2, edited)
			after, err := Seal(key(t, 1), s)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Encode(key(t, 1), after.Payload, before.Payload)
			if err != nil {
				t.Fatal(err)
			}
			// A change may move the ends of the runs that follow, by one run or a few.
			if most := len(after.Payload) / 10; len(c.Body) > most {
				t.Errorf("%d of %d bytes are new", len(c.Body), len(after.Payload))
			}
		})
	}
}

// A run's blocks must not mean something else at another place of a frame.
func TestProver(t *testing.T) {
	p, err := newProver()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(runLevel), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = enc.Close() }()
	compressed := func(doc string) []byte {
		b, ok := inner(enc.EncodeAll([]byte(doc), nil))
		if !ok {
			t.Fatal("not one frame")
		}
		return slices.Clone(b)
	}
	block := func(b ...byte) []byte { return append(appendBlockHeader(nil, blockCompressed, len(b)), b...) }
	const raw4 = 4 << 3 // header of 4 raw literals (RFC 8878 §3.1.1.3.1)
	const oneSymbolEach, end = 1<<6 | 1<<4 | 1<<2, 1
	abcd := func(modes, offset byte, bits ...byte) []byte {
		// One sequence: 4 literals, then 8 bytes from an offset (§3.1.1.3.2).
		return block(append([]byte{raw4, 'a', 'b', 'c', 'd', 1, modes, 4, offset, 5}, bits...)...)
	}
	big := string(texts(t, 1, many(200)).JSON())
	for _, row := range []struct {
		name   string
		blocks []byte
		doc    string
		want   bool
	}{
		{"what the encoder makes", compressed(big), big, true},
		{"raw", appendRaw(nil, []byte("abcd")), "abcd", true},
		{"an offset of its own", abcd(oneSymbolEach, 2, 3|1<<2), "abcdabcdabcd", true}, // 2^2 + 3 - 3
		{"the offset 1 of a frame's begin", abcd(oneSymbolEach, 0, end), "abcddddddddd", false},
		{"the offset 4 of a frame's begin", abcd(oneSymbolEach, 1, 0|end<<1), "abcdabcdabcd", false},
		{"a table of an earlier block", block(raw4, 'a', 'b', 'c', 'd', 1, 3<<6|1<<4|1<<2, 2, 5, 3|1<<2), "abcdabcdabcd", false},
		{"another text", compressed(big), "x" + big[1:], false},
		{"cut short", compressed(big), big[1:], false},
	} {
		if got := p.independent(row.blocks, []byte(row.doc)); got != row.want {
			t.Errorf("%s: independent %v", row.name, got)
		}
	}
	// The rows that must fail at the second step pass the first.
	for name, blocks := range map[string][]byte{"abcddddddddd": abcd(oneSymbolEach, 0, end), "abcdabcdabcd": abcd(oneSymbolEach, 1, 0|end<<1)} {
		p.frame = appendFrameHeader(p.frame[:0], uint32(len(name)), maxPart)
		if !p.unpacks(blocks, 0, []byte(name)) {
			t.Errorf("%s: does not unpack at a frame's begin", name)
		}
	}
	// What cannot be proved is sent as it is.
	if got := p.blocks(enc, []byte(noise(1, 100))); len(got) > 100+blockHeader || len(got) == 0 {
		t.Errorf("%d bytes of 100", len(got))
	}
}

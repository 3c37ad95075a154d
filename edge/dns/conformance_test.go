package dns_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/zone"
)

// conformanceCase is one of testdata/conformance.txt, whose head says how it is written.
type conformanceCase struct {
	name     string
	line     int
	question string
	how      []string
	want     []string
	sections [3][]string
}

// conformance is the whole file.
type conformance struct {
	zones []*zone.Zone
	cases []conformanceCase
}

var (
	repeated     = regexp.MustCompile(`\{([^*{}]+)\*(\d+)\}`)
	sectionNames = [3]string{"answer", "authority", "additional"}
)

func readConformance(t *testing.T) (c conformance) {
	t.Helper()
	text, err := os.ReadFile("testdata/conformance.txt")
	if err != nil {
		t.Fatal(err)
	}
	var lets []string
	var apex string
	var records []string
	endZone := func() {
		if apex != "" {
			c.zones = append(c.zones, newZone(t, 100+len(c.zones), apex, records...))
		}
		apex, records = "", nil
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		line = repeated.ReplaceAllStringFunc(line, func(s string) string {
			m := repeated.FindStringSubmatch(s)
			times, _ := strconv.Atoi(m[2])
			return strings.Repeat(m[1], times)
		})
		word, rest, _ := strings.Cut(line, " ")
		last := len(c.cases) - 1
		switch {
		case line == "" || word[0] == '#':
		case word == "let":
			name, value, _ := strings.Cut(rest, " ")
			lets = append(lets, name, value)
		case word == "zone":
			endZone()
			apex = rest
		case word == "case":
			endZone()
			c.cases = append(c.cases, conformanceCase{name: rest, line: n})
		case apex != "":
			records = append(records, line)
		case last < 0:
			t.Fatalf("line %d: %q is outside a zone or case", n, line)
		case word == "?":
			f := strings.Fields(rest)
			c.cases[last].question, c.cases[last].how = f[0]+" "+f[1], f[2:]
		case word == "=":
			c.cases[last].want = strings.Fields(rest)
		default:
			i := slices.Index(sectionNames[:], word)
			if i < 0 {
				t.Fatalf("line %d: %q is no section", n, word)
			}
			section := &c.cases[last].sections[i]
			*section = append(*section, strings.NewReplacer(lets...).Replace(rest))
		}
	}
	return c
}

// query makes the message that a case asks with, and by what it is sent.
func (c *conformanceCase) query(t *testing.T) (m *mdns.Msg, networks []string) {
	t.Helper()
	name, rrtype, _ := strings.Cut(c.question, " ")
	qtype, err := zone.ParseRRType(rrtype)
	if err != nil {
		t.Fatal(err)
	}
	m, networks = question(name, uint16(qtype)), []string{"udp", "tcp"}
	opt := func() *mdns.OPT {
		if m.IsEdns0() == nil {
			m.SetEdns0(0, false)
		}
		return m.IsEdns0()
	}
	for _, how := range c.how {
		key, value, _ := strings.Cut(how, "=")
		number := func(s string) uint16 {
			n, err := strconv.ParseUint(s, 10, 16)
			if err != nil {
				t.Fatal(err)
			}
			return uint16(n)
		}
		switch key {
		case "udp", "tcp":
			networks = []string{key}
		case "edns":
			opt().SetUDPSize(number(value))
		case "ver":
			opt().SetVersion(uint8(number(value)))
		case "do":
			opt().SetDo()
		case "nsid":
			opt().Option = append(opt().Option, &mdns.EDNS0_LOCAL{Code: mdns.EDNS0NSID})
		case "opt":
			code, data, _ := strings.Cut(value, ":")
			octets, err := hex.DecodeString(data)
			if err != nil {
				t.Fatal(err)
			}
			opt().Option = append(opt().Option, &mdns.EDNS0_LOCAL{Code: number(code), Data: octets})
		case "rd":
			m.RecursionDesired = true
		case "cd":
			m.CheckingDisabled = true
		case "ad":
			m.AuthenticatedData = true
		case "tc":
			m.Truncated = true
		case "z":
			m.Zero = true
		case "class":
			m.Question[0].Qclass = mdns.StringToClass[value]
		default:
			t.Fatalf("nothing is asked by %q", how)
		}
	}
	return m, networks
}

// told prints an answer's header and OPT in the words of a case.
func told(a *mdns.Msg, size int, withSize bool) []string {
	out := []string{mdns.RcodeToString[a.Rcode]}
	for _, f := range []struct {
		set  bool
		name string
	}{
		{!a.Response, "query"},
		{a.Authoritative, "aa"},
		{a.Truncated, "tc"},
		{a.RecursionDesired, "rd"},
		{a.RecursionAvailable, "ra"},
		{a.Zero, "z"},
		{a.AuthenticatedData, "ad"},
		{a.CheckingDisabled, "cd"},
	} {
		if f.set {
			out = append(out, f.name)
		}
	}
	if o := a.IsEdns0(); o != nil {
		out = append(out, "edns")
		if o.Version() != 0 || o.UDPSize() != 1232 {
			out = append(out, fmt.Sprintf("version=%d advertised=%d", o.Version(), o.UDPSize()))
		}
		if o.Do() {
			out = append(out, "do")
		}
		for _, option := range o.Option {
			if n, ok := option.(*mdns.EDNS0_NSID); ok && n.Nsid == hex.EncodeToString([]byte("edge-7")) {
				out = append(out, "nsid")
			} else {
				out = append(out, option.String())
			}
		}
	}
	if withSize {
		out = append(out, fmt.Sprintf("size=%d", size))
	}
	if out[0] == "BADSIG" { // the same number
		out[0] = "BADVERS"
	}
	return out
}

// TestConformance asks every case of testdata/conformance.txt over real sockets and compares all of the answer.
func TestConformance(t *testing.T) {
	c := readConformance(t)
	if len(c.cases) < 150 {
		t.Fatalf("%d cases", len(c.cases))
	}
	live := new(edge.Live)
	live.Store(newView(t, nil, newSnapshot(t, 42, append(testZones(t), c.zones...)...), 58))
	s := start(t, dns.Config{Live: live, NSID: "edge-7", RateLimit: -1})
	for _, row := range c.cases {
		m, networks := row.query(t)
		for _, network := range networks {
			t.Run(fmt.Sprintf("%s: %s %s", row.name, row.question, network), func(t *testing.T) {
				packed, err := m.Pack()
				if err != nil {
					t.Fatal(err)
				}
				raw := roundTrip(t, s, network, packed)
				a := new(mdns.Msg)
				if err := a.Unpack(raw); err != nil {
					t.Fatalf("%v: %x", err, raw)
				}
				withSize := strings.HasPrefix(row.want[len(row.want)-1], "size=")
				if got := told(a, len(raw), withSize); !slices.Equal(got, row.want) {
					t.Errorf("line %d: header and OPT\n got %q\nwant %q", row.line, got, row.want)
				}
				if a.Id != m.Id || !slices.Equal(a.Question, m.Question) {
					t.Errorf("line %d: identifier or question differ: %v", row.line, a)
				}
				for i, section := range [3][]mdns.RR{a.Answer, a.Ns, a.Extra} {
					if got := lines(section); !slices.Equal(got, row.sections[i]) {
						t.Errorf("line %d: %s\n got %q\nwant %q", row.line, sectionNames[i], got, row.sections[i])
					}
				}
			})
		}
	}
}

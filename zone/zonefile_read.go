package zone

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// ReadZoneFile reads an RFC 1035 §5 zone file ($ORIGIN, $TTL, bounded $GENERATE; $INCLUDE refused). The
// error is LineErrors, holding every bad line, unless reading from r itself failed.
//
// A record without a TTL takes $TTL, else the last TTL that a record before it wrote (RFC 1035 §5.1); TTLs
// may have BIND's units. Names are read against $ORIGIN, which is the zone at first. Exact duplicates are
// one record. A record whose line ends in the comment "; proxied" is proxied, when its type can be. The
// serial of the SOA is not kept.
func ReadZoneFile(r io.Reader, zone Name) (*ZoneFile, error) {
	f := &fileReader{zone: zone, origin: zone.s, seen: make(map[recordKey]seenRecord)}
	entries := entryReader{in: bufio.NewReaderSize(r, 64<<10), report: f.report}
	for !f.full {
		e, err := entries.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", entries.line+1, err)
		}
		f.entry(e)
	}
	if len(f.errs) > 0 {
		slices.SortStableFunc(f.errs, func(a, b LineError) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		if f.more > 0 {
			f.errs = append(f.errs, LineError{Line: entries.line, Message: fmt.Sprintf("and %d more problems up to here", f.more)})
		}
		return nil, f.errs
	}
	return f.file(), nil
}

// fileReader is the state that entries of a zone file are read in.
type fileReader struct {
	zone   Name
	origin string // without the trailing dot, "" is the root
	// originLost is set while a bad directive leaves open what the origin is: the names that hang on it are then
	// neither judged nor kept, since the directive is told already. ttlLost and lastTTLLost are the same of TTLs.
	originLost, ttlLost, lastTTLLost bool
	// owner of the last record; the zero Name when it was bad or there was none.
	owner    Name
	ownerSet bool
	// ttl is $TTL, lastTTL the last one that a record wrote, 0 for none.
	ttl, lastTTL uint32
	records      []Record
	seen         map[recordKey]seenRecord
	soa          *SOA
	soaWords     string
	soaLine      int
	generated    int
	full         bool
	errs         LineErrors
	more         int
}

type recordKey struct {
	name    Name
	rrtype  RRType
	content string
}

type seenRecord struct {
	ttl     uint32
	proxied bool
	line    int
}

func (f *fileReader) report(line, column int, format string, args ...any) {
	if len(f.errs) >= MaxLineErrors {
		f.more++
		return
	}
	f.errs = append(f.errs, LineError{line, column, fmt.Sprintf(format, args...)})
}

// reportAll reports each of what is joined in err.
func (f *fileReader) reportAll(w word, err error) {
	var p problems
	p.add(err)
	for _, one := range p.errs {
		f.report(w.line, w.column, "%s", one)
	}
}

// at is the place of an entry.
func (e entry) at() word { return word{line: e.line} }

func (f *fileReader) entry(e entry) {
	if e.bad {
		if len(e.words) > 0 && !e.indented && !strings.HasPrefix(e.words[0].text, "$") {
			f.takeOwner(e.words[0]) // for the lines that inherit it
		} else if len(e.words) > 0 {
			f.lose(e.words[0].text)
		}
		return
	}
	first := e.words[0]
	if e.indented || first.quoted || !strings.HasPrefix(first.text, "$") {
		f.record(e)
		return
	}
	words := e.words[1:]
	switch strings.ToUpper(first.text) {
	case "$ORIGIN":
		lost := f.lost(words)
		f.lose(first.text)
		if f.wants(e, words, 1, "a name") {
			origin, err := f.absolute(words[0].text)
			if err != nil {
				f.report(words[0].line, words[0].column, "%s", err)
				return
			}
			f.origin, f.originLost = origin, lost
		}
	case "$TTL":
		f.lose(first.text)
		if f.wants(e, words, 1, "a number of seconds") {
			f.ttl = f.parseTTL(words[0])
			f.ttlLost = f.ttl == 0
		}
	case "$GENERATE":
		f.generate(e)
	case "$INCLUDE":
		f.lose("$TTL") // the file may have one
		f.report(e.line, first.column, "$INCLUDE is refused: put the file's text in its place")
	default:
		f.lose("$TTL") // it may be meant
		f.report(e.line, first.column, "directive %s is not known: there are $ORIGIN, $TTL and $GENERATE", quote(first.text))
	}
}

// lose forgets what a directive sets, until one of its kind is good.
func (f *fileReader) lose(directive string) {
	switch strings.ToUpper(directive) {
	case "$ORIGIN":
		f.originLost = true
	case "$TTL":
		f.ttlLost = true
	}
}

// lost reports whether the name that words begin with hangs on an origin that is lost.
func (f *fileReader) lost(words []word) bool {
	return f.originLost && len(words) > 0 && !dns.IsFqdn(words[0].text)
}

func (f *fileReader) wants(e entry, words []word, n int, what string) bool {
	if len(words) != n {
		f.report(e.line, 0, "%s takes %s", e.words[0].text, what)
	}
	return len(words) == n
}

// parseTTL reads a TTL that a record may have; 0 when it is bad.
func (f *fileReader) parseTTL(w word) uint32 {
	ttl, err := fileDuration(w.text)
	if err == nil && ttl == 0 {
		err = errors.New("ttl 0 is not served: write 1 or more seconds")
	}
	if err != nil {
		f.report(w.line, w.column, "%s", err)
		return 0
	}
	return ttl
}

// absolute resolves a name against the origin, "" being the root.
func (f *fileReader) absolute(s string) (string, error) {
	t, err := foldTarget(s, nameBase{at: orWord(f.origin, "."), origin: f.origin})
	if t == "." {
		t = ""
	}
	return t, err
}

// takeOwner makes w the owner; a bad one is told once and leaves the records that inherit it aside.
func (f *fileReader) takeOwner(w word) {
	f.owner, f.ownerSet = Name{}, true
	t, err := f.absolute(w.text)
	var n Name
	if err == nil {
		n, err = ParseName(t)
	}
	if err == nil && f.lost([]word{w}) {
		return
	}
	if err == nil && !n.Under(f.zone) {
		err = fmt.Errorf("record %s is outside the zone %s", n, f.zone)
	}
	if err != nil {
		f.report(w.line, w.column, "%s", err)
		return
	}
	f.owner = n
}

// record reads an entry as a record: [owner] [TTL] [class] type RDATA, TTL and class in either order.
func (f *fileReader) record(e entry) {
	words := e.words
	switch {
	case !e.indented:
		f.takeOwner(words[0])
		words = words[1:]
	case !f.ownerSet:
		f.report(e.line, words[0].column, "the first record has no name to inherit; write @ for the zone itself")
		f.ownerSet = true
	}
	ttl, haveTTL, haveClass := uint32(0), false, false
	for len(words) > 0 && !words[0].quoted {
		w := words[0]
		if !haveTTL && digit(w.text[0]) {
			ttl = f.parseTTL(w)
			f.lastTTL, f.lastTTLLost, haveTTL = ttl, ttl == 0, true
		} else if class, ok := parseClass(w.text); ok && !haveClass {
			if class != dns.ClassINET {
				f.report(w.line, w.column, "class %s: only IN is served", strings.ToUpper(w.text))
			}
			haveClass = true
		} else {
			break
		}
		words = words[1:]
	}
	if len(words) == 0 || words[0].quoted {
		f.report(e.line, 0, "the record type is missing")
		return
	}
	t, err := ParseRRType(words[0].text)
	if err != nil {
		f.report(words[0].line, words[0].column, "%s", err)
		return
	}
	if !haveTTL {
		switch {
		case f.ttlLost:
		case f.ttl != 0:
			ttl = f.ttl
		case f.lastTTLLost:
		case f.lastTTL != 0:
			ttl = f.lastTTL
		default:
			f.report(e.line, 0, "the record has no ttl, and there is neither a $TTL nor a ttl before it")
		}
	}
	if t == TypeSOA {
		f.takeSOA(e, words, ttl)
		return
	}
	content, ok := f.content(t, words[0], words[1:])
	if !ok || f.owner.IsZero() || ttl == 0 {
		return
	}
	rec := Record{Name: f.owner, Type: t, Content: content, TTL: ttl}
	rec.Proxied = e.comment == proxiedComment && (t == TypeA || t == TypeAAAA || t == TypeCNAME)
	f.add(e, rec)
}

// add keeps a record that is not there yet.
func (f *fileReader) add(e entry, rec Record) {
	if err := rec.settle(); err != nil {
		f.reportAll(e.at(), err)
		return
	}
	key := recordKey{rec.Name, rec.Type, rec.Content}
	if old, ok := f.seen[key]; ok {
		if old.ttl != rec.TTL || old.proxied != rec.Proxied {
			f.report(e.line, 0, "the record is on line %d too, with another ttl or proxied: keep one", old.line)
		}
		return
	}
	if len(f.records) >= MaxFileRecords {
		f.report(e.line, 0, "the file has more than %d records; what follows was not read", MaxFileRecords)
		f.full = true
		return
	}
	f.seen[key] = seenRecord{rec.TTL, rec.Proxied, e.line}
	f.records = append(f.records, rec)
}

// content reads RDATA words to the normal form; what is wrong is reported.
func (f *fileReader) content(t RRType, typeWord word, words []word) (string, bool) {
	if err := t.Storable(); err != nil {
		f.report(typeWord.line, typeWord.column, "%s", err)
		return "", false
	}
	if len(words) == 0 {
		f.report(typeWord.line, typeWord.column, "the %s record has no content", t)
		return "", false
	}
	if (t == TypeTXT || t == TypeSPF || t == TypeAVC) && (words[0].quoted || words[0].text != `\#`) {
		return f.byteString(t, words)
	}
	content, err := parseRDATA(t, joinEntry(words), nameBase{at: orWord(f.origin, "."), origin: f.origin})
	if err != nil {
		var p problems
		p.add(err)
		for _, one := range p.errs {
			f.report(words[0].line, words[0].column, "%s: %s", t, one)
		}
		return "", false
	}
	return content, true
}

// joinEntry puts words together as RDATA text.
func joinEntry(words []word) string {
	if len(words) == 1 && !words[0].quoted {
		return words[0].text
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 && !w.glued {
			b.WriteByte(' ')
		}
		if w.quoted {
			b.WriteByte('"')
		}
		b.WriteString(w.text)
		if w.quoted {
			b.WriteByte('"')
		}
	}
	return b.String()
}

// byteString joins words, each a character-string, and reports each bad escape at its place.
func (f *fileReader) byteString(t RRType, words []word) (string, bool) {
	var octets []byte
	ok := true
	for _, w := range words {
		for i := 0; i < len(w.text); {
			c, n, why := unescape(w.text[i:])
			if why != "" {
				f.report(w.line, w.column+i, "%s: %s", t, why)
				ok = false
			}
			octets = append(octets, c)
			i += n
		}
	}
	if n := wireByteString(len(octets)); n > MaxRDATA {
		f.report(words[0].line, words[0].column, "%s: it takes %d octets on the wire, the most is %d", t, n, MaxRDATA)
		ok = false
	}
	return string(appendEscaped(nil, octets)), ok
}

// parseClass reads a class by name or as CLASSn (RFC 3597 §5).
func parseClass(s string) (uint16, bool) {
	up := strings.ToUpper(s)
	if c, ok := dns.StringToClass[up]; ok {
		return c, true
	}
	if digits, ok := strings.CutPrefix(up, "CLASS"); ok {
		if n, err := parseNumber(digits, "class", 0, 65535); err == nil {
			return uint16(n), true
		}
	}
	return 0, false
}

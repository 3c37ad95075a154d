package zone

import (
	"fmt"
	"slices"
)

// takeSOA reads the SOA record: its fields but for the serial become the zone's settings. words begin with
// the type.
func (f *fileReader) takeSOA(e entry, words []word, ttl uint32) {
	at := words[0]
	if !f.owner.IsZero() && f.owner != f.zone {
		f.report(e.line, 0, "the SOA record of %s is not at the zone %s: a file holds one zone", f.owner, f.zone)
		return
	}
	if words = words[1:]; len(words) != 7 {
		f.report(at.line, at.column, "SOA: it has %d fields; write mname rname serial refresh retry expire minimum", len(words))
		return
	}
	s := SOA{TTL: ttl}
	bad := false
	fail := func(w word, err error) {
		f.report(w.line, w.column, "SOA: %s", err)
		bad = true
	}
	mname, err := f.absolute(words[0].text)
	if err == nil && mname != "" {
		s.MName, err = ParseName(mname)
	}
	if err != nil {
		fail(words[0], err)
	}
	rname, err := f.absolute(words[1].text)
	if err == nil && rname != "" {
		s.RName, err = ParseMailbox(rname)
	}
	if err != nil {
		fail(words[1], err)
	}
	if _, err := parseNumber(words[2].text, "serial", 0, 1<<32-1); err != nil {
		fail(words[2], err)
	}
	for i, to := range []*uint32{&s.Refresh, &s.Retry, &s.Expire, &s.Minimum} {
		w := words[3+i]
		n, err := fileDuration(w.text)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s 0 cannot be kept: write 1 or more seconds", []string{"refresh", "retry", "expire", "minimum"}[i])
		}
		if err != nil {
			fail(w, err)
		}
		*to = n
	}
	if bad || ttl == 0 || f.owner.IsZero() {
		return
	}
	text := fmt.Sprint(s, words[2].text)
	switch {
	case f.soa == nil:
		f.soa, f.soaWords, f.soaLine = &s, text, e.line
	case f.soaWords != text: // an AXFR ends with the SOA that it began with
		f.report(e.line, 0, "a second SOA record, unlike the one on line %d", f.soaLine)
	}
}

// file returns what was read, the SOA in normal form.
func (f *fileReader) file() *ZoneFile {
	out := &ZoneFile{Records: f.records}
	if f.soa == nil {
		return out
	}
	s, err := f.soa.Normalize()
	if err != nil {
		s = *f.soa // every field was judged as it was read
	}
	// The default of mname follows the first NS record in the order of the normal form.
	z := Zone{Name: f.zone}
	for _, r := range f.records {
		if r.Type == TypeNS && r.Name == f.zone {
			z.Records = append(z.Records, r)
		}
	}
	slices.SortFunc(z.Records, Record.Compare)
	def := z.EffectiveSOA()
	zeroDefault(&s.MName, def.MName)
	zeroDefault(&s.RName, def.RName)
	out.SOA = &s
	return out
}

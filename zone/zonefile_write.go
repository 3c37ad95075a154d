package zone

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteZoneFile prints z's SOA and records, which are in normal form, as a zone file that ReadZoneFile
// reads back to equal records. The serial, which follows the generation, is printed as 1; a proxied record
// has the comment "; proxied".
func WriteZoneFile(w io.Writer, z *Zone) error {
	out := bufio.NewWriterSize(w, 64<<10)
	s := z.EffectiveSOA()
	fmt.Fprintf(out, "$ORIGIN %s.\n$TTL %d\n", z.Name, DefaultTTL)
	fmt.Fprintf(out, "@\t%d\tIN\tSOA\t%s. %s. 1 %d %d %d %d\n", s.TTL, s.MName, s.RName, s.Refresh, s.Retry, s.Expire, s.Minimum)
	for _, r := range z.Records {
		content, err := r.fileContent()
		if err != nil {
			return err
		}
		mark := ""
		if r.Proxied {
			mark = "\t; " + proxiedComment
		}
		if _, err := fmt.Fprintf(out, "%s\t%d\tIN\t%s\t%s%s\n", r.Name.In(z.Name), r.EffectiveTTL(), r.Type, content, mark); err != nil {
			return err
		}
	}
	return out.Flush()
}

// fileContent prints RDATA as a zone file has it: names with the trailing dot, byte strings as
// character-strings.
func (r Record) fileContent() (string, error) {
	switch r.Type {
	case TypeA, TypeAAAA, TypeCAA:
		return r.Content, nil
	case TypeCNAME, TypeNS, TypePTR, TypeDNAME, TypeMX, TypeSRV:
		if strings.HasSuffix(r.Content, ".") && !strings.HasSuffix(r.Content, `\.`) {
			return r.Content, nil // the root
		}
		return r.Content + ".", nil
	case TypeTXT, TypeSPF, TypeAVC:
		octets, err := readByteString(r.Content)
		if err != nil {
			return "", fmt.Errorf("record %s %s is not in normal form: %w", r.Name, r.Type, err)
		}
		return `"` + strings.Join(charStrings(octets), `" "`) + `"`, nil
	}
	if isGeneric(r.Content) {
		return r.Content, nil
	}
	rr, err := r.RR()
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(rr.String(), rr.Header().String()), nil
}

package snapshot

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/zone"
)

// unmarshalZone reads one zone strictly. The library refuses duplicate names (those that fold to one host
// name too), invalid UTF-8, lone surrogates, numbers that are no integers or out of range, and trailing bytes.
func unmarshalZone(raw []byte, z *zone.Zone) error {
	err := json.Unmarshal(raw, z, json.RejectUnknownMembers(true))
	if err != nil && bytes.Contains(raw, []byte("-0")) {
		// -0 is the integer 0 (RFC 8785 prints it so), which the library reads into signed members alone.
		if folded, ok := foldNegativeZero(raw); ok {
			*z = zone.Zone{}
			return json.Unmarshal(folded, z, json.RejectUnknownMembers(true))
		}
	}
	return err
}

// foldNegativeZero rewrites every number -0 as 0; false when there is none or raw is no JSON.
func foldNegativeZero(raw []byte) ([]byte, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	out := bytes.Clone(raw)
	found := false
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return out, found
		}
		if tok.Kind() == '0' && tok.String() == "-0" {
			out[dec.InputOffset()-2] = ' '
			found = true
		}
	}
}

// quote prints text from outside for an error: quoted, control characters inert, cut at 80 bytes.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

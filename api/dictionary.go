package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/seal"
)

// Of Compression Dictionary Transport (RFC 9842).
const (
	codingName       = "dcz"
	headerDictionary = "Available-Dictionary"
)

// varyByDictionary tells a cache on what an answer to a poll depends beside its path. Never changed.
var varyByDictionary = []string{"Accept-Encoding, " + headerDictionary}

// dictionaryHeaders are those of a request by who holds d.
func dictionaryHeaders(d seal.DictionaryID) http.Header {
	return http.Header{"Accept-Encoding": {codingName}, headerDictionary: {":" + base64.StdEncoding.EncodeToString(d[:]) + ":"}}
}

// heldDictionary reads what the client of a request holds, the zero value when it says nothing that makes sense, which is no
// error (RFC 9651 §4.2), or takes no coding with it.
func heldDictionary(h http.Header) seal.DictionaryID {
	var d seal.DictionaryID
	v := h[headerDictionary]
	if len(v) != 1 || len(v[0]) != len(":")*2+base64.StdEncoding.EncodedLen(len(d)) || !accepts(h["Accept-Encoding"], codingName) {
		return d
	}
	text, begins := strings.CutPrefix(v[0], ":")
	text, ends := strings.CutSuffix(text, ":")
	if !begins || !ends {
		return d
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d
	}
	return seal.DictionaryID(raw)
}

// accepts reports whether a coding is named in Accept-Encoding (RFC 9110 §12.5.3) and not with weight 0.
func accepts(values []string, coding string) bool {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			name, weight, _ := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(name), coding) {
				continue
			}
			q, weighted := strings.CutPrefix(strings.ToLower(strings.TrimSpace(weight)), "q=")
			return !weighted || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

// isCoded reports whether an answer is coded with the dictionary that was offered. Any other coding is an error.
func isCoded(h http.Header, offered seal.DictionaryID) (bool, error) {
	v := h["Content-Encoding"]
	switch {
	case len(v) == 0:
		return false, nil
	case len(v) == 1 && v[0] == codingName && offered != (seal.DictionaryID{}):
		return true, nil
	}
	return false, fmt.Errorf("the payload came with content coding %q, which was not asked for", inert(clip(strings.Join(v, ", "))))
}

package seal

import (
	"net/http"
	"strconv"
	"strings"
)

// Header names of the node protocol.
const (
	HeaderVersion    = "x-guardyn-config-version"
	HeaderHash       = "x-guardyn-config-hash"
	HeaderSignature  = "x-guardyn-config-signature"
	HeaderKeyID      = "x-guardyn-config-key-id"
	HeaderActivation = "x-guardyn-config-activation"
	HeaderGeneration = "x-guardyn-config-generation"
	HeaderFreshness  = "x-guardyn-config-freshness"
	// HeaderCoding carries a Coding's signature.
	HeaderCoding = "x-guardyn-config-coding-signature"
)

// WriteHeader puts the envelope of a into h. The payload is not touched.
func WriteHeader(h http.Header, a Artefact) {
	h.Set(HeaderVersion, strconv.FormatUint(a.Version, 10))
	h.Set(HeaderHash, a.ContentHash)
	h.Set(HeaderSignature, a.Signature)
	h.Set(HeaderKeyID, string(a.KeyID))
	h.Set(HeaderActivation, string(a.Activation))
}

// ReadHeader is the strict inverse of WriteHeader: a header that appears twice, or is missing, is a
// *Refusal with code envelope_mismatch; a signature that is missing or empty, with code unsigned. The
// artefact has no payload yet and is not to be believed before Open.
func ReadHeader(h http.Header) (Artefact, error) {
	var a Artefact
	signature, err := single(h, HeaderSignature)
	if err != nil {
		return Artefact{}, err
	}
	if strings.TrimSpace(signature) == "" {
		return Artefact{}, errUnsigned()
	}
	a.Signature = signature
	values := map[string]string{}
	for _, name := range []string{HeaderVersion, HeaderHash, HeaderKeyID, HeaderActivation} {
		v, err := single(h, name)
		if err != nil {
			return Artefact{}, err
		}
		if v == "" {
			return Artefact{}, refuse(CodeEnvelopeMismatch, "the header %s is missing", name)
		}
		values[name] = v
	}
	version := values[HeaderVersion]
	a.Version, err = strconv.ParseUint(version, 10, 64)
	if err != nil || a.Version == 0 || a.Version > maxInteger || strconv.FormatUint(a.Version, 10) != version {
		return Artefact{}, refuse(CodeEnvelopeMismatch, "the header %s is not a version: %s", HeaderVersion, quote(version))
	}
	a.ContentHash = values[HeaderHash]
	if !lowerHex(a.ContentHash, 64) {
		return Artefact{}, refuse(CodeEnvelopeMismatch, "the header %s is not 64 lower-case hex digits", HeaderHash)
	}
	a.KeyID = KeyID(values[HeaderKeyID])
	a.Activation = SignedActivation(values[HeaderActivation])
	return a, nil
}

func single(h http.Header, name string) (string, error) {
	v := h.Values(name)
	if len(v) > 1 {
		return "", refuse(CodeEnvelopeMismatch, "the header %s appears %d times", name, len(v))
	}
	if len(v) == 0 {
		return "", nil
	}
	return v[0], nil
}

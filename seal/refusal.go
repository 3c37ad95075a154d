package seal

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Codes of a Refusal. They are stable: metrics, acks and the audit log carry them.
const (
	CodeUnsigned           = "unsigned"
	CodeTooLarge           = "too_large"
	CodeKeyUntrusted       = "key_untrusted"
	CodeSignatureMalformed = "signature_malformed"
	CodeSignatureInvalid   = "signature_invalid"
	CodeActivationInvalid  = "activation_invalid"
	CodePayloadMalformed   = "payload_malformed"
	CodeFormatUnsupported  = "format_unsupported"
	CodeHashMismatch       = "content_hash_mismatch"
	CodeZoneIDMismatch     = "zone_id_mismatch"
	CodeHostDuplicate      = "host_duplicate"
	CodeEnvelopeMismatch   = "envelope_mismatch"
	CodeStaleGeneration    = "stale_generation"
	CodeEquivocation       = "equivocation"
	CodeGenerationJump     = "generation_jump"
	CodeFreshnessInvalid   = "freshness_invalid"
	CodePurgesInvalid      = "purges_invalid"
)

// Refusal says why an artefact was refused. Code is one of the Code constants.
type Refusal struct {
	Code    string
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// quote prints text from outside for an error: quoted, control characters inert, cut at 80 bytes.
func quote[S ~string](text S) string {
	const most = 80
	s := string(text)
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

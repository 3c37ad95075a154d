package barrier

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// checkID returns what is wrong with a MemberID, BootID or RolloutID, or "".
func checkID(id string) string {
	if id == "" {
		return "is empty"
	}
	if len(id) > MaxIDBytes {
		return fmt.Sprintf("has %d bytes, more than %d", len(id), MaxIDBytes)
	}
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return "has other characters than letters, digits, '.', '_' and '-'"
		}
	}
	return ""
}

// CheckMember says whether m and boot are well formed; the error is an ErrInvalid.
func CheckMember(m MemberID, boot BootID) error {
	var problems []string
	if p := checkID(string(m)); p != "" {
		problems = append(problems, fmt.Sprintf("member %.80q %s", m, p))
	}
	if p := checkID(string(boot)); p != "" {
		problems = append(problems, fmt.Sprintf("boot %.80q %s", boot, p))
	}
	return invalid(problems)
}

// CheckLease says whether holder (1 to MaxNameBytes bytes) can hold a lease for ttl; the error is an ErrInvalid.
func CheckLease(holder string, ttl time.Duration) error {
	var problems []string
	if s := checkText("holder", holder, MaxNameBytes); s != "" {
		problems = append(problems, s)
	}
	if ttl < MinLease || ttl > MaxLease {
		problems = append(problems, fmt.Sprintf("ttl is %s, not between %s and %s", ttl, MinLease, MaxLease))
	}
	return invalid(problems)
}

// CheckArtefact says whether artefact can be put under d; the error is an ErrInvalid.
func CheckArtefact(d Digest, artefact []byte) error {
	problems := digestProblems(d)
	if len(artefact) > MaxArtefactBytes {
		problems = append(problems, fmt.Sprintf("artefact has %d bytes, more than %d", len(artefact), MaxArtefactBytes))
	}
	return invalid(problems)
}

func checkText(what, s string, limit int) string {
	switch {
	case s == "":
		return what + " is empty"
	case len(s) > limit:
		return fmt.Sprintf("%s has %d bytes, more than %d", what, len(s), limit)
	}
	return textProblem(what, s)
}

// textProblem returns what is wrong with s as text that every adapter can hold, or "".
func textProblem(what, s string) string {
	switch {
	case !utf8.ValidString(s):
		return what + " is not UTF-8"
	case strings.Contains(s, "\x00"):
		return what + " has a NUL character"
	}
	return ""
}

// buildDigestProblem returns what is wrong with what a Host says that it built, or "".
func buildDigestProblem(d string) string {
	if len(d) > MaxDigestBytes {
		return fmt.Sprintf("build digest has %d bytes, more than %d", len(d), MaxDigestBytes)
	}
	return textProblem("build digest", d)
}

// CheckDigest says whether d is well formed: "scheme:value" in printable ASCII.
func CheckDigest(d Digest) error { return invalid(digestProblems(d)) }

func digestProblems(d Digest) []string {
	scheme, value, ok := strings.Cut(string(d), ":")
	switch {
	case len(d) > MaxDigestBytes:
		return []string{fmt.Sprintf("digest has %d bytes, more than %d", len(d), MaxDigestBytes)}
	case !ok || scheme == "" || value == "":
		return []string{fmt.Sprintf("digest %q is not scheme:value", d)}
	}
	for _, c := range []byte(d) {
		if c <= ' ' || c > '~' {
			return []string{fmt.Sprintf("digest %q has other characters than printable ASCII", d)}
		}
	}
	return nil
}

func invalid(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(problems, "; "))
}

// leastDefaultTTL is a member's default poll.
const leastDefaultTTL = time.Second

// WithDefaults returns p with the Default constants for what is zero.
func (p Proposal) WithDefaults() Proposal {
	if p.Deadline == 0 {
		p.Deadline = DefaultDeadline
	}
	if p.Window == 0 {
		return p
	}
	if p.Soak == 0 {
		p.Soak = DefaultSoak
	}
	if p.Grace == 0 {
		p.Grace = DefaultGrace
	}
	if p.EvidenceTTL == 0 {
		// Evidence that outlived the soak would prove it by having been given once.
		p.EvidenceTTL = max(min(DefaultEvidenceTTL, (p.Soak/2).Truncate(time.Millisecond)), leastDefaultTTL)
	}
	return p
}

// Check says whether p, with its defaults, can be proposed at all; the error is an ErrInvalid that names all problems.
func (p Proposal) Check() error {
	p = p.WithDefaults()
	var problems []string
	add := func(s string) {
		if s != "" {
			problems = append(problems, s)
		}
	}
	if s := checkID(string(p.ID)); s != "" {
		add(fmt.Sprintf("id %.80q %s", p.ID, s))
	}
	add(checkText("proposer", p.Proposer, MaxNameBytes))
	problems = append(problems, digestProblems(p.Digest)...)
	if p.Version > MaxNumber {
		add(fmt.Sprintf("version is %d, more than %d", p.Version, uint64(MaxNumber)))
	}
	if p.After > 1<<62 {
		add(fmt.Sprintf("after is %d, more than %d", p.After, uint64(1)<<62))
	}
	between := func(what string, d, low, high time.Duration) {
		switch {
		case d < low || d > high:
			add(fmt.Sprintf("%s is %s, not between %s and %s", what, d, low, high))
		case d%time.Millisecond != 0:
			add(fmt.Sprintf("%s is %s, not whole milliseconds", what, d))
		}
	}
	between("deadline", p.Deadline, MinDeadline, MaxDeadline)
	if p.Window == 0 {
		if p.Soak != 0 || p.Grace != 0 || p.EvidenceTTL != 0 {
			add("soak, grace and evidence_ttl are of a confirm window, and there is none")
		}
		return invalid(problems)
	}
	between("window", p.Window, time.Millisecond, MaxWindow)
	between("soak", p.Soak, time.Millisecond, MaxWindow)
	between("grace", p.Grace, time.Millisecond, MaxGrace)
	between("evidence_ttl", p.EvidenceTTL, MinEvidenceTTL, MaxEvidenceTTL)
	if p.Window > 0 && p.Soak > 0 && p.Window < 2*p.Soak {
		add(fmt.Sprintf("window is %s, less than twice the soak of %s: members could not prove in time that the change works", p.Window, p.Soak))
	}
	return invalid(problems)
}

// cut returns s as valid UTF-8 without NUL of at most MaxReasonBytes bytes.
func cut(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= MaxReasonBytes {
		return s
	}
	end := MaxReasonBytes - len("…")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// normalRoster returns members sorted, or all that is wrong with them.
func normalRoster(members []MemberID) ([]MemberID, error) {
	members = slices.Sorted(slices.Values(members))
	var problems []string
	if len(members) == 0 {
		problems = append(problems, "a roster has at least one member")
	}
	if len(members) > MaxMembers {
		problems = append(problems, fmt.Sprintf("a roster has at most %d members, not %d", MaxMembers, len(members)))
	}
	for i, m := range members {
		if p := checkID(string(m)); p != "" {
			problems = append(problems, fmt.Sprintf("member %.80q %s", m, p))
		}
		if i > 0 && members[i-1] == m && (i == 1 || members[i-2] != m) {
			problems = append(problems, fmt.Sprintf("member %q is named twice", m))
		}
	}
	return members, invalid(problems)
}

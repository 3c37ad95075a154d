package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Sizes in bytes. Text of n bytes takes up to 6n in JSON: a control character is six bytes there.
const (
	maxRequest = 64 << 10
	// maxRoster is a full roster of the longest ids, each with its quotes and comma, and the rest of the body.
	maxRoster = barrier.MaxMembers*(barrier.MaxIDBytes+len(`"",`)) + 4<<10
	maxAnswer = 64 << 10
	// maxSeat is a member's id, its registration, and a ballot with three texts, of reasons' length each.
	maxSeat = 6*(3*barrier.MaxReasonBytes+barrier.MaxDigestBytes) + 3*barrier.MaxIDBytes + 1<<10
	// maxRow is the whole row of a full cohort.
	maxRow    = maxAnswer + maxRoster + barrier.MaxMembers*maxSeat
	maxDetail = 4 << 10 // of an error, before it is JSON
)

// headerRequest carries a word that the client makes up for each request, and headerAnswer gives it back: an
// answer without it was not made by the handler for this request, whatever it says.
const (
	headerRequest = "Barrier-Request"
	headerAnswer  = "Barrier-Answer"
	maxWord       = 64
)

// The bodies of requests, as they travel.
type (
	refBody struct {
		Ref barrier.Ref `json:"rollout"`
	}
	joinBody struct {
		Member      barrier.MemberID `json:"member"`
		Boot        barrier.BootID   `json:"boot"`
		Incarnation uint64           `json:"incarnation"`
	}
	voteBody struct {
		refBody
		Member      barrier.MemberID `json:"member"`
		Boot        barrier.BootID   `json:"boot"`
		BuildDigest string           `json:"build_digest"`
	}
	// reasonBody is of nack, withdraw and converge.
	reasonBody struct {
		refBody
		Member barrier.MemberID `json:"member"`
		Boot   barrier.BootID   `json:"boot"`
		Reason string           `json:"reason"`
	}
	claimBody struct {
		Token barrier.Token `json:"token"`
	}
	decideBody struct {
		refBody
		Token barrier.Token `json:"token"`
	}
	endBody struct {
		refBody
		By     barrier.Authority `json:"by"`
		Reason string            `json:"reason"`
	}
	rosterBody struct {
		Revision uint64             `json:"revision"`
		Members  []barrier.MemberID `json:"members"`
	}
	acquireBody struct {
		Holder string        `json:"holder"`
		TTL    time.Duration `json:"ttl"`
	}
)

// The bodies of answers that are no type of barrier's.
type (
	doneAnswer     struct{}
	baselineAnswer struct {
		Outcome barrier.BaselineOutcome `json:"outcome"`
	}
	watchAnswer struct {
		Seen string `json:"seen"`
	}
)

// Durations travel as text, "1m30s", so that the unit is seen.
var (
	encoding = json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, d time.Duration) error {
		return enc.WriteToken(jsontext.String(d.String()))
	}))
	// lenient passes over members that a later handler adds to its answers.
	lenient = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, d *time.Duration) error {
		t, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if t.Kind() != '"' {
			return errors.New(`a duration is text, for example "1m30s"`)
		}
		*d, err = time.ParseDuration(t.String())
		return err
	}))
	strict = json.JoinOptions(lenient, json.RejectUnknownMembers(true))
)

// encode returns v as JSON. What cannot be written is text that is not UTF-8.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v, encoding)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", barrier.ErrInvalid, err)
	}
	return raw, nil
}

// clip returns s as valid UTF-8, cut to little more than limit bytes: what is longer than limit still is, so
// that the store cuts it where it would have.
func clip(s string, limit int) string {
	if len(s) > limit+utf8.UTFMax {
		// Bytes that are not UTF-8 become longer by being replaced, never shorter.
		s = s[:limit+utf8.UTFMax]
		for i := 1; i < utf8.UTFMax && i < len(s); i++ {
			if tail := s[len(s)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRuneInString(tail) {
					s = s[:len(s)-i]
				}
				break
			}
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func checkWord(s string) bool {
	if s == "" || len(s) > maxWord {
		return false
	}
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

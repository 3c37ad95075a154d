package remote

import (
	"errors"
	"fmt"
	"math"
	"strconv"
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
	maxSeen       = 256 // bytes of what a watch has seen
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
	// reasonBody is of nack and withdraw.
	reasonBody struct {
		refBody
		Member barrier.MemberID `json:"member"`
		Boot   barrier.BootID   `json:"boot"`
		Reason string           `json:"reason"`
	}
	convergeBody struct {
		refBody
		Member barrier.MemberID `json:"member"`
		Boot   barrier.BootID   `json:"boot"`
		Detail string           `json:"detail"`
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
		TTL    time.Duration `json:"ttl_ms"`
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

// Durations travel as whole milliseconds. In a call one that has a part of one is not valid, as barrier's own checks
// have it; in an answer, where only a Row's margin can have one, it becomes longer.
var (
	exact = json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, d time.Duration) error {
		if d%time.Millisecond != 0 {
			return fmt.Errorf("%s is not whole milliseconds", d)
		}
		return enc.WriteToken(jsontext.Int(int64(d / time.Millisecond)))
	}))
	rounding = json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, d time.Duration) error {
		return enc.WriteToken(jsontext.Int(int64(wholeMilliseconds(d) / time.Millisecond)))
	}))
	// lenient passes over members that a later handler adds to its answers.
	lenient = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, d *time.Duration) error {
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		const most = int64(math.MaxInt64 / time.Millisecond)
		if err != nil || n < -most || n > most {
			return errors.New("a duration is whole milliseconds")
		}
		*d = time.Duration(n) * time.Millisecond
		return nil
	}))
	strict = json.JoinOptions(lenient, json.RejectUnknownMembers(true))
)

// wholeMilliseconds returns d, or what is next above it.
func wholeMilliseconds(d time.Duration) time.Duration {
	if r := d % time.Millisecond; r > 0 {
		return d - r + time.Millisecond
	}
	return d.Truncate(time.Millisecond)
}

// encode returns a call's body as JSON. What cannot be written is text that is not UTF-8 and a part of a
// millisecond.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v, exact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", barrier.ErrInvalid, err)
	}
	return raw, nil
}

// clip returns s as valid UTF-8, cut at a character to little more than limit bytes: what is longer than limit
// still is, so that the store cuts it where it would have.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	end := limit + utf8.UTFMax
	if len(s) <= end {
		return s
	}
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
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

package seal

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

const purgesPrefix = "guardyn-purges-v1\n"

// Bounds of a statement of purges.
const (
	// MaxPurges is how many purges one statement carries, MaxPurgesBytes how many bytes of values; one purge it carries
	// whatever its size.
	MaxPurges      = 1000
	MaxPurgesBytes = 512 << 10
	// MaxPurgeStatement bounds a statement of purges as it travels, in bytes. A tag's characters take up to two in JSON, and
	// base64 four for three.
	MaxPurgeStatement = 4 << 20
)

// PurgeMark is a place in the platform's log of purges: just behind the purge that has this number and id. The zero mark is
// the beginning. Numbers go back with a database that is restored, ids do not come again: a mark of what was lost is
// seen to be none.
type PurgeMark struct {
	Sequence uint64 `json:"sequence"`
	ID       string `json:"id"` // UUID, empty at the beginning
}

// String is the mark in one word, "0" at the beginning.
func (m PurgeMark) String() string {
	if m.Sequence == 0 {
		return "0"
	}
	return strconv.FormatUint(m.Sequence, 10) + ":" + m.ID
}

// ParsePurgeMark reads what String printed.
func ParsePurgeMark(s string) (PurgeMark, error) {
	number, id, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	m := PurgeMark{n, id}
	if err != nil || m.String() != s || m.Validate() != nil {
		return PurgeMark{}, fmt.Errorf("%s is not a place in the log of purges: 0, or a number, a colon and a UUID", quote(s))
	}
	return m, nil
}

// Validate judges a mark by itself.
func (m PurgeMark) Validate() error {
	if m.Sequence == 0 && m.ID == "" {
		return nil
	}
	if m.Sequence == 0 || m.Sequence > math.MaxInt64 || !uuid(m.ID) {
		return fmt.Errorf("mark %d %s is not 0 or a number with a UUID in lower case", m.Sequence, quote(m.ID))
	}
	return nil
}

// PurgeStatement answers a node that has done all purges up to After with those that follow, all of them, up to To.
type PurgeStatement struct {
	Platform string `json:"platform"` // UUID
	Epoch    uint64 `json:"epoch"`
	// After is what the node said; nil: it has done none and knows no place.
	After *PurgeMark `json:"after"`
	// Floor: what follows After is not known any more, or After never was, or it is nil. Purges is empty: everything that was
	// fetched before this answer came is out of date.
	Floor bool      `json:"floor"`
	To    PurgeMark `json:"to"`
	// More: there were others after To.
	More     bool         `json:"more"`
	Purges   []zone.Purge `json:"purges"`
	IssuedAt time.Time    `json:"issued_at"` // UTC
}

func (p *PurgeStatement) validate() error {
	errs := []error{
		shape("platform", p.Platform, uuid(p.Platform), "a UUID in lower case"),
		counter("epoch", p.Epoch, 1), counter("to", p.To.Sequence, 0), p.To.Validate(), issued(p.IssuedAt), p.validateRange(),
	}
	if p.After != nil {
		errs = append(errs, counter("after", p.After.Sequence, 0), p.After.Validate())
	}
	if len(p.Purges) > MaxPurges {
		errs = append(errs, fmt.Errorf("it carries %d purges, the most is %d", len(p.Purges), MaxPurges))
		return joined(errs...)
	}
	for i, one := range p.Purges {
		if err := validatePurge(one); err != nil {
			errs = append(errs, fmt.Errorf("purge %d: %w", i+1, err))
		}
	}
	return joined(errs...)
}

// validateRange holds that the purges are those after After up to To, all and in order.
func (p *PurgeStatement) validateRange() error {
	if p.Floor {
		if len(p.Purges) > 0 {
			return errors.New("it says that purges are lost, and carries some")
		}
		return nil
	}
	if p.After == nil {
		return errors.New("it goes on from nowhere")
	}
	for i, one := range p.Purges {
		if want := p.After.Sequence + uint64(i) + 1; one.Sequence != want {
			return fmt.Errorf("purge %d has the number %d, not %d", i+1, one.Sequence, want)
		}
	}
	if want := p.After.Sequence + uint64(len(p.Purges)); p.To.Sequence != want {
		return fmt.Errorf("it ends at %d and says that it ends at %d", want, p.To.Sequence)
	}
	if len(p.Purges) == 0 && (p.To != *p.After || p.More) {
		return errors.New("it carries nothing and moves on")
	}
	return nil
}

// validatePurge judges what no later version could mean otherwise: kinds that are not known pass.
func validatePurge(p zone.Purge) error {
	var kind, values error
	if n := len(p.Kind); n < 1 || n > 32 {
		kind = fmt.Errorf("its kind has %d bytes, not 1 to 32", n)
	}
	if n := len(p.Values); n > zone.MaxPurgeValues {
		values = fmt.Errorf("it has %d values, the most is %d", n, zone.MaxPurgeValues)
	}
	at := issued(p.At)
	if at != nil {
		at = errors.New("its time is missing, or not in UTC")
	}
	return joined(shape("zone", p.Zone.String(), !p.Zone.IsZero(), "the name of a zone"), kind, values, at)
}

// SignPurges signs a statement, in the form of a [SignedActivation]; the signature covers "guardyn-purges-v1\n" and the JCS
// bytes.
func SignPurges(k SigningKey, p PurgeStatement) (string, error) {
	p.IssuedAt = p.IssuedAt.UTC().Round(0)
	if p.Purges == nil {
		p.Purges = []zone.Purge{}
	}
	if err := p.validate(); err != nil {
		return "", fmt.Errorf("purges: %w", err)
	}
	s, err := signStatement(k, purgesPrefix, &p)
	if err == nil && len(s) > MaxPurgeStatement {
		err = fmt.Errorf("the statement has %d bytes, the most is %d", len(s), MaxPurgeStatement)
	}
	if err != nil {
		return "", fmt.Errorf("purges: %w", err)
	}
	return s, nil
}

// VerifyPurges checks that a trusted key answered a node that asked with after (nil: it knew no place). The caller compares
// platform and epoch with what it serves. The error is a *Refusal with code purges_invalid.
func VerifyPurges(s string, t TrustedKeys, after *PurgeMark) (PurgeStatement, error) {
	var p PurgeStatement
	_, err := openStatementOf(MaxPurgeStatement, s, purgesPrefix, t.keys, &p)
	if err == nil {
		err = p.validate()
	}
	if err == nil && ((after == nil) != (p.After == nil) || after != nil && *after != *p.After) {
		err = errors.New("it answers another question")
	}
	if err != nil {
		return PurgeStatement{}, refuse(CodePurgesInvalid, "the statement of purges is refused: %v", err)
	}
	return p, nil
}

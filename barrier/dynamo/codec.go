package dynamo

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
)

// format is of the items that this version writes. It refuses to judge a head of another: what it does not know it would
// lose when it writes the head back.
const format = 1

// documents is how values travel in the attribute doc: strict JSON with durations as text, "1m30s".
var documents = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) { return strconv.AppendQuote(nil, d.String()), nil })),
	json.WithUnmarshalers(json.UnmarshalFunc(func(b []byte, d *time.Duration) (err error) {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*d, err = time.ParseDuration(s)
		return err
	})),
)

func document(v any) (types.AttributeValue, error) {
	b, err := json.Marshal(v, documents)
	if err != nil {
		return nil, err
	}
	return text(string(b)), nil
}

// fields reads an item's attributes; the first that is missing or of another type makes its err.
type fields struct {
	item item
	err  error
}

func (f *fields) fail(name, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("attribute %s is not %s", name, want)
	}
}

func (f *fields) text(name string) string {
	v, ok := f.item[name].(*types.AttributeValueMemberS)
	if !ok {
		f.fail(name, "a string")
		return ""
	}
	return v.Value
}

func (f *fields) number(name string) uint64 {
	if v, ok := f.item[name].(*types.AttributeValueMemberN); ok {
		if n, err := strconv.ParseUint(v.Value, 10, 64); err == nil {
			return n
		}
	}
	f.fail(name, "a number of 64 bits")
	return 0
}

func (f *fields) bytes(name string) []byte {
	v, ok := f.item[name].(*types.AttributeValueMemberB)
	if !ok {
		f.fail(name, "binary")
		return nil
	}
	return v.Value
}

func (f *fields) members() []barrier.MemberID {
	list, ok := f.item[attrMembers].(*types.AttributeValueMemberL)
	if !ok {
		f.fail(attrMembers, "a list")
		return nil
	}
	members := make([]barrier.MemberID, 0, len(list.Value))
	for _, v := range list.Value {
		m, ok := v.(*types.AttributeValueMemberS)
		if !ok {
			f.fail(attrMembers, "a list of strings")
			return nil
		}
		members = append(members, barrier.MemberID(m.Value))
	}
	return members
}

func (f *fields) document(v any) {
	if s := f.text(attrDocument); f.err == nil {
		f.err = json.Unmarshal([]byte(s), v, documents)
	}
}

func memberList(members []barrier.MemberID) types.AttributeValue {
	l := make([]types.AttributeValue, len(members))
	for i, m := range members {
		l[i] = text(string(m))
	}
	return &types.AttributeValueMemberL{Value: l}
}

// storedHead is the head with the nonce of the write that made it; "" when there is none yet.
type storedHead struct {
	barrier.Head
	nonce string
}

// unchanged holds while nobody has changed the head since it was read.
func (h storedHead) unchanged() condition {
	if h.nonce == "" {
		return absent
	}
	return ifEqual(attrRevision, number(h.Revision))
}

func (s *Store) headItem(h barrier.Head, nonce string) (item, error) {
	doc, err := document(h)
	if err != nil {
		return nil, err
	}
	it := s.key(sortHead)
	it[attrFormat], it[attrRevision], it[attrNonce], it[attrDocument] = number(format), number(h.Revision), text(nonce), doc
	return it, nil
}

func decodeHead(it item) (h storedHead, err error) {
	if len(it) == 0 {
		return h, nil
	}
	f := fields{item: it}
	if n := f.number(attrFormat); f.err == nil && n != format {
		return h, fmt.Errorf("head: its format is %d, and this process knows %d: it needs another version", n, format)
	}
	h.nonce = f.text(attrNonce)
	f.document(&h.Head)
	if revision := f.number(attrRevision); f.err == nil && revision != h.Revision {
		f.err = fmt.Errorf("attribute %s is %d, and the document's %d", attrRevision, revision, h.Revision)
	}
	if f.err == nil && h.nonce == "" {
		f.err = errors.New("it has no nonce")
	}
	if f.err != nil {
		return storedHead{}, fmt.Errorf("head: %w", f.err)
	}
	return h, nil
}

func (s *Store) rosterItem(r barrier.Roster, nonce string) item {
	it := s.key(sortRoster)
	it[attrRevision], it[attrMembers], it[attrNonce] = number(r.Revision), memberList(r.Members), text(nonce)
	return it
}

func decodeRoster(it item) (barrier.Roster, error) {
	if len(it) == 0 {
		return barrier.Roster{}, nil
	}
	f := fields{item: it}
	r := barrier.Roster{Revision: f.number(attrRevision), Members: f.members()}
	if f.err != nil {
		return barrier.Roster{}, fmt.Errorf("roster: %w", f.err)
	}
	return r, nil
}

// storedSeat is a seat with the nonces of the writes that made its two items.
type storedSeat struct {
	barrier.Seat
	registrationNonce, ballotNonce string
}

func (s *Store) registrationItem(m barrier.MemberID, r barrier.Registration, nonce string) item {
	it := s.key(registrationSort(m))
	it[attrBoot], it[attrIncarnation], it[attrJoined] = text(string(r.Boot)), number(r.Incarnation), number(r.Joined)
	it[attrNonce] = text(nonce)
	return it
}

func (seat *storedSeat) decodeRegistration(it item) error {
	if len(it) == 0 {
		return nil
	}
	f := fields{item: it}
	seat.registrationNonce = f.text(attrNonce)
	seat.Registration = barrier.Registration{
		Boot:        barrier.BootID(f.text(attrBoot)),
		Incarnation: f.number(attrIncarnation),
		Joined:      f.number(attrJoined),
	}
	if f.err != nil {
		return fmt.Errorf("registration of %s: %w", seat.Member, f.err)
	}
	return nil
}

func (s *Store) ballotItem(r barrier.Ref, m barrier.MemberID, b barrier.Ballot, nonce string) (item, error) {
	doc, err := document(b)
	if err != nil {
		return nil, err
	}
	it := s.key(ballotSort(r, m))
	it[attrDocument], it[attrNonce] = doc, text(nonce)
	return it, nil
}

func (seat *storedSeat) decodeBallot(it item) error {
	if len(it) == 0 {
		return nil
	}
	f := fields{item: it}
	seat.ballotNonce = f.text(attrNonce)
	f.document(&seat.Ballot)
	if f.err != nil {
		return fmt.Errorf("ballot of %s: %w", seat.Member, f.err)
	}
	return nil
}

func (s *Store) epochItem(r barrier.Ref, members []barrier.MemberID) item {
	it := s.key(epochSort(r))
	it[attrMembers] = memberList(members)
	return it
}

package dynamo

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
)

// The attributes of items; see the package comment.
const (
	attrPartition   = "pk"
	attrSort        = "sk"
	attrFormat      = "format"
	attrRevision    = "rev"
	attrNonce       = "nonce"
	attrDocument    = "doc"
	attrMembers     = "members"
	attrBoot        = "boot"
	attrIncarnation = "incarnation"
	attrJoined      = "joined"
	attrHolder      = "holder"
	attrToken       = "lease_token"
	attrTTL         = "lease_ms"
	attrUpload      = "upload"
	attrChunks      = "chunks"
	attrSize        = "bytes"
	attrSince       = "since_ms"
	attrBody        = "body"
)

// Sort keys and their prefixes, in the cohort's partition and in that of its artefacts.
const (
	sortHead           = "HEAD"
	sortRoster         = "ROSTER"
	sortLease          = "LEASE"
	prefixRegistration = "REGISTRATION#"
	prefixEpoch        = "EPOCH#"
	prefixBallot       = "BALLOT#"

	prefixManifest = "MANIFEST#"
	prefixChunk    = "CHUNK#"
	prefixUpload   = "UPLOAD#"
)

// item is an item's attributes by name.
type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func (s *Store) key(sort string) item {
	return item{attrPartition: text("COHORT#" + s.cohort), attrSort: text(sort)}
}

func (s *Store) artefactKey(sort string) item {
	return item{attrPartition: text("ARTEFACTS#" + s.cohort), attrSort: text(sort)}
}

// generationKey sorts as the numbers do.
func generationKey(prefix string, generation uint64) string {
	return fmt.Sprintf("%s%020d", prefix, generation)
}

func epochSort(r barrier.Ref) string {
	return generationKey(prefixEpoch, r.Generation) + "#" + string(r.ID)
}

func ballotsOf(r barrier.Ref) string {
	return generationKey(prefixBallot, r.Generation) + "#" + string(r.ID) + "#"
}

func ballotSort(r barrier.Ref, m barrier.MemberID) string { return ballotsOf(r) + string(m) }

func registrationSort(m barrier.MemberID) string { return prefixRegistration + string(m) }

func chunkSort(upload string, n int) string { return fmt.Sprintf("%s%s#%04d", prefixChunk, upload, n) }

// condition is what must hold of an item for a write to be done.
type condition struct {
	expression string
	values     item
}

// absent holds of an item that is not there.
var absent = condition{expression: "attribute_not_exists(" + attrPartition + ")"}

// ifEqual holds of an item whose attributes have these values: name, value, name, value…
func ifEqual(pairs ...any) condition {
	c := condition{values: item{}}
	var terms []string
	for i := 0; i < len(pairs); i += 2 {
		name, placeholder := pairs[i].(string), fmt.Sprintf(":is%d", i/2)
		terms = append(terms, name+" = "+placeholder)
		c.values[placeholder] = pairs[i+1].(types.AttributeValue)
	}
	c.expression = strings.Join(terms, " AND ")
	return c
}

// unchanged holds of an item that was read with this nonce; "" is of one that was not there.
func unchanged(nonce string) condition {
	if nonce == "" {
		return absent
	}
	return ifEqual(attrNonce, text(nonce))
}

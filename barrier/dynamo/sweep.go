package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
)

// The bounds of what one Propose deletes: more than one rollout leaves behind.
const (
	sweepItems     = 2 * barrier.MaxMembers // epochs and ballots
	sweepArtefacts = 16
	sweepBatch     = 25 // the most that one request deletes
	sweepTime      = 10 * time.Second
)

// sweep deletes what the newest rollout has made superfluous, as far as it comes: what is left is found by the
// next. A rollout's items can go when a later one was proposed: the head never points back, as its generation never falls.
func (s *Store) sweep(ctx context.Context, h barrier.Head) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	// Errors are not told: the proposal stands, and nothing is worse than before.
	budget := sweepItems
	for _, prefix := range []string{prefixEpoch, prefixBallot} {
		if s.sweepRollouts(ctx, prefix, h.Generation, &budget) != nil {
			return
		}
	}
	_ = s.sweepArtefacts(ctx, h)
}

func (s *Store) sweepRollouts(ctx context.Context, prefix string, before uint64, budget *int) error {
	q := query{
		partition: s.key("")[attrPartition], from: prefix, to: generationKey(prefix, before),
		attributes: []string{attrPartition, attrSort},
	}
	var keys []item
	flush := func() error {
		err := s.deleteAll(ctx, keys)
		keys = nil
		return err
	}
	err := s.all(ctx, q, func(it item) (bool, error) {
		if *budget == 0 {
			return false, nil
		}
		*budget--
		if keys = append(keys, it); len(keys) == sweepBatch {
			return true, flush()
		}
		return true, nil
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	return flush()
}

// deleteAll deletes up to 25 items.
func (s *Store) deleteAll(ctx context.Context, keys []item) error {
	requests := make([]types.WriteRequest, len(keys))
	for i, key := range keys {
		requests[i] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}
	}
	left := map[string][]types.WriteRequest{s.table: requests}
	for n := 0; len(left) > 0; n++ {
		if n > 0 {
			if err := pause(ctx, n+2); err != nil {
				return err
			}
		}
		out, err := read(ctx, s, func(ctx context.Context) (*dynamodb.BatchWriteItemOutput, error) {
			return s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left}, once)
		})
		if err != nil {
			return err
		}
		left = out.UnprocessedItems
	}
	return nil
}

// sweepArtefacts deletes artefacts that were put too long ago and that h does not name, and what uploads have left.
func (s *Store) sweepArtefacts(ctx context.Context, h barrier.Head) error {
	old := s.now().Add(-barrier.ArtefactRetention - s.margin())
	var digests []barrier.Digest
	var found []manifest
	err := s.all(ctx, withPrefix(s.artefactKey(""), prefixManifest), func(it item) (bool, error) {
		m, err := decodeManifest(it)
		if d := barrier.Digest(strings.TrimPrefix(sortOf(it), prefixManifest)); err == nil && m.since.Before(old) && !names(h, d) {
			digests, found = append(digests, d), append(found, m)
		}
		return len(found) < sweepArtefacts, nil
	})
	if err != nil {
		return err
	}
	for i, m := range found {
		limited, cancel := context.WithTimeout(ctx, s.o.RequestTimeout)
		// Not if it was put again, nor if a proposal may name it meanwhile.
		err := s.write(limited,
			remove(s.artefactKey(manifestSort(digests[i])), unchanged(m.nonce)),
			put(s.uploadItem(m), condition{}),
			checkThat(s.key(sortHead), ifEqual(attrRevision, number(h.Revision))))
		cancel()
		if err != nil {
			return err
		}
		if err := s.discard(ctx, m); err != nil {
			return err
		}
	}
	return s.sweepUploads(ctx, old)
}

func (s *Store) sweepUploads(ctx context.Context, old time.Time) error {
	var found []manifest
	err := s.all(ctx, withPrefix(s.artefactKey(""), prefixUpload), func(it item) (bool, error) {
		f := fields{item: it}
		m := manifest{
			upload: strings.TrimPrefix(sortOf(it), prefixUpload),
			chunks: int(f.number(attrChunks)), since: time.UnixMilli(int64(f.number(attrSince))),
		}
		if f.err == nil && m.since.Before(old) {
			found = append(found, m)
		}
		return len(found) < sweepArtefacts, nil
	})
	if err != nil {
		return err
	}
	for _, m := range found {
		if err := s.discard(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// names tells whether the row refers to d: members may ask for it.
func names(h barrier.Head, d barrier.Digest) bool {
	return d == h.Committed.Digest || h.Rollout != nil && d == h.Rollout.Digest || h.Previous != nil && d == h.Previous.Digest
}

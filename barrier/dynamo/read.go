package dynamo

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Current returns the whole row. It costs two reads of the head, one each of roster and epoch, and the sizes of the
// registrations and ballots: about 2 read units for each 10 members.
func (s *Store) Current(ctx context.Context) (barrier.Row, error) {
	var row barrier.Row
	h, err := s.steady(ctx, func(h storedHead) error {
		return together(
			func() (err error) { row.Roster, err = s.roster(ctx); return err },
			func() (err error) { row.Seats, err = s.seats(ctx, h.Rollout); return err },
		)
	})
	if err != nil {
		return barrier.Row{}, fmt.Errorf("read row: %w", err)
	}
	row.Head, row.Now, row.Margin = h.Head, s.now(), s.margin()
	return row, nil
}

// Look returns the row as m needs it, for 4 read units or so, and once for each rollout the size of its epoch.
func (s *Store) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	if err := barrier.CheckMember(m, "any"); err != nil {
		return barrier.View{}, err
	}
	var (
		seat storedSeat
		v    barrier.View
	)
	h, err := s.steady(ctx, func(h storedHead) (err error) {
		seat, v.InEpoch, err = s.seat(ctx, h, m)
		return err
	})
	if err != nil {
		return barrier.View{}, fmt.Errorf("read row for %s: %w", m, err)
	}
	v.Head, v.Registration, v.Ballot, v.Now = h.Head, seat.Registration, seat.Ballot, s.now()
	return v, nil
}

// Watch polls, since the table tells nobody: TopicHead for one read unit each Options.Poll; TopicVotes for the same and,
// while a rollout is open, the sizes of its ballots and of the registrations, which is about what Current costs.
func (s *Store) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		ticker := time.NewTicker(s.o.Poll)
		defer ticker.Stop()
		var last uint64
		known := false // at first anything may have changed since the caller looked
		for {
			if print, ok := s.fingerprint(ctx, t); ok {
				if !known || print != last {
					select {
					case hints <- struct{}{}:
					default: // the one before it was not taken yet
					}
				}
				last, known = print, true
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return hints
}

// fingerprint is another after the topic's part of the row has changed; false when it could not be read.
func (s *Store) fingerprint(ctx context.Context, t barrier.Topic) (uint64, bool) {
	h, err := s.head(ctx)
	if err != nil {
		return 0, false
	}
	if t == barrier.TopicHead {
		return h.Revision, true
	}
	sum := fnv.New64a()
	if h.Rollout == nil || !h.Rollout.Open() {
		return sum.Sum64(), true
	}
	for _, prefix := range []string{prefixRegistration, ballotsOf(h.Rollout.Ref)} {
		q := withPrefix(s.key(""), prefix)
		q.attributes = []string{attrNonce}
		err := s.all(ctx, q, func(it item) (bool, error) {
			if n, ok := it[attrNonce].(*types.AttributeValueMemberS); ok {
				_, _ = sum.Write([]byte(n.Value)) // a hash takes everything
			}
			return true, nil
		})
		if err != nil {
			return 0, false
		}
	}
	return sum.Sum64(), true
}

package dynamo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
)

func (s *Store) head(ctx context.Context) (storedHead, error) {
	it, err := s.get(ctx, s.key(sortHead))
	if err != nil {
		return storedHead{}, fmt.Errorf("read head: %w", err)
	}
	return decodeHead(it)
}

func (s *Store) roster(ctx context.Context) (barrier.Roster, error) {
	it, err := s.get(ctx, s.key(sortRoster))
	if err != nil {
		return barrier.Roster{}, fmt.Errorf("read roster: %w", err)
	}
	return decodeRoster(it)
}

// epoch is who votes on a rollout; it never changes.
type epoch struct {
	of      barrier.Ref
	members []barrier.MemberID // sorted
}

func (e epoch) has(m barrier.MemberID) bool {
	_, ok := slices.BinarySearch(e.members, m)
	return ok
}

// epochOf reads ro's epoch, which is in the table since before the head named ro, and until a later rollout has
// been proposed.
func (s *Store) epochOf(ctx context.Context, ro *barrier.Rollout) (epoch, error) {
	if ro == nil {
		return epoch{}, nil
	}
	s.mu.Lock()
	last := s.epoch
	s.mu.Unlock()
	if last.of == ro.Ref {
		return last, nil
	}
	it, err := s.get(ctx, s.key(epochSort(ro.Ref)))
	if err != nil {
		return epoch{}, fmt.Errorf("read epoch: %w", err)
	}
	f := fields{item: it}
	e := epoch{of: ro.Ref, members: f.members()}
	if f.err != nil {
		return epoch{}, fmt.Errorf("epoch of %v: %w", ro.Ref, f.err)
	}
	s.mu.Lock()
	s.epoch = e
	s.mu.Unlock()
	return e, nil
}

// together calls all of them at once, waits for all, and returns what went wrong.
func together(calls ...func() error) error {
	errs := make([]error, len(calls))
	var wait sync.WaitGroup
	for i, call := range calls {
		wait.Go(func() { errs[i] = call() })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// seats reads all seats of ro's epoch, sorted by member.
func (s *Store) seats(ctx context.Context, ro *barrier.Rollout) ([]barrier.Seat, error) {
	if ro == nil {
		return nil, nil
	}
	e, err := s.epochOf(ctx, ro)
	if err != nil {
		return nil, err
	}
	stored := make([]storedSeat, len(e.members))
	for i, m := range e.members {
		stored[i].Member = m
	}
	// The two decode different fields of the seats.
	each := func(prefix string, decode func(*storedSeat, item) error) func() error {
		return func() error {
			return s.all(ctx, withPrefix(s.key(""), prefix), func(it item) (bool, error) {
				m := barrier.MemberID(strings.TrimPrefix(sortOf(it), prefix))
				if i, ok := slices.BinarySearch(e.members, m); ok {
					return true, decode(&stored[i], it)
				}
				return true, nil // of a former member
			})
		}
	}
	if err := together(each(prefixRegistration, (*storedSeat).decodeRegistration), each(ballotsOf(ro.Ref), (*storedSeat).decodeBallot)); err != nil {
		return nil, fmt.Errorf("read seats: %w", err)
	}
	seats := make([]barrier.Seat, len(stored))
	for i := range stored {
		seats[i] = stored[i].Seat
	}
	return seats, nil
}

// seat reads m's registration and, if it is in the epoch of the head's rollout, its ballot; seated says whether it is.
func (s *Store) seat(ctx context.Context, h storedHead, m barrier.MemberID) (seat storedSeat, seated bool, err error) {
	seat.Member = m
	e, err := s.epochOf(ctx, h.Rollout)
	if err != nil {
		return seat, false, err
	}
	keys := []item{s.key(registrationSort(m))}
	if seated = e.has(m); seated {
		keys = append(keys, s.key(ballotSort(h.Rollout.Ref, m)))
	}
	items, err := s.getAll(ctx, keys...)
	if err != nil {
		return seat, seated, fmt.Errorf("read seat of %s: %w", m, err)
	}
	for _, it := range items {
		if sortOf(it) == registrationSort(m) {
			err = seat.decodeRegistration(it)
		} else {
			err = seat.decodeBallot(it)
		}
		if err != nil {
			return seat, seated, err
		}
	}
	return seat, seated, nil
}

// steady calls look with the head until nothing but votes has changed while it read, and returns that head.
//
// The table gives no instant over more than 100 items. What look reads under a head that stood before and after it belongs to
// that head: the roster is written with it, and epochs never change. Votes and registrations that came in meanwhile may
// be seen or not, each no older than the beginning; those that can undo what was seen move the Revision, and fail any
// decision that is made from here. So a Revision that moved for a vote alone does not matter.
func (s *Store) steady(ctx context.Context, look func(storedHead) error) (storedHead, error) {
	before, err := s.head(ctx)
	if err != nil {
		return storedHead{}, err
	}
	for range maxLooks {
		failed := look(before)
		if ctx.Err() != nil {
			return storedHead{}, errors.Join(ctx.Err(), failed)
		}
		after, err := s.head(ctx)
		if err != nil {
			return storedHead{}, err
		}
		if after.Revision == before.Revision {
			return before, failed
		}
		if failed == nil && sameButRevision(before.Head, after.Head) {
			return before, nil
		}
		before = after
	}
	return storedHead{}, fmt.Errorf("the row changed during each of %d reads", maxLooks)
}

func sameButRevision(a, b barrier.Head) bool {
	a.Revision = b.Revision
	return reflect.DeepEqual(a, b)
}

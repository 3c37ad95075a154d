package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
)

func (f *fixture) platform() control.Platform {
	f.Helper()
	p, err := f.store.Platform(f.ctx)
	f.ok(err)
	return p
}

// publication of a new version, to follow what p says is live.
func (f *fixture) publication(p control.Platform, version uint64) control.Publication {
	row := control.SnapshotRow{
		Version: version, ParentVersion: version - 1, ContentHash: fmt.Sprintf("%064x", version), CreatedBy: "ada@example.net",
		Message: fmt.Sprintf("version %d", version), CreatedAt: f.now(), Zones: int(version) * 3, KeyID: "8f2c1ab30d4e57f9",
	}
	sealed := seal.Sealed{
		Payload: fmt.Appendf(nil, "\x28\xb5\x2f\xfd payload of %d", version), PayloadBLAKE3: strings.Repeat("b", 64), Version: version,
		ContentHash: row.ContentHash, Signature: strings.Repeat("5", 128), KeyID: row.KeyID,
	}
	row.Bytes = int64(len(sealed.Payload))
	pub := f.activation(p, version, seal.KindApply)
	pub.Insert = &control.NewSnapshot{Row: row, Sealed: sealed}
	return pub
}

// activation of a stored version, to follow what p says is live.
func (f *fixture) activation(p control.Platform, version uint64, kind seal.ActivationKind) control.Publication {
	at := f.now()
	return control.Publication{
		SeenGeneration: p.Generation,
		Activation: seal.Activation{
			Platform: p.ID, Epoch: p.Epoch, Generation: p.Generation + 1, Kind: kind, Version: version,
			ContentHash: fmt.Sprintf("%064x", version), ParentGeneration: p.Generation, IssuedAt: at,
		},
		Signed: seal.SignedActivation(fmt.Sprintf("signed %d %d", p.Generation+1, version)),
		By:     "ada@example.net", At: at, Audit: f.entry("config." + string(kind)),
	}
}

// apply publishes a new version from the sequence.
func (f *fixture) apply() control.Publication {
	f.Helper()
	version, err := f.store.NextVersion(f.ctx)
	f.ok(err)
	pub := f.publication(f.platform(), version)
	f.ok(f.store.Publish(f.ctx, pub))
	return pub
}

// rollback activates a stored version.
func (f *fixture) rollback(version uint64) control.Publication {
	f.Helper()
	pub := f.activation(f.platform(), version, seal.KindRollback)
	f.ok(f.store.Publish(f.ctx, pub))
	return pub
}

// published is all that publishing moves, to compare before and after.
type published struct {
	Platform  control.Platform
	Revisions control.Revisions
	History   []control.SnapshotRow
	Audit     int
}

func (f *fixture) published() published {
	f.Helper()
	revisions, err := f.store.Revisions(f.ctx)
	f.ok(err)
	revisions.Now = time.Time{} // passes by itself
	history, err := f.store.History(f.ctx, control.Page{Limit: 1000})
	f.ok(err)
	return published{f.platform(), revisions, history, len(f.auditOf(f.ws))}
}

// publishFails holds that pub is refused and moves nothing. want nil is any error that is none of the port's.
func (f *fixture) publishFails(want error, pub control.Publication) {
	f.Helper()
	before := f.published()
	err := f.store.Publish(f.ctx, pub)
	switch {
	case err == nil:
		f.Fatal("published")
	case want != nil:
		f.fails(err, want)
	case errors.Is(err, control.ErrConflict) || errors.Is(err, control.ErrNotFound) || errors.Is(err, control.ErrExists):
		f.Fatalf("the error is %v, as if trying again could help", err)
	}
	f.same("what is published after a refusal", f.published(), before)
}

var publishClauses = []clause{
	{name: "before the first publication nothing is live", alone: true, run: func(f *fixture) {
		p := f.platform()
		if _, err := uuid.Parse(p.ID); err != nil || p.ID != strings.ToLower(p.ID) {
			f.Errorf("the platform's id %q is no lower-case UUID: %v", p.ID, err)
		}
		f.same("platform", p, control.Platform{ID: p.ID, Epoch: 1, Generation: 0})
		_, err := f.store.Live(f.ctx)
		f.fails(err, control.ErrNotFound)
		_, err = f.store.Sealed(f.ctx, 1)
		f.fails(err, control.ErrNotFound)
		_, err = f.store.SnapshotByVersion(f.ctx, 1)
		f.fails(err, control.ErrNotFound)
		if s := f.published(); len(s.History) != 0 {
			f.Errorf("history is %v", s.History)
		}
	}},
	{name: "a publication is live with all its members", alone: true, run: func(f *fixture) {
		pub := f.apply()
		want := pub.Insert.Row
		want.ActivatedAt, want.Generations = pub.At, []uint64{1}
		want.Epoch, want.Activation, want.Kind = 1, pub.Signed, seal.KindApply
		live, err := f.store.Live(f.ctx)
		f.ok(err)
		f.same("live", live, want)
		row, err := f.store.SnapshotByVersion(f.ctx, want.Version)
		f.ok(err)
		f.same("by version", row, want)
		sealed, err := f.store.Sealed(f.ctx, want.Version)
		f.ok(err)
		f.same("sealed", sealed, pub.Insert.Sealed)
		f.same("generation", f.platform().Generation, uint64(1))
		if entries := f.auditOf(f.ws); entries[0].ID != pub.Audit.ID {
			f.Errorf("the newest audit entry is %+v", entries[0])
		}
	}},
	{name: "a payload of many megabytes is kept byte for byte", alone: true, run: func(f *fixture) {
		pub := f.publication(f.platform(), 1)
		payload := make([]byte, 24<<20)
		for i := range payload {
			payload[i] = byte(i * i >> 7)
		}
		pub.Insert.Sealed.Payload, pub.Insert.Row.Bytes = payload, int64(len(payload))
		f.ok(f.store.Publish(f.ctx, pub))
		sealed, err := f.store.Sealed(f.ctx, 1)
		f.ok(err)
		if !bytes.Equal(sealed.Payload, payload) {
			f.Error("the payload differs")
		}
		live, err := f.store.Live(f.ctx)
		f.ok(err)
		f.same("bytes", live.Bytes, int64(len(payload)))
	}},
	{name: "another generation than the one seen is ErrConflict and nothing is written", alone: true, run: func(f *fixture) {
		empty := f.platform()
		f.apply()
		f.publishFails(control.ErrConflict, f.publication(empty, 900))
		f.publishFails(control.ErrConflict, f.activation(empty, 1, seal.KindRollback))
		ahead := f.platform()
		ahead.Generation += 5
		f.publishFails(control.ErrConflict, f.publication(ahead, 900))
	}},
	{name: "another epoch is ErrConflict, another platform an error", alone: true, run: func(f *fixture) {
		f.apply()
		p := f.platform()
		p.Epoch++
		f.publishFails(control.ErrConflict, f.publication(p, 900))
		p = f.platform()
		p.ID = id()
		f.publishFails(nil, f.publication(p, 900))
	}},
	{name: "a version that stands cannot be inserted, one that does not cannot be activated", alone: true, run: func(f *fixture) {
		first := f.apply()
		f.publishFails(control.ErrExists, f.publication(f.platform(), first.Activation.Version))
		f.publishFails(control.ErrNotFound, f.activation(f.platform(), 900, seal.KindRollback))
	}},
	{name: "a publication that contradicts itself is refused", alone: true, run: func(f *fixture) {
		f.apply()
		for name, spoil := range map[string]func(*control.Publication){
			"generation not after the one seen": func(p *control.Publication) { p.Activation.Generation = p.SeenGeneration },
			"version of row":                    func(p *control.Publication) { p.Insert.Row.Version++ },
			"version of artefact":               func(p *control.Publication) { p.Insert.Sealed.Version++ },
			"content hash":                      func(p *control.Publication) { p.Insert.Sealed.ContentHash = strings.Repeat("f", 64) },
			"content hash that is none": func(p *control.Publication) {
				p.Insert.Row.ContentHash, p.Insert.Sealed.ContentHash = "none", "none"
			},
			"kind": func(p *control.Publication) { p.Activation.Kind = "coup" },
			"time": func(p *control.Publication) { p.At = time.Time{} },
		} {
			f.Log(name)
			pub := f.publication(f.platform(), 900)
			spoil(&pub)
			f.publishFails(nil, pub)
		}
	}},
	{name: "activating an older version makes it live again", alone: true, run: func(f *fixture) {
		first, second := f.apply(), f.apply()
		back := f.rollback(first.Activation.Version)
		live, err := f.store.Live(f.ctx)
		f.ok(err)
		want := first.Insert.Row
		want.ActivatedAt, want.Generations = back.At, []uint64{1, 3}
		want.Epoch, want.Activation, want.Kind = 1, back.Signed, seal.KindRollback
		f.same("live", live, want)
		old, err := f.store.SnapshotByVersion(f.ctx, second.Activation.Version)
		f.ok(err)
		want = second.Insert.Row // not active, so without a time, but with its history
		want.Generations, want.Epoch, want.Activation, want.Kind = []uint64{2}, 1, second.Signed, seal.KindApply
		f.same("the version before", old, want)
		f.same("generation", f.platform().Generation, uint64(3))
	}},
	{name: "the live version can be activated anew", alone: true, run: func(f *fixture) {
		first := f.apply()
		f.ok(f.store.Publish(f.ctx, f.activation(f.platform(), first.Activation.Version, seal.KindConfirmed)))
		live, err := f.store.Live(f.ctx)
		f.ok(err)
		f.same("generations", live.Generations, []uint64{1, 2})
		f.same("kind", live.Kind, seal.KindConfirmed)
	}},
	{name: "of many publishers of a generation exactly one wins, and readers always see one live row", alone: true, run: racePublishers},
	{name: "a version is given once, to whoever asks at once", alone: true, run: func(f *fixture) {
		var (
			mu   sync.Mutex
			seen = map[uint64]bool{}
		)
		for _, err := range atOnce(8, func(int) error {
			last := uint64(0)
			for range 25 {
				v, err := f.store.NextVersion(f.ctx)
				if err != nil {
					return err
				}
				mu.Lock()
				again := seen[v]
				seen[v] = true
				mu.Unlock()
				if again || v <= last {
					return fmt.Errorf("version %d after %d; given before: %t", v, last, again)
				}
				last = v
			}
			return nil
		}) {
			f.ok(err)
		}
	}},
	{name: "a version that came to nothing is not given again", alone: true, run: func(f *fixture) {
		stale := f.platform()
		f.apply()
		lost, err := f.store.NextVersion(f.ctx)
		f.ok(err)
		f.publishFails(control.ErrConflict, f.publication(stale, lost))
		if next := f.apply(); next.Activation.Version <= lost {
			f.Errorf("version %d after %d was lost", next.Activation.Version, lost)
		}
	}},
	{name: "every activation is told, also of what is live no more", alone: true, run: func(f *fixture) {
		f.activated(1, 1, nil)
		first := f.apply()
		f.apply()
		p := f.platform()
		f.ok(f.store.Publish(f.ctx, f.activation(p, first.Activation.Version, seal.KindRollback)))
		second, err := f.store.SnapshotByVersion(f.ctx, 2)
		f.ok(err)
		f.activated(1, 1, &first.Insert.Row)
		f.activated(1, 2, &second)
		f.activated(1, 3, &first.Insert.Row)
		for _, never := range [][2]uint64{{1, 0}, {1, 4}, {2, 1}, {1, 1 << 63}} {
			f.activated(never[0], never[1], nil)
		}
	}},
}

// activated holds what Activated says of an activation.
func (f *fixture) activated(epoch, generation uint64, want *control.SnapshotRow) {
	f.Helper()
	version, hash, err := f.store.Activated(f.ctx, epoch, generation)
	if want == nil {
		f.fails(err, control.ErrNotFound)
		return
	}
	f.ok(err)
	f.same("version of an activation", version, want.Version)
	f.same("content of an activation", hash, want.ContentHash)
}

func racePublishers(f *fixture) {
	const publishers, rounds = 6, 8
	f.apply()
	stop, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- watchLive(f, stop) }()
	for range rounds {
		p := f.platform()
		pubs := make([]control.Publication, publishers)
		errs := atOnce(publishers, func(i int) error {
			version, err := f.store.NextVersion(f.ctx)
			if err != nil {
				return err
			}
			pubs[i] = f.publication(p, version)
			if i == 0 {
				pubs[i] = f.activation(p, 1, seal.KindRollback) // one of them rolls back
			}
			return f.store.Publish(f.ctx, pubs[i])
		})
		winner := f.winners(errs, control.ErrConflict)
		f.same("generation", f.platform().Generation, p.Generation+1)
		live, err := f.store.Live(f.ctx)
		f.ok(err)
		f.same("live version", live.Version, pubs[winner].Activation.Version)
		f.same("live activation", live.Activation, pubs[winner].Signed)
		for i, pub := range pubs {
			_, err := f.store.SnapshotByVersion(f.ctx, pub.Activation.Version)
			if i != winner && pub.Insert != nil {
				f.fails(err, control.ErrNotFound)
			}
			logged := slices.ContainsFunc(f.auditOf(f.ws), func(e control.AuditEntry) bool { return e.ID == pub.Audit.ID })
			if logged != (i == winner) {
				f.Errorf("publisher %d, winner %d: logged %t", i, winner, logged)
			}
		}
	}
	close(stop)
	f.ok(<-watched)
}

// watchLive reads until stop and returns an error when not exactly one row was active at some time, or
// the generation went down.
func watchLive(f *fixture, stop <-chan struct{}) error {
	var last uint64
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		live, err := f.store.Live(f.ctx)
		if err != nil {
			return err
		}
		generation := live.Generations[len(live.Generations)-1]
		if live.ActivatedAt.IsZero() || generation < last {
			return fmt.Errorf("live is %+v after generation %d", live, last)
		}
		last = generation
		history, err := f.store.History(f.ctx, control.Page{Limit: 1000})
		if err != nil {
			return err
		}
		active := 0
		for _, row := range history {
			if !row.ActivatedAt.IsZero() {
				active++
			}
		}
		if active != 1 {
			return fmt.Errorf("%d rows are active", active)
		}
	}
}

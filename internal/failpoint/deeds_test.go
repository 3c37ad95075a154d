package failpoint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// A deed comes to its points, in order; after those in after it has taken place.
type deed struct {
	name   string
	points []failpoint.Point
	after  []failpoint.Point
	edits  bool // it changes no history
	// prepare makes ready for one sending.
	prepare func(w *world, p failpoint.Point) try
}

// try is one sending of a deed, and the look at what is left of it, on a control plane that is not armed.
type try struct {
	do   func() error
	look func(happened bool)
}

func (w *world) deeds() []deed {
	committed := []failpoint.Point{failpoint.PublishCommitted}
	publishing := []failpoint.Point{
		failpoint.PublishBegin, failpoint.PublishGeneration, failpoint.PublishReplay, failpoint.PublishCleared,
		failpoint.PublishMoved, failpoint.PublishActivated, failpoint.PublishAudited, failpoint.PublishCommitted,
	}
	return []deed{
		{
			name: "apply", prepare: prepareApply, after: committed,
			points: append([]failpoint.Point{failpoint.VersionTaken, failpoint.VersionCommitted, failpoint.PublishInserted}, publishing...),
		},
		{name: "rollback", prepare: prepareRollback, after: committed, points: append([]failpoint.Point{failpoint.PublishResealed}, publishing...)},
		{
			name: "ack of a node that is ahead", prepare: prepareAhead, edits: true,
			points: []failpoint.Point{failpoint.AheadRecorded, failpoint.AheadCommitted}, after: []failpoint.Point{failpoint.AheadCommitted},
		},
		{
			name: "recover", prepare: prepareRecover, edits: true,
			points: []failpoint.Point{
				failpoint.RecoverEpoch, failpoint.RecoverLifted, failpoint.RecoverVersion, failpoint.RecoverAudited, failpoint.RecoverCommitted,
			},
			after: []failpoint.Point{failpoint.RecoverCommitted},
		},
		{name: "node add", prepare: prepareNode, edits: true, points: []failpoint.Point{failpoint.TokenInsert}},
		{
			name: "import", prepare: prepareImport, edits: true,
			points: []failpoint.Point{failpoint.RecordsRevised, failpoint.RecordsDeleted, failpoint.RecordsInserted, failpoint.RecordsAudited},
		},
		{name: "list set", prepare: prepareList, edits: true, points: []failpoint.Point{failpoint.ObjectRevised}},
		{
			name: "purge", prepare: preparePurge, edits: true,
			points: []failpoint.Point{
				failpoint.PurgeNumbered, failpoint.PurgeInserted, failpoint.PurgeDropped, failpoint.PurgeCommitted,
			},
			after: []failpoint.Point{failpoint.PurgeCommitted},
		},
		{name: "zone create", prepare: prepareZone, edits: true, points: []failpoint.Point{failpoint.AuditAppended}},
	}
}

func prepareApply(w *world, _ failpoint.Point) try {
	w.edit()
	return w.once("/v1/config/apply", `{"message":"armed","accept_disruption":true}`)
}

// prepareRollback goes back to the parent; to come to the seal, to a version that the first key sealed.
func prepareRollback(w *world, p failpoint.Point) try {
	body := `{"accept_disruption":true}`
	if p == failpoint.PublishResealed {
		body = fmt.Sprintf(`{"accept_disruption":true,"version":%d}`, w.old[0])
		w.old = w.old[1:]
	}
	return w.once("/v1/config/rollback", body)
}

// once sends under one key, and after the restart twice more.
func (w *world) once(path, body string) try {
	key := uuid.NewString()
	generation := w.node.act.Generation
	var armed answer
	return try{
		do: func() (err error) {
			armed, err = w.post(path, key, body)
			return err
		},
		look: func(happened bool) {
			w.t.Helper()
			first, err := w.post(path, key, body)
			must(w.t, "sent again", err)
			again, err := w.post(path, key, body)
			must(w.t, "sent a third time", err)
			if first.status != 200 || first.replayed != happened || !again.replayed || again.body != first.body || again.status != 200 {
				w.t.Errorf("the answers under one key:\n%+v\n%+v", first, again)
			}
			if armed.status == 200 && armed.body != first.body {
				w.t.Errorf("the first answer was\n%s\nand is now\n%s", armed.body, first.body)
			}
			if got := first.result(); got.Generation != generation+1 {
				w.t.Errorf("generation %d follows %d: %s", got.Generation, generation, first.body)
			}
			w.node.follow(w)
			if got := first.result(); got.Version != w.node.act.Version || got.Generation != w.node.act.Generation {
				w.t.Errorf("the answer tells of version %d, generation %d; the node got %+v", got.Version, got.Generation, w.node.act)
			}
		},
	}
}

// stopped has an apply refused, because a node is ahead.
func (w *world) stopped() {
	w.t.Helper()
	if _, err := w.client.Apply(w.t.Context(), api.ApplyRequest{Reseal: true}); !isCode(err, "ahead_node") {
		w.t.Fatalf("an apply with a node ahead: %v", err)
	}
}

func (w *world) recover() {
	w.t.Helper()
	res, err := w.client.Recover(w.t.Context(), api.RecoverRequest{BumpEpoch: true})
	must(w.t, "recover", err)
	if res.EpochBefore != w.epoch || res.Epoch != w.epoch+1 || res.Ahead == nil {
		w.t.Fatalf("recover in epoch %d: %+v", w.epoch, res)
	}
	w.epoch = res.Epoch
}

func prepareAhead(w *world, _ failpoint.Point) try {
	proof := w.proof()
	show := func() error { return w.liar.Ack(w.t.Context(), proof) }
	return try{
		do: func() error {
			if err := show(); err == nil {
				return errors.New("the ack was taken")
			} else {
				return err
			}
		},
		look: func(happened bool) {
			w.t.Helper()
			if !happened {
				w.publish()
			}
			for range 2 { // the first may be the second sending
				if happened {
					w.stopped()
				}
				if err := show(); !errors.Is(err, nodeproto.ErrAhead) {
					w.t.Errorf("the proof is answered %v", err)
				}
				happened = true
			}
			w.stopped()
			w.ahead++
			w.recover()
		},
	}
}

func prepareRecover(w *world, _ failpoint.Point) try {
	if err := w.liar.Ack(w.t.Context(), w.proof()); !errors.Is(err, nodeproto.ErrAhead) {
		w.t.Fatalf("the proof is answered %v", err)
	}
	w.ahead++
	return try{
		do: func() error {
			_, err := w.client.Recover(w.t.Context(), api.RecoverRequest{BumpEpoch: true})
			return err
		},
		look: func(happened bool) {
			w.t.Helper()
			if happened {
				w.epoch++
				return
			}
			w.stopped()
			w.recover()
		},
	}
}

func prepareNode(w *world, _ failpoint.Point) try {
	name := "n" + uuid.NewString()[:8]
	add := func() (*api.CreatedNode, error) { return w.client.CreateNode(w.t.Context(), api.NewNode{Name: name}) }
	return try{
		do: func() error { return second(add()) },
		look: func(bool) {
			w.t.Helper()
			for n, err := range api.All(w.t.Context(), w.client.Nodes) {
				must(w.t, "nodes", err)
				if n.Name == name {
					w.t.Error("a node stands without a token")
				}
			}
			n, err := add()
			must(w.t, "node add again", err)
			must(w.t, "its poll", second(w.nodeClient(n.Secret).Poll(w.t.Context(), nodeproto.Poll{})))
		},
	}
}

// prepareImport replaces a record, changes another's TTL and adds one.
func prepareImport(w *world, _ failpoint.Point) try {
	export := func() string {
		var b bytes.Buffer
		must(w.t, "export", w.client.ExportZone(w.t.Context(), &b, "example.com"))
		return b.String()
	}
	before := export()
	revision := w.revision()
	file := "$TTL 60\n"
	for _, name := range []string{"a", "b"} {
		file += fmt.Sprintf("%s TXT \"%s\"\n", name, uuid.NewString())
	}
	file += fmt.Sprintf("r%d 77 TXT \"v\"\n", w.edits)
	load := func() error {
		return second(w.client.ImportZone(w.t.Context(), "example.com", strings.NewReader(file), api.ImportOptions{Replace: true}))
	}
	return try{
		do: load,
		look: func(bool) {
			w.t.Helper()
			if diff := cmp.Diff(before, export()); diff != "" || w.revision() != revision {
				w.t.Errorf("half an import, at revision %d of %d (-before +after):\n%s", w.revision(), revision, diff)
			}
			must(w.t, "import again", load())
			if got := strings.Count(export(), "TXT"); got != 3 {
				w.t.Errorf("%d TXT records after an import of 3:\n%s", got, export())
			}
			z, err := w.client.Zone(w.t.Context(), "example.com")
			must(w.t, "zone", err)
			if z.Records != 3 {
				w.t.Errorf("the zone counts %d records", z.Records)
			}
			w.publish()
		},
	}
}

func (w *world) revision() int64 {
	w.t.Helper()
	z, err := w.client.Zone(w.t.Context(), "example.com")
	must(w.t, "zone", err)
	return z.Revision
}

// preparePurge has a node at the end of the log: what was committed and told to nobody comes to it once, what was not leaves no
// gap.
func preparePurge(w *world, _ failpoint.Point) try {
	trusted, err := seal.Trust(w.key.Public())
	must(w.t, "trust", err)
	node := w.newNode("n" + uuid.NewString()[:8])
	ask := func(after *seal.PurgeMark) seal.PurgeStatement {
		w.t.Helper()
		text, err := node.Purges(w.t.Context(), after)
		must(w.t, "purges", err)
		st, err := seal.VerifyPurges(text, trusted, after)
		must(w.t, "their statement", err)
		return st
	}
	end := ask(nil).To
	tag := uuid.NewString()
	purge := func(tag string) error {
		return second(w.client.Purge(w.t.Context(), "example.com", api.NewPurge{Kind: "tag", Values: []string{tag}}))
	}
	return try{do: func() error { return purge(tag) }, look: func(happened bool) {
		w.t.Helper()
		want := []string{"after"}
		if happened {
			want = []string{tag, "after"}
		}
		must(w.t, "purge again", purge("after"))
		var got []string
		for i, p := range ask(&end).Purges {
			if p.Sequence != end.Sequence+uint64(i)+1 {
				w.t.Errorf("purge %d is number %d after %d", i, p.Sequence, end.Sequence)
			}
			got = append(got, p.Values...)
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("the node hears of %q, want %q", got, want)
		}
	}}
}

func prepareList(w *world, _ failpoint.Point) try {
	revision := w.revision()
	put := func() error {
		_, _, err := w.client.PutList(w.t.Context(), "example.com", "office", zone.List{Kind: zone.ListIP, Items: []string{"192.0.2.1"}}, api.WriteOptions{})
		return err
	}
	return try{do: put, look: func(bool) {
		w.t.Helper()
		if got := w.revision(); got != revision {
			w.t.Errorf("the zone is at revision %d, not %d", got, revision)
		}
		must(w.t, "list set again", put())
	}}
}

func prepareZone(w *world, _ failpoint.Point) try {
	name := "z" + uuid.NewString()[:8] + ".example"
	create := func() error { return second(w.client.CreateZone(w.t.Context(), api.NewZone{Name: name})) }
	return try{do: create, look: func(bool) {
		w.t.Helper()
		if _, err := w.client.Zone(w.t.Context(), name); !isCode(err, "not_found") {
			w.t.Errorf("a zone stands that no audit entry tells of: %v", err)
		}
		must(w.t, "zone create again", create())
		count := slices.ContainsFunc(w.state().audit, func(a api.AuditEntry) bool { return a.Action == "zone.create" && a.Target == name })
		if !count {
			w.t.Error("no audit entry tells of the zone")
		}
	}}
}

// number is a member of an audit entry's detail.
func number(detail []byte, member string) uint64 {
	var d map[string]json.RawMessage
	var n uint64
	if json.Unmarshal(detail, &d) != nil || json.Unmarshal(d[member], &n) != nil {
		return 0
	}
	return n
}

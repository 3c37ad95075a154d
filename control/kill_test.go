package control_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// childEnv holds the deed of a process that is to be killed in it.
const childEnv = "GUARDYN_TEST_DEED"

type killed struct {
	URL, Key string
	Deed     string
	Ref      barrier.Ref
	Operator control.Principal
	Members  []control.Principal
	Boots    map[string]barrier.BootID
}

// deeds change the platform's rows and the cohort's at once.
func (f *fleet) deed(name string, ref barrier.Ref) error {
	ctx := f.t.Context()
	switch name {
	case "direct":
		_, err := f.svc.Apply(ctx, f.operator, control.ApplyRequest{AcceptDisruption: true})
		return err
	case "propose", "propose a trial":
		window := time.Duration(0)
		if name != "propose" {
			window = time.Hour
		}
		_, err := f.svc.Apply(ctx, f.operator, control.ApplyRequest{AcceptDisruption: true, Rollout: coordinated(window)})
		return err
	case "abort":
		return f.cohort.Abort(ctx, ref, barrier.ByClaim(1), "no")
	case "commit":
		return f.cohort.Commit(ctx, ref, 1)
	case "confirm":
		return f.confirms(f.cohort, ref)
	case "revert":
		return f.cohort.Revert(ctx, ref, barrier.ByClaim(1), "no")
	case "drain":
		_, err := f.svc.DrainNode(ctx, f.operator, "spare")
		return err
	case "undrain":
		_, err := f.svc.UndrainNode(ctx, f.operator, "spare")
		return err
	}
	panic(name)
}

// TestKilledProcess is the process that is killed; by itself it does nothing.
func TestKilledProcess(t *testing.T) {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var k killed
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	key, err := seal.ParseSigningKey(k.Key)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{
		t: t, world: &world{url: k.URL, key: key, operator: k.Operator, clock: &clock{t: time.Now()}},
		members: k.Members, boots: k.Boots, token: 1,
	}
	f.svc, f.store, f.cohort = f.process(t, nil)
	t.Errorf("it lives: %v", f.deed(k.Deed, k.Ref))
}

// both is all that a decision moves, of the platform and of the cohort.
type both struct {
	Platform control.Platform
	History  []control.SnapshotRow
	Head     barrier.Head
	Roster   barrier.Roster
	Audit    int
}

func (f *fleet) both() (b both) {
	f.t.Helper()
	var err error
	b.Platform, err = f.store.Platform(f.t.Context())
	f.ok(err)
	b.History, err = f.store.History(f.t.Context(), control.Page{Limit: 1000})
	f.ok(err)
	entries, err := f.store.ListAudit(f.t.Context(), "", control.Page{Limit: 1000})
	f.ok(err)
	row := f.row()
	b.Head, b.Roster, b.Audit = row.Head, row.Roster, len(entries)
	return b
}

// A process that is killed at any step of a transaction that changes both leaves both as they were; what was committed stands
// in both.
func TestKilledInADecision(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "control.test")
	if out, err := exec.Command("go", "test", "-c", "-tags", "failpoint", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build with failpoints: %v\n%s", err, out)
	}
	decided := []failpoint.Point{failpoint.DecideBegin, failpoint.DecideAudited}
	published := append(decided, failpoint.PublishGeneration, failpoint.PublishCleared, failpoint.PublishMoved, failpoint.PublishActivated, failpoint.DecidePublished)
	proposed := []failpoint.Point{
		failpoint.RolloutProposed, failpoint.RolloutInserted, failpoint.RolloutKept, failpoint.RolloutAudited, failpoint.RolloutCommitted,
	}
	steps := []struct {
		deed   string
		points []failpoint.Point
	}{
		{"direct", []failpoint.Point{failpoint.PublishAdvanced, failpoint.PublishAudited, failpoint.PublishCommitted}},
		{"propose", proposed},
		{"abort", decided},
		{"propose", nil},
		{"commit", published},
		{"propose a trial", proposed[:1]},
		{"commit", append(decided, failpoint.DecideProvisional)},
		{"confirm", published},
		{"propose a trial", nil},
		{"commit", nil},
		{"revert", published},
		{"undrain", []failpoint.Point{failpoint.RosterChanged}},
		{"drain", []failpoint.Point{failpoint.RosterChanged}},
	}
	after := map[failpoint.Point]bool{failpoint.RolloutCommitted: true, failpoint.PublishCommitted: true}
	fleets(t, 1, func(f *fleet) {
		f.node(f.t, "spare")
		var ref barrier.Ref
		for _, s := range steps {
			switch s.deed {
			case "commit":
				f.ack(ref)
			case "direct", "propose", "propose a trial":
				f.edit()
			}
			done := false
			for _, p := range s.points {
				before := f.both()
				f.kill(binary, p, killed{
					URL: f.url, Key: f.key.SecretHex(), Deed: s.deed, Ref: ref, Operator: f.operator, Members: f.members, Boots: f.boots,
				})
				if done = after[p]; done {
					break
				}
				if diff := cmp.Diff(before, f.both(), cmp.AllowUnexported(zone.Name{})); diff != "" {
					f.t.Fatalf("%s, killed at %s, left something behind (-before +after):\n%s", s.deed, p, diff)
				}
			}
			if !done {
				if err := f.deed(s.deed, ref); err != nil {
					f.t.Fatalf("%s: %v", s.deed, err)
				}
			}
			f.agrees()
			if ro := f.row().Rollout; ro != nil {
				ref = ro.Ref
			}
		}
		if live := f.liveRow(f.t); live.Kind != seal.KindReverted || f.row().Rollout.State != barrier.Reverted {
			f.t.Errorf("at the end: %+v", live)
		}
	})
}

// kill runs a process that is killed at a point of a deed.
func (f *fleet) kill(binary string, p failpoint.Point, k killed) {
	f.t.Helper()
	text, err := json.Marshal(k)
	f.ok(err)
	cmd := exec.Command(binary, "-test.run", "^TestKilledProcess$", "-test.timeout", "60s")
	cmd.Env = append(os.Environ(), childEnv+"="+string(text), "GUARDYN_TEST_FAILPOINT="+p.String()+"=kill")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || ws.Signal() != syscall.SIGKILL || !strings.Contains(out.String(), "failpoint "+p.String()+": kill\n") {
		f.t.Fatalf("%s was not killed at %s: %v\n%s", k.Deed, p, err, out.String())
	}
}

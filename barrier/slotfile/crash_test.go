package slotfile_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/slotfile"
	"github.com/guardyn-edge/guardyn/internal/durable"
)

// TestMain lets the test binary be the member's process that is killed: see TestKilledAtEveryStep.
func TestMain(m *testing.M) {
	if path := os.Getenv("SLOTFILE_TEST_DIR"); path != "" {
		diesThere(path, os.Getenv("SLOTFILE_TEST_CALL"), durable.Step(os.Getenv("SLOTFILE_TEST_STEP")))
	}
	os.Exit(m.Run())
}

func diesThere(path, call string, at durable.Step) {
	s, err := slotfile.Open(path)
	if err != nil {
		panic(err)
	}
	s.AfterStep(func(_ string, step durable.Step) error {
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
	ctx := context.Background()
	switch call {
	case "keep":
		err = s.Keep(ctx, digest(3), content(3))
	case "save":
		err = s.Save(ctx, barrier.Memory{Confirmed: pointer(2), Highest: 2})
	}
	panic(err) // it should not live so long
}

// TestKilledAtEveryStep: whatever the instant, the memory is the old or the new one, and the bytes that it names are there.
func TestKilledAtEveryStep(t *testing.T) {
	before, after := onTrial(1, 2), barrier.Memory{Confirmed: pointer(2), Highest: 2}
	tests := []struct {
		call   string
		step   durable.Step
		memory barrier.Memory
		holds  []uint64
	}{
		{"keep", durable.StepTemp, before, []uint64{1, 2}},
		{"keep", durable.StepSync, before, []uint64{1, 2}},
		{"keep", durable.StepRename, before, []uint64{1, 2, 3}},
		{"keep", durable.StepSyncDir, before, []uint64{1, 2, 3}},
		{"save", durable.StepTemp, before, []uint64{1, 2, 4}},
		{"save", durable.StepSync, before, []uint64{1, 2, 4}},
		{"save", durable.StepRename, after, []uint64{1, 2, 4}},
		{"save", durable.StepSyncDir, after, []uint64{1, 2, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.call+" at "+string(tt.step), func(t *testing.T) {
			path := t.TempDir()
			s := open(t, path)
			begin(t, s)
			keep(t, s, 4) // a candidate
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "SLOTFILE_TEST_DIR="+path, "SLOTFILE_TEST_CALL="+tt.call, "SLOTFILE_TEST_STEP="+string(tt.step))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process was not killed: %v\n%s", err, out)
			}
			s = open(t, path) // the lock died with it
			remembers(t, s, tt.memory)
			holds(t, s, tt.holds...)
			keep(t, s, 5)
			save(t, s, after)
			holds(t, s, 2) // and what the crash left behind is cleared away
		})
	}
}

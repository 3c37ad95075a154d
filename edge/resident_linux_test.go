package edge_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// residentVariable has this binary do what a node does with the snapshots of that directory, and nothing else.
const residentVariable = "GUARDYN_TEST_RESIDENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(residentVariable); dir != "" {
		if err := takeEach(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// takeEach takes the snapshots of dir one after the other and tells, a line for each, what the process has resident then, had at most,
// and has once its garbage is returned.
func takeEach(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	var served *snapshot.Snapshot
	var view *edge.View
	for i, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		next, err := snapshot.Parse(text, served)
		if err != nil {
			return err
		}
		if view, err = edge.Compile(view, next, uint64(i+1), edge.Options{}); err != nil {
			return err
		}
		served, text = next, nil
		now, peak, err := resident()
		if err != nil {
			return err
		}
		debug.FreeOSMemory()
		held, _, err := resident()
		if err != nil {
			return err
		}
		fmt.Println(now, peak, held)
	}
	runtime.KeepAlive([]any{served, view})
	return nil
}

// resident is what this process has resident, and had at most, in octets (proc_pid_status(5)).
func resident() (now, peak int64, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var n int64
		if name == "VmRSS" || name == "VmHWM" {
			if _, err := fmt.Sscanf(value, "%d kB", &n); err != nil {
				return 0, 0, fmt.Errorf("%s: %w", name, err)
			}
		}
		switch name {
		case "VmRSS":
			now = n << 10
		case "VmHWM":
			peak = n << 10
		}
	}
	return now, peak, nil
}

// BenchmarkResidentProcess is the memory of a process that takes a platform and then a second version of it, in which a record has changed, or
// one of every zone, so that nothing is shared. MB is what it has resident when it has taken the first, peak-MB had at most until then, held-MB
// has once its garbage is returned; second-… are the same of the second, with both of them there until it serves.
func BenchmarkResidentProcess(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, changed := range []int{1, n} {
			b.Run(fmt.Sprintf("zones=%d/changed=%d", n, changed), func(b *testing.B) {
				dir := b.TempDir()
				writeVersions(b, dir, n, changed)
				runtime.GC()
				for b.Loop() {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), residentVariable+"="+dir)
					out, err := cmd.Output()
					if err != nil {
						b.Fatal(err)
					}
					var first, second [3]float64
					if _, err := fmt.Sscan(string(out), &first[0], &first[1], &first[2], &second[0], &second[1], &second[2]); err != nil {
						b.Fatalf("%q: %v", out, err)
					}
					for i, unit := range []string{"MB", "peak-MB", "held-MB"} {
						b.ReportMetric(first[i]/1e6, unit)
						b.ReportMetric(second[i]/1e6, "second-"+unit)
					}
				}
				b.ReportMetric(0, "ns/op") // of no meaning here
			})
		}
	}
}

// writeVersions writes a platform of n zones, and another version of it in which so many zones have changed.
func writeVersions(b *testing.B, dir string, n, changed int) {
	b.Helper()
	zones := platform(b, n)
	write := func(version uint64, zones []*zone.Zone) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", version)), build(b, version, zones...).JSON(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write(1, zones)
	for i := range changed {
		z := *zones[n-1-i]
		z.Records = append([]zone.Record(nil), z.Records...)
		for j := range z.Records {
			if z.Records[j].Content == "93.184.216.34" {
				z.Records[j].Content = "93.184.216.36"
			}
		}
		zones[n-1-i] = &z
	}
	write(2, zones)
}

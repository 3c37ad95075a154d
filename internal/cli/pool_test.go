package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// TestPoolStatusOfAZone: all pools of a zone at once, as real nodes say that they do.
func TestPoolStatusOfAZone(t *testing.T) {
	dir := t.TempDir()
	environ := append(os.Environ(), startDev(t, filepath.Join(dir, "fleet"))...)
	run := func(command string) string {
		t.Helper()
		cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", command)
		cmd.Dir, cmd.Env = dir, environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	run(`gdn zone create pools.example
echo "{origins: [{name: a, address: \"$GUARDYN_DEMO_ORIGIN\"}, {name: gone, address: \"127.0.0.1:1\"}], health: {interval: 1s}}" > one.yaml
echo "{origins: [{name: a, address: \"$GUARDYN_DEMO_ORIGIN\"}]}" > two.yaml
gdn pool set pools.example one one.yaml
gdn pool set pools.example two two.yaml
gdn apply -m pools --wait`)
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var all []api.PoolStatus
	for {
		if err := json.Unmarshal([]byte(run("gdn pool status pools.example --json")), &all); err != nil {
			t.Fatal(err)
		}
		if len(all) == 2 && all[0].Nodes == 2 && all[0].Origins[1].Unhealthy == 2 {
			break
		}
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("after a minute: %+v", all)
		}
	}
	one, two := all[0], all[1]
	if one.Pool != "one" || one.Origins[0].Serving != 2 || one.Origins[1].Serving != 0 || !strings.Contains(one.Origins[1].Error, "connection refused") ||
		strings.Join(one.Origins[1].DownOn, " ") != "node1 node2" || two.Pool != "two" || two.Nodes != 2 || two.Origins[0].Serving != 2 {
		t.Errorf("%+v", all)
	}
	text := run("gdn pool status pools.example")
	for _, line := range []string{"one   a", "one   gone", "two   a", "unhealthy on 2 (node1, node2)"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	if text := run("gdn pool status pools.example two"); strings.Contains(text, "one") || !strings.Contains(text, "2/2") {
		t.Errorf("of one pool:\n%s", text)
	}
}

//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// env arms one point: POINT=kill ends the process there as a power cut would, POINT=error fails the step, POINT=stop suspends the
// process, as SIGSTOP does, until it is sent SIGCONT.
const env = "GUARDYN_TEST_FAILPOINT"

// errHit is the error of a step that was told to fail.
var errHit = errors.New("failpoint")

// Hit acts when p is armed. It says so on standard error first, which is how a test knows that p was reached.
func Hit(p Point) error {
	name, action, _ := strings.Cut(os.Getenv(env), "=")
	if name == "" || name != p.String() {
		if name != "" && !slices.Contains(names[:], name) {
			panic(fmt.Sprintf("%s: there is no point %q", env, name))
		}
		return nil
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", p, action)
	switch action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return nil
	case "error":
		return fmt.Errorf("%w %s", errHit, p)
	}
	panic(fmt.Sprintf("%s: %q is none of kill, stop and error", env, action))
}

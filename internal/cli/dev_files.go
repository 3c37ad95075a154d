package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

// What is true of one run of gdn dev alone. dev.env is written last, so that who waits for it finds the other.
const (
	devEnvFile  = "dev.env"
	devPoolFile = "pool.yaml"
)

// What gdn dev tells a shell beside what gdn reads.
const (
	envDemoOrigin  = "GUARDYN_DEMO_ORIGIN"
	envDemoOrigin2 = "GUARDYN_DEMO_ORIGIN2"
	envDemoCA      = "GUARDYN_DEMO_CA"
)

func (fl *fleet) writeRun(dir *durable.Dir) error {
	environ, err := fl.environ(dir)
	if err != nil {
		return err
	}
	if err := dir.Write(devPoolFile, fl.pool()); err != nil {
		return err
	}
	return dir.Write(devEnvFile, environ)
}

func removeRun(dir *durable.Dir) error {
	return errors.Join(dir.Remove(devEnvFile), dir.Remove(devPoolFile))
}

// pool is a pool of the demo origins. Its checks are quick, since somebody watches.
func (fl *fleet) pool() []byte {
	text := []byte("# The demo origins of this gdn dev, to be looked at and changed: gdn pool set ZONE NAME FILE\norigins:\n")
	for _, o := range fl.origins {
		text = fmt.Appendf(text, "  - {name: demo%d, address: %q}\n", o.number, o.Addr())
	}
	return append(text, "health: {path: /healthz, interval: 1s, unhealthy_threshold: 2, healthy_threshold: 1}\n"...)
}

// shellSafe is text that stands for itself on the right of an assignment, unquoted.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_.:/\[\]-]+$`)

// shellWord is text as one word of a shell.
func shellWord(text string) string {
	if shellSafe.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// environ is dev.env: assignments, then one line that exports them all.
func (fl *fleet) environ(dir *durable.Dir) ([]byte, error) {
	ca, err := filepath.Abs(filepath.Join(dir.Path(), devCAFile))
	if err != nil {
		return nil, err
	}
	values := [][2]string{
		{envAPIURL, "http://" + fl.control.Addr()},
		{envToken, fl.secrets.OperatorToken},
		{envPublicKeys, fl.key.Public().String()},
	}
	for i, n := range fl.nodes {
		prefix := fmt.Sprintf("GUARDYN_NODE%d_", i+1)
		values = append(values,
			[2]string{prefix + "DNS", n.DNSAddr()}, [2]string{prefix + "HTTP", n.HTTPAddr()},
			[2]string{prefix + "HTTPS", n.HTTPSAddr()}, [2]string{prefix + "ADMIN", n.AdminAddr()})
	}
	for i, name := range []string{envDemoOrigin, envDemoOrigin2} {
		values = append(values, [2]string{name, fl.origins[i].Addr()})
	}
	values = append(values, [2]string{envDemoCA, ca})
	var text, names strings.Builder
	for _, kv := range values {
		fmt.Fprintf(&text, "%s=%s\n", kv[0], shellWord(kv[1]))
		names.WriteString(" " + kv[0])
	}
	return []byte(text.String() + "export" + names.String() + "\n"), nil
}

// devReady tells what runs and what to try.
func devReady(fl *fleet, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "control plane  http://%s\n", fl.control.Addr())
	for i, n := range fl.nodes {
		fmt.Fprintf(&b, "%s          dns %s  http %s  https %s  admin %s\n", devNodeName(i), n.DNSAddr(), n.HTTPAddr(), n.HTTPSAddr(), n.AdminAddr())
	}
	for _, o := range fl.origins {
		fmt.Fprintf(&b, "demo origin %d  http://%s\n", o.number, o.Addr())
	}
	file := func(name string) string { return shellWord(filepath.Join(dir, name)) }
	fmt.Fprintf(&b, `
Ready. In another terminal:
  . %s
  gdn zone create example.com
  gdn record add example.com www A 192.0.2.10 --proxied
  gdn pool set example.com default %s
  gdn plan
  gdn apply -m "first zone" --wait
  dig @%s +short www.example.com A
  curl -H "Host: www.example.com" http://%s/

gdn dev --help tells what else the demo origins answer. Ctrl-C stops everything.
`, file(devEnvFile), file(devPoolFile), digServer(fl.nodes[0].DNSAddr()), fl.nodes[0].HTTPAddr())
	return b.String()
}

// digServer writes host:port as dig takes it.
func digServer(address string) string {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	return fmt.Sprintf("%s -p %d", ap.Addr(), ap.Port())
}

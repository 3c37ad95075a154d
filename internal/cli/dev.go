package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

// devFlags are the flags of gdn dev.
type devFlags struct {
	data    string
	api     string
	origins [2]string
	nodes   [2]devNodeFlags
}

type devNodeFlags struct{ dns, http, https, admin string }

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole fleet on this machine, to try and to develop on",
		Long: `Run a whole fleet on this machine, to try and to develop on: a control plane on SQLite, two edge nodes and two demo
origins, all in this process and on loopback addresses alone. Nothing is published until you do.

The first start makes a workspace, an operator, a signing key, a sealing identity and the nodes' tokens, and keeps them in
the data directory. When everything answers, DIR/dev.env holds what a shell needs to speak to the fleet:

  . DIR/dev.env

DIR/pool.yaml is a pool of the demo origins, as gdn pool set reads it. DIR/demo.pem and DIR/demo.key are a certificate for
` + strings.Join(devZones(), ", ") + ` and the names one label below them, as gdn tls add reads them;
DIR/ca.pem is its authority (curl --cacert), whose key is not kept. It is good for 30 days and is made anew by a start that
finds less than 15 left; then gdn tls add again.

A demo origin answers by the path:

` + originHelp + `

The last three are asked at the origin's own address. Port 0 lets the system choose; dev.env holds what was bound. Origins
on loopback are allowed here, and in gdn dev alone.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, l := range f.addresses() {
				if err := checkLoopback(*l.value); err != nil {
					return usagef(cmd, "--%s: %s", l.flag, err)
				}
			}
			return a.dev(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "./guardyn-dev", "keep everything in `DIR`")
	for _, l := range f.addresses() {
		cmd.Flags().StringVar(l.value, l.flag, l.fallback, "`HOST:PORT` of "+l.what)
	}
	return cmd
}

type devAddress struct {
	value                *string
	flag, fallback, what string
}

// addresses lists every address that gdn dev listens on.
func (f *devFlags) addresses() []devAddress {
	list := []devAddress{
		{&f.api, "api", "127.0.0.1:8080", "the control plane"},
		{&f.origins[0], "demo-origin", "127.0.0.1:8090", "demo origin 1"},
		{&f.origins[1], "demo-origin2", "127.0.0.1:8091", "demo origin 2"},
	}
	for i := range f.nodes {
		n, name := &f.nodes[i], fmt.Sprintf("node%d", i+1)
		list = append(list,
			devAddress{&n.dns, name + "-dns", fmt.Sprintf("127.0.0.1:%d", 5301+i), name + "'s DNS, UDP and TCP"},
			devAddress{&n.http, name + "-http", fmt.Sprintf("127.0.0.1:%d", 8081+i), name + "'s HTTP"},
			devAddress{&n.https, name + "-https", fmt.Sprintf("127.0.0.1:%d", 8441+i), name + "'s HTTPS"},
			devAddress{&n.admin, name + "-admin", fmt.Sprintf("127.0.0.1:%d", 9091+i), name + "'s health and metrics"},
		)
	}
	return list
}

// checkLoopback refuses what others could reach: gdn dev allows origins that are loopback.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT", address)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address; gdn dev is for this machine alone (gdn serve and gdn edge are for others)", address)
	}
	return nil
}

// dev runs the fleet until ctx is done.
func (a *app) dev(ctx context.Context, f devFlags) (err error) {
	dir, err := durable.Open(f.data)
	if errors.Is(err, durable.ErrLocked) {
		return hint(fmt.Errorf("another gdn dev runs on %s", f.data), "stop it, or choose another --data")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	// What an earlier run wrote is not true any more, and this run's is not yet.
	if err := removeRun(dir); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir.Path(), "dev.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()

	fleet, err := startFleet(ctx, dir, f, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it was ready
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return hint(err, "something else listens there; choose another address (gdn dev --help), or port 0 to let the system choose")
		}
		return hint(err, "%s says more", log.Name())
	}
	if err := fleet.writeRun(dir); err != nil {
		return errors.Join(err, fleet.close(ctx))
	}
	fmt.Fprint(a.Stdout, inertLines(devReady(fleet, dir.Path())))
	err = waitAndClose(ctx, fleet.parts()...)
	a.printf("stopped\n")
	return errors.Join(err, removeRun(dir))
}

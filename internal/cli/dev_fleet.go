package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	devEnvFile = "dev.env"
	// readyTimeout bounds how long everything may take to answer; readyEvery is how often it is asked.
	readyTimeout = 60 * time.Second
	readyEvery   = 20 * time.Millisecond
	// devInterval is how often the nodes of gdn dev poll when a long poll does not wait.
	devInterval = time.Second
)

// fleet is what gdn dev runs. parts holds everything that was started, in order.
type fleet struct {
	secrets devSecrets
	key     seal.SigningKey
	control *host.Control
	nodes   []*host.Edge
	origin  *demoOrigin
	parts   []running
}

// startFleet starts everything and returns when all of it answers. After an error nothing runs.
func startFleet(ctx context.Context, dir *durable.Dir, f devFlags, log io.Writer) (_ *fleet, err error) {
	fl := &fleet{}
	defer func() {
		if err != nil {
			err = errors.Join(err, fl.close(ctx))
		}
	}()
	logger := slog.New(slog.NewTextHandler(log, nil))
	if fl.secrets, err = firstStart(ctx, dir); err != nil {
		return nil, err
	}
	if fl.key, err = seal.ParseSigningKey(fl.secrets.SigningKey); err != nil {
		return nil, fmt.Errorf("%s: %w", secretsFile, err)
	}
	trusted, err := seal.Trust(fl.key.Public())
	if err != nil {
		return nil, err
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	if fl.origin, err = startDemoOrigin(ctx, f.demoOrigin); err != nil {
		return nil, fmt.Errorf("demo origin: %w", err)
	}
	fl.parts = append(fl.parts, fl.origin)
	fl.control, err = host.StartControl(ctx, host.ControlConfig{
		DatabaseURL:    databaseURL(dir, databaseFile),
		Listen:         f.api,
		SigningKey:     fl.key,
		AllowedOrigins: loopback,
		Logger:         logger.With("part", "control plane"),
	})
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	fl.parts = append(fl.parts, fl.control)
	apiURL := "http://" + fl.control.Addr()
	if err := await(ctx, apiURL+"/readyz"); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	if err := fl.secrets.registerNodes(ctx, dir, apiURL, len(f.nodes)); err != nil {
		return nil, err
	}
	for i, addresses := range f.nodes {
		name := devNodeName(i)
		node, err := host.StartEdge(ctx, host.EdgeConfig{
			APIURL:           apiURL,
			Token:            fl.secrets.Nodes[name],
			PublicKeys:       trusted,
			StateDir:         filepath.Join(dir.Path(), name),
			DNSAddr:          addresses.dns,
			HTTPAddr:         addresses.http,
			AdminAddr:        addresses.admin,
			ServiceAddresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
			AllowedOrigins:   loopback,
			RateLimitExempt:  loopback,
			NSID:             name,
			VersionClients:   loopback,
			Interval:         devInterval,
			Logger:           logger.With("part", name),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		fl.nodes = append(fl.nodes, node)
		fl.parts = append(fl.parts, node)
	}
	for i, node := range fl.nodes {
		if err := await(ctx, "http://"+node.AdminAddr()+"/healthz"); err != nil {
			return nil, fmt.Errorf("%s: %w", devNodeName(i), err)
		}
	}
	if err := await(ctx, "http://"+fl.origin.Addr()+"/"); err != nil {
		return nil, fmt.Errorf("demo origin: %w", err)
	}
	return fl, nil
}

func devNodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

// close ends everything that was started, last first.
func (fl *fleet) close(ctx context.Context) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var err error
	for i := len(fl.parts) - 1; i >= 0; i-- {
		err = errors.Join(err, fl.parts[i].Close(grace))
	}
	return err
}

// await asks url until it answers 200.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s answers %s", url, resp.Status)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("does not get ready: %w", err)
		}
	}
}

// shellSafe is text that stands for itself on the right of an assignment, unquoted.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_.:/\[\]-]+$`)

// environ is dev.env: assignments, then one line that exports them all.
func (fl *fleet) environ() []byte {
	values := [][2]string{
		{envAPIURL, "http://" + fl.control.Addr()},
		{envToken, fl.secrets.OperatorToken},
		{envPublicKeys, fl.key.Public().String()},
	}
	for i, n := range fl.nodes {
		prefix := fmt.Sprintf("GUARDYN_NODE%d_", i+1)
		values = append(values,
			[2]string{prefix + "DNS", n.DNSAddr()}, [2]string{prefix + "HTTP", n.HTTPAddr()}, [2]string{prefix + "ADMIN", n.AdminAddr()})
	}
	values = append(values, [2]string{"GUARDYN_DEMO_ORIGIN", fl.origin.Addr()})
	var text, names strings.Builder
	for _, kv := range values {
		if !shellSafe.MatchString(kv[1]) {
			panic("cli: " + kv[0] + " would need quotes in a shell")
		}
		fmt.Fprintf(&text, "%s=%s\n", kv[0], kv[1])
		names.WriteString(" " + kv[0])
	}
	return []byte(text.String() + "export" + names.String() + "\n")
}

// devReady tells what runs and what to try.
func devReady(fl *fleet, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "control plane  http://%s\n", fl.control.Addr())
	for i, n := range fl.nodes {
		fmt.Fprintf(&b, "%s          dns %s  http %s  admin %s\n", devNodeName(i), n.DNSAddr(), n.HTTPAddr(), n.AdminAddr())
	}
	fmt.Fprintf(&b, "demo origin    http://%s\n\n", fl.origin.Addr())
	fmt.Fprintf(&b, "Ready. In another terminal:\n  . %s\n  gdn zone create example.com\n  gdn record add example.com www A 192.0.2.10\n", filepath.Join(dir, devEnvFile))
	fmt.Fprintf(&b, "  gdn plan\n  gdn apply -m \"first zone\"\n  dig @%s +short www.example.com A\n\nCtrl-C stops everything.\n", digServer(fl.nodes[0].DNSAddr()))
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

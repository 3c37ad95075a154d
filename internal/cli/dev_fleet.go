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
	"slices"
	"time"

	"filippo.io/age"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	// readyTimeout bounds how long everything may take to answer; readyEvery is how often it is asked.
	readyTimeout = 60 * time.Second
	readyEvery   = 20 * time.Millisecond
	// devInterval is how often the nodes of gdn dev poll when a long poll does not wait.
	devInterval = time.Second
)

// fleet is what gdn dev runs, as far as it was started, and what that was started with.
type fleet struct {
	secrets    devSecrets
	key        seal.SigningKey
	trusted    seal.TrustedKeys
	recipient  string // what private keys are sealed to
	identities host.Identities

	control *host.Control
	nodes   []*host.Edge
	origins []*demoOrigin
}

// parts is everything that was started, what is to be closed first last: demo origins, so that nodes need not wait for the
// WebSockets to them.
func (fl *fleet) parts() []running {
	var all []running
	if fl.control != nil {
		all = append(all, fl.control)
	}
	for _, n := range fl.nodes {
		all = append(all, n)
	}
	for _, o := range fl.origins {
		all = append(all, o)
	}
	return all
}

// devLoopback is where everything of gdn dev is.
func devLoopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
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
	if err := fl.readSecrets(ctx, dir); err != nil {
		return nil, err
	}
	// Before the nodes: the first health check of an origin that was not there yet would take it out.
	for i, address := range f.origins {
		o, err := startDemoOrigin(ctx, i+1, address)
		if err != nil {
			return nil, fmt.Errorf("demo origin %d: %w", i+1, err)
		}
		fl.origins = append(fl.origins, o)
		if err := await(ctx, "http://"+o.Addr()+"/healthz"); err != nil {
			return nil, fmt.Errorf("demo origin %d: %w", i+1, err)
		}
	}
	fl.control, err = host.StartControl(ctx, host.ControlConfig{
		DatabaseURL:     databaseURL(dir, databaseFile),
		Listen:          f.api,
		SigningKey:      fl.key,
		SecretRecipient: fl.recipient,
		AllowedOrigins:  devLoopback(),
		Logger:          logger.With("part", "control plane"),
	})
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	apiURL := "http://" + fl.control.Addr()
	if err := await(ctx, apiURL+"/readyz"); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	if err := fl.secrets.registerNodes(ctx, dir, apiURL, len(f.nodes)); err != nil {
		return nil, err
	}
	for i, addresses := range f.nodes {
		if err := fl.startNode(ctx, dir, devNodeName(i), addresses, logger); err != nil {
			return nil, fmt.Errorf("%s: %w", devNodeName(i), err)
		}
	}
	for i, node := range fl.nodes {
		if err := await(ctx, "http://"+node.AdminAddr()+"/healthz"); err != nil {
			return nil, fmt.Errorf("%s: %w", devNodeName(i), err)
		}
	}
	return fl, nil
}

// readSecrets reads what the first start made, or is that start, and keeps the certificate good.
func (fl *fleet) readSecrets(ctx context.Context, dir *durable.Dir) (err error) {
	if fl.secrets, err = firstStart(ctx, dir); err != nil {
		return err
	}
	if fl.key, err = seal.ParseSigningKey(fl.secrets.SigningKey); err != nil {
		return fmt.Errorf("%s: %w", secretsFile, err)
	}
	if fl.trusted, err = seal.Trust(fl.key.Public()); err != nil {
		return err
	}
	identity, err := age.ParseX25519Identity(fl.secrets.SecretIdentity)
	if err != nil {
		return fmt.Errorf("%s: secret_identity: %w", secretsFile, err)
	}
	fl.recipient = identity.Recipient().String()
	if fl.identities, err = host.ParseIdentities(identity.String()); err != nil {
		return fmt.Errorf("%s: secret_identity: %w", secretsFile, err)
	}
	if err := keepCertificate(dir, time.Now()); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

func (fl *fleet) startNode(ctx context.Context, dir *durable.Dir, name string, addresses devNodeFlags, logger *slog.Logger) error {
	node, err := host.StartEdge(ctx, host.EdgeConfig{
		APIURL:           "http://" + fl.control.Addr(),
		Token:            fl.secrets.Nodes[name],
		PublicKeys:       fl.trusted,
		StateDir:         filepath.Join(dir.Path(), name),
		DNSAddr:          addresses.dns,
		HTTPAddr:         addresses.http,
		HTTPSAddr:        addresses.https,
		SecretIdentities: fl.identities,
		AdminAddr:        addresses.admin,
		ServiceAddresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		AllowedOrigins:   devLoopback(),
		RateLimitExempt:  devLoopback(),
		NSID:             name,
		VersionClients:   devLoopback(),
		Interval:         devInterval,
		Logger:           logger.With("part", name),
	})
	if err != nil {
		return err
	}
	fl.nodes = append(fl.nodes, node)
	return nil
}

func devNodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

// close ends everything that was started, last first.
func (fl *fleet) close(ctx context.Context) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var err error
	for _, p := range slices.Backward(fl.parts()) {
		err = errors.Join(err, p.Close(grace))
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

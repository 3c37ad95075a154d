package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/slotfile"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/admin"
	"github.com/guardyn-edge/guardyn/bridge/document"
	bridgehost "github.com/guardyn-edge/guardyn/bridge/host"
)

// BridgeConfig are one bridge member's own settings: what is in no document.
type BridgeConfig struct {
	Member       string // its id; needed in a cluster
	Name         string // of the bridge: of its document in a source that holds several, and of its leases
	Cohort       string // in the rollout store; another one is another cohort, which has agreed on nothing yet
	Source       string // file:PATH, postgres://…, dynamodb:TABLE
	RolloutStore string // sqlite:PATH, postgres://…, dynamodb:TABLE, memory:; "": none
	LeaseStore   string // likewise
	Listen       string // of the control surface
	StateDir     string // what a member of a cohort remembers is below it
	SecretsDir   string // relative names of files in the document are below it
	Token        string // of the control surface; "": nobody changes anything by it
	Initial      []byte // the document that this process creates when the source has none; nil: it never does
	Baseline     document.Digest

	// Runner makes the data path.
	Runner func(BridgeParts) bridge.Runner

	Timing   barrier.Timing // zero fields take barrier.DefaultTiming's
	Lease    time.Duration  // of the coordinator; 0: its default
	Poll     time.Duration  // of the source; 0: its default
	Logger   *slog.Logger
	LogLevel *slog.LevelVar   // set from the document; may be nil
	Now      func() time.Time // nil: time.Now
}

// BridgeParts are what a data path is made of.
type BridgeParts struct {
	Member     string
	Name       string        // of the bridge
	Leases     bridge.Leases // nil: there is no store of leases
	SecretsDir string
	Logger     *slog.Logger
}

// Bridge is a running member of a message bridge: its host, its data path and its control surface. It owns a goroutine for each
// and ends them in Close.
type Bridge struct {
	host     *bridgehost.Host
	listener net.Listener
	server   *http.Server
	closers  []func() error
	stop     context.CancelFunc
	ended    chan struct{} // closed when everything has ended
	err      error         // how; read after ended
}

// check says all that is wrong with the settings.
func (c BridgeConfig) check() error {
	var errs []error
	for name, id := range map[string]string{"member id": c.Member, "name": c.Name, "cohort": c.Cohort} {
		if id != "" && barrier.CheckMember(barrier.MemberID(id), "any") != nil {
			errs = append(errs, fmt.Errorf("%s %.80q is not 1 to %d letters, digits, '.', '_' and '-'", name, id, barrier.MaxIDBytes))
		}
	}
	if c.RolloutStore != "" && c.Member == "" {
		errs = append(errs, errors.New("a member of a cohort needs a member id: --member-id"))
	}
	if c.Initial != nil {
		if _, err := document.ParseFor(c.Initial, c.process()); err != nil { // what this process cannot run it does not leave to others
			errs = append(errs, fmt.Errorf("the initial document: %w", err))
		}
	}
	if c.Baseline != "" && (!strings.HasPrefix(string(c.Baseline), "sha256:") || len(c.Baseline) != len("sha256:")+64) {
		errs = append(errs, fmt.Errorf("baseline %.80q is no digest; gdn bridge validate prints a document's", c.Baseline))
	}
	return errors.Join(errs...)
}

// process is what a document may count on.
func (c BridgeConfig) process() document.Process {
	return document.Process{MemberID: c.Member, RolloutStore: c.RolloutStore != "", LeaseStore: c.LeaseStore != ""}
}

// StartBridge starts a member; it returns when its control surface answers, and goes on until Close, or until it must be
// replaced.
func StartBridge(ctx context.Context, cfg BridgeConfig) (_ *Bridge, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	b := &Bridge{ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.closeAll())
		}
	}()
	hc := bridgehost.Config{
		Process: cfg.process(), Name: cfg.Cohort,
		Initial: cfg.Initial, Baseline: cfg.Baseline, Poll: cfg.Poll, Logger: cfg.Logger, LogLevel: cfg.LogLevel, Now: cfg.Now,
	}
	src, err := openSource(ctx, cfg.Source, cfg.Name)
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, src.Close)
	hc.Source = src
	o := admin.Options{Token: cfg.Token, Logger: cfg.Logger, Now: cfg.Now}
	if cfg.RolloutStore != "" {
		if hc.Rollouts, err = b.openRollouts(ctx, cfg); err != nil {
			return nil, err
		}
		o.Rollouts = hc.Rollouts.Store
	}
	parts := BridgeParts{Member: cfg.Member, Name: cfg.Name, SecretsDir: cfg.SecretsDir, Logger: cfg.Logger}
	if cfg.LeaseStore != "" {
		l := &sessionLeases{url: cfg.LeaseStore, name: cfg.Name, open: map[string]*cohortStore{}}
		b.closers = append(b.closers, l.close)
		parts.Leases = l
	}
	hc.Runner = cfg.Runner(parts)
	if b.host, err = bridgehost.New(hc); err != nil {
		return nil, err
	}
	if b.server, err = admin.NewServer(b.host, o); err != nil {
		return nil, err
	}
	if b.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, err
	}
	b.run(ctx)
	return b, nil
}

// openRollouts opens the cohort's store and this member's memory.
func (b *Bridge) openRollouts(ctx context.Context, cfg BridgeConfig) (*bridgehost.Rollouts, error) {
	s, err := openCohortStore(ctx, cfg.RolloutStore, cfg.Cohort)
	if err != nil {
		return nil, fmt.Errorf("rollout store: %w", err)
	}
	b.closers = append(b.closers, s.close)
	slots, err := slotfile.Open(filepath.Join(cfg.StateDir, cfg.Cohort))
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, slots.Close)
	return &bridgehost.Rollouts{
		Store: s.Store, Leases: s.Leases, Artefacts: s.Artefacts, Slots: slots, Timing: cfg.Timing, Lease: cfg.Lease, EvidenceTTL: s.evidenceTTL,
	}, nil
}

// run serves and follows the source; the first of them that ends by itself ends the other.
func (b *Bridge) run(ctx context.Context) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	served := make(chan error, 1)
	go func() {
		err := b.server.Serve(b.listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		served <- err
		stop()
	}()
	go func() {
		defer close(b.ended)
		err := b.host.Run(running)
		stop()
		closing, cancel := context.WithTimeout(context.Background(), adminGrace)
		defer cancel()
		if b.server.Shutdown(closing) != nil {
			_ = b.server.Close() // who asks has had its time
		}
		b.err = errors.Join(err, <-served, b.closeAll())
	}()
}

// adminGrace is how long a request to the control surface may take when the process ends.
const adminGrace = 2 * time.Second

func (b *Bridge) closeAll() error {
	var err error
	for i := len(b.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, b.closers[i]())
	}
	b.closers = nil
	return err
}

// Addr is where the control surface listens.
func (b *Bridge) Addr() string { return b.listener.Addr().String() }

// Wait returns when the member has ended, and how.
func (b *Bridge) Wait() error {
	<-b.ended
	return b.err
}

// Close stops intake, drains and stops, within the document's timeouts, or until ctx ends.
func (b *Bridge) Close(ctx context.Context) error {
	b.stop()
	select {
	case <-b.ended:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

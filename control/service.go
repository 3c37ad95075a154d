package control

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

// Bounds of a Service.
const (
	// DefaultRefresh is how often Run reads Revisions, and how often it writes what was heard of nodes.
	DefaultRefresh = time.Second
	// DefaultMaxLongPolls bounds polls that wait at one time; a poll beyond it is answered at once.
	DefaultMaxLongPolls = 65_536
	// DefaultMaxBuilds bounds snapshots that are built at one time; who comes later waits.
	DefaultMaxBuilds = 2
	// MaxPage and DefaultPage are the largest and the usual number of rows of a listing.
	MaxPage     = 1000
	DefaultPage = 100
	// MaxImport is the size in bytes of the largest zone file that is imported.
	MaxImport = 64 << 20
	// MaxMessage is the length in bytes of the longest message of an apply.
	MaxMessage = 1000
)

// Config is what a Service is made of. Store and SigningKey are required.
type Config struct {
	Store      Store
	SigningKey seal.SigningKey
	// TrustedKeys are the public keys that nodes were given, when this process is told them. What is
	// sealed must open with one of them before it is stored. The zero value trusts the signing key's own
	// public half alone.
	TrustedKeys seal.TrustedKeys
	// AllowedOrigins are ranges that origins may have although they are private or loopback.
	AllowedOrigins []netip.Prefix
	Now            func() time.Time // time.Now when nil
	Logger         *slog.Logger     // discards when nil
	Refresh        time.Duration    // DefaultRefresh when 0
	MaxLongPolls   int              // DefaultMaxLongPolls when 0
	MaxBuilds      int              // DefaultMaxBuilds when 0
}

// Service is the control plane. It is safe for concurrent use. Every method that takes a Principal
// authorises it: ErrNoRoute or ErrNotFound for what the caller must not know of, ErrForbidden for what it
// may see but not do. Zone references are a zone's name or its id; one of another workspace is ErrNotFound.
type Service struct {
	cfg Config
}

// New checks cfg. It reads nothing; the first use or Run does.
func New(cfg Config) (*Service, error) { panic("unbuilt") }

// Run owns all background work and returns when ctx is done, after a last write of what was heard of
// nodes: reading Revisions, refreshing what is held in memory, recording nodes. A store that fails is
// logged and tried again; memory keeps answering. Run is called once.
func (s *Service) Run(ctx context.Context) error { panic("unbuilt") }

// Ready tells whether the store answers.
func (s *Service) Ready(ctx context.Context) error { panic("unbuilt") }

// Stats counts since the start of the process.
type Stats struct {
	Polls          uint64 // all of them
	PollsAnswered  uint64 // with an artefact
	PollsAhead     uint64 // by a node that is ahead
	LongPolls      int64  // waiting now
	Acks           uint64
	NodeRejections uint64 // acks that report an error
	Builds         uint64
	BuildSeconds   float64
	Applies        uint64 // that published
	ApplyFailures  uint64
	LiveVersion    uint64
	LiveGeneration uint64
}

// Stats reads the counters; they are not one consistent read.
func (s *Service) Stats() Stats { panic("unbuilt") }

// Listing is a page of rows. Next is the Page.After of the page that follows, "" when this is the last one.
type Listing[T any] struct {
	Items []T
	Next  string
}

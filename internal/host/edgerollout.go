package host

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/edge/probe"
	"github.com/guardyn-edge/guardyn/internal/telemetry"
	"github.com/guardyn-edge/guardyn/node"
)

// rolloutPath is where the API has the barrier for nodes.
const rolloutPath = "/v1/node/rollout"

// connect makes the node's two clients of the control plane on one set of connections.
func (e *Edge) connect() (err error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 4 // a poll and a watch that wait, the member's calls, an acknowledgement
	t.MaxResponseHeaderBytes = 64 << 10
	hc := &http.Client{Transport: t}
	if e.source, err = api.NewNodeClient(e.cfg.APIURL, e.cfg.Token, hc); err != nil {
		return err
	}
	e.remote, err = remote.NewClient(strings.TrimRight(e.cfg.APIURL, "/")+rolloutPath, remote.ClientOptions{
		HTTP: hc, Authorize: remote.Bearer(e.cfg.Token),
	})
	if err != nil {
		return err
	}
	e.tracer, err = telemetry.New(telemetry.Config{
		Endpoint: e.cfg.TraceEndpoint, Service: "guardyn-edge", Instance: instance(e.cfg.AdminAddr), Logger: e.cfg.Logger,
	})
	e.voter = &tracedVoter{Voter: e.remote, rollouts: &e.rollouts, tracer: e.tracer, now: e.cfg.Now}
	return err
}

// newProber returns what judges trials, once the node listens.
func (e *Edge) newProber() *probe.Prober {
	return probe.New(probe.Config{
		Live: e.live.Load, DNS: e.DNSAddr(), HTTP: e.HTTPAddr(), HTTPS: e.HTTPSAddr(), AllowedOrigins: e.cfg.AllowedOrigins, Now: e.cfg.Now,
		Requests: func() probe.Requests {
			var r probe.Requests
			requests := e.web.Metrics().Requests
			for _, n := range requests[1:] { // at 0 are those that nobody waited for the answer of
				r.All += n
			}
			r.Failed = requests[5]
			return r
		},
	})
}

// takePart takes part in rollouts until ctx ends.
func (e *Edge) takePart(ctx context.Context) error {
	return e.agent.RunRollouts(ctx, node.RolloutConfig{Store: e.voter, Source: e.source, Prober: judge{e.prober}})
}

// judge is a prober as the agent has it.
type judge struct{ *probe.Prober }

var _ node.Preparer = judge{}

func (j judge) Check(ctx context.Context) barrier.Health {
	r := j.Prober.Check(ctx)
	return barrier.Health{Converged: r.Converged, Detail: r.Detail}
}

// rolloutHealth is what /deephealth says of the node's part in rollouts. Of the newest that it knows: how it votes and what it
// runs; of the store: how old that knowledge is.
type rolloutHealth struct {
	Cohort             bool          `json:"cohort"` // it takes part; nothing else is known of a node that does not
	Generation         uint64        `json:"generation"`
	Version            uint64        `json:"version"`
	State              barrier.State `json:"state"`
	Epoch              int           `json:"epoch"` // members whose votes it takes
	InEpoch            bool          `json:"in_epoch"`
	Acked              bool          `json:"acked"`
	Nacked             bool          `json:"nacked"`
	Converged          bool          `json:"converged"`
	Applied            bool          `json:"applied"`         // what is decided is what it serves
	ConfirmPending     bool          `json:"confirm_pending"` // it serves a trial
	ObservedAt         time.Time     `json:"observed_at,omitzero"`
	ObservationAge     int64         `json:"observation_age_ms"` // since it began to take part, before the first
	Stale              bool          `json:"stale"`
	TerminalGeneration uint64        `json:"terminal_generation"` // that it gave up on for now; 0: none
	TerminalReason     string        `json:"terminal_reason"`
	// A node is told its first configuration by the control plane, never by how it is deployed.
	BaselineOutcome barrier.BaselineOutcome `json:"baseline_outcome"`
	BaselineReason  string                  `json:"baseline_reason"`

	Trial      string `json:"trial,omitzero"` // id of the rollout on whose trial it is
	TakenBack  string `json:"taken_back,omitzero"`
	Flaps      uint64 `json:"flaps"`
	Diverged   string `json:"diverged,omitzero"`
	Superseded bool   `json:"superseded"`
	Waiting    string `json:"waiting,omitzero"`
}

func (e *Edge) rolloutHealth(s node.Status) rolloutHealth {
	h := rolloutHealth{
		Cohort: s.Cohort, Trial: s.Trial,
		BaselineOutcome: barrier.BaselineSkipped, BaselineReason: "nodes start from what the control plane published",
	}
	if !s.Cohort {
		return h
	}
	r := s.Rollout
	h.Generation, h.Version, h.State, h.Epoch, h.InEpoch = r.Generation, r.Version, r.State, r.Epoch, r.InEpoch
	h.Acked, h.Nacked, h.Converged, h.Applied, h.ConfirmPending = r.Acked, r.Nacked, r.Converged, r.Applied, r.ConfirmPending
	h.ObservationAge, h.Stale = r.Observation.Milliseconds(), r.Stale
	if r.Observed != 0 {
		h.ObservedAt = e.cfg.Now().Add(-r.Observation).UTC().Truncate(time.Millisecond)
	}
	h.TerminalGeneration, h.TerminalReason = r.TerminalGeneration, r.TerminalReason
	h.TakenBack, h.Flaps, h.Diverged, h.Superseded, h.Waiting = r.TakenBack, r.Flaps, r.Diverged, r.Superseded, r.Waiting
	return h
}

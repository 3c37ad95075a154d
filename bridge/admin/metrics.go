package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/barrier/metrics"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// collector reads what the host knows when it is scraped.
type collector struct {
	h   *host.Host
	row *metrics.Row // nil: there are no rollouts
	now func() time.Time
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guardyn_bridge_"+name, help, labels, nil)
}

func rolloutDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guardyn_rollout_"+name, help, labels, nil)
}

var (
	descReady     = desc("ready", "1 while a document runs and messages are taken in.")
	descVersion   = desc("config_version", "Version of the document that runs, 0 for none.")
	descRung      = desc("rung", "1 for the rung of the ladder that this member is on.", "rung")
	descDegraded  = desc("degraded", "How many things are not as they should be; /deephealth names them.")
	descSource    = desc("source_state", "1 for what the source was last observed to be.", "state")
	descSourceAge = desc("source_answer_age_seconds", "Time since the source last answered; absent before.")
	descPending   = desc("config_pending", "1 while the source holds a valid document that does not run, unless it is older than what the cohort has.")
	descSession   = desc("session_state", "1 for the state that the session is in.", "session", "kind", "state")
	descConnects  = desc("session_connects_total", "Connections of the session that were made.", "session")
	descConverged = desc("session_converged", "1 while the session is as it should be.", "session")
	descMessages  = desc("route_messages_total", "Messages of the route, by what became of them.", "route", "outcome")
	descInFlight  = desc("route_in_flight", "Messages that were taken and are not confirmed by the target.", "route")

	descResolved    = rolloutDesc("resolved_total", "Rollouts that this member has seen end, by outcome and kind of reason.", "outcome", "reason")
	descDiverged    = rolloutDesc("diverged", "1 while this member cannot follow what the cohort has decided.")
	descTerminal    = rolloutDesc("terminal", "1 while this member has given up for now on building or running what was decided.")
	descObservation = rolloutDesc("observation_age_seconds", "Time since this member last read the rollout.")
	descFlaps       = rolloutDesc("flaps_total", "Trials that this member took back by guess and that were confirmed.")
)

var (
	rungs         = []host.Rung{host.Standalone, host.Refuse, host.Coordinated, host.Window}
	sourceStates  = []source.State{source.Present, source.Missing, source.Failed}
	sessionStates = []bridge.SessionState{bridge.Connecting, bridge.Connected, bridge.Standby, bridge.Stopping}
)

// Describe sends nothing: which metrics there are follows what runs.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// scrape is one collection.
type scrape chan<- prometheus.Metric

func (s scrape) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s scrape) count(d *prometheus.Desc, v uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (s scrape) flag(d *prometheus.Desc, on bool, labels ...string) {
	v := 0.0
	if on {
		v = 1
	}
	s.gauge(d, v, labels...)
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	s, h := scrape(out), c.h.Status()
	s.flag(descReady, h.Ready)
	s.gauge(descVersion, float64(h.Version))
	s.gauge(descDegraded, float64(len(h.Degraded)))
	s.flag(descPending, h.Source.Pending)
	for _, r := range rungs {
		s.flag(descRung, r == h.Rung, string(r))
	}
	for _, x := range sourceStates {
		s.flag(descSource, x == h.Source.State, string(x))
	}
	if at := h.Source.AnsweredAt; !at.IsZero() {
		s.gauge(descSourceAge, c.now().Sub(at).Seconds())
	}
	for _, x := range h.Sessions {
		for _, state := range sessionStates {
			s.flag(descSession, state == x.State, x.ID, string(x.Kind), string(state))
		}
		s.count(descConnects, x.Connects, x.ID)
		s.flag(descConverged, x.Converged, x.ID)
	}
	for _, r := range h.Routes {
		for outcome, n := range map[string]uint64{
			"taken": r.Taken, "filtered": r.Filtered, "failed": r.Failed, "delivered": r.Delivered, "refused": r.Refused, "looped": r.Looped, "retried": r.Retried,
		} {
			s.count(descMessages, n, r.ID, outcome)
		}
		s.gauge(descInFlight, float64(r.InFlight), r.ID)
	}
	c.collectRollouts(s, h.Rollout)
}

func (c *collector) collectRollouts(s scrape, r *host.RolloutStatus) {
	if r == nil {
		return
	}
	s.flag(descDiverged, r.Diverged != "")
	s.flag(descTerminal, r.TerminalGeneration != 0)
	s.gauge(descObservation, float64(r.ObservationAge)/1000)
	s.count(descFlaps, r.Flaps)
	for x, n := range c.h.Resolved() {
		s.count(descResolved, n, string(x.Outcome), x.Reason)
	}
	if c.row != nil {
		c.row.Collect(s)
	}
}

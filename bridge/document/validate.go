package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// What is left out stands for.
const (
	DefaultTimeout      = 30 * time.Second // of bridge.shutdown_timeout and, at most that, bridge.drain_timeout
	DefaultKeepAlive    = 30 * time.Second
	DefaultQoS          = 1
	DefaultInFlight     = 64
	DefaultHealthMargin = 100 // 1 %
)

func (v *validator) document(w wireDocument) *Document {
	top := place{v: v}
	d := &Document{Bridge: v.bridge(top.member("bridge"), w.Bridge)}
	sessions := top.member("sessions")
	if len(w.Sessions) > MaxSessions {
		sessions.problem("%d sessions are more than %d", len(w.Sessions), MaxSessions)
	}
	ids := map[string]int{}
	for i, s := range w.Sessions {
		p := sessions.item(i, s.ID)
		if checkID(p.member("id"), s.ID, ids) {
			d.Sessions = append(d.Sessions, v.session(p, s, d.Bridge.Mode))
		} else {
			v.session(p, s, d.Bridge.Mode)
		}
	}
	v.clientIDs(sessions, w.Sessions, d)
	routes := top.member("routes")
	if len(w.Routes) > MaxRoutes {
		routes.problem("%d routes are more than %d", len(w.Routes), MaxRoutes)
	}
	clear(ids)
	for i, r := range w.Routes {
		p := routes.item(i, r.ID)
		checkID(p.member("id"), r.ID, ids)
		d.Routes = append(d.Routes, v.route(p, r, d))
	}
	v.consumers(routes, d)
	v.cycles(routes, d)
	slices.SortFunc(d.Sessions, func(a, b Session) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(d.Routes, func(a, b Route) int { return strings.Compare(a.ID, b.ID) })
	return d
}

// checkID notes what is wrong with an id; false when it names nothing. seen are the lines of those before it.
func checkID(p place, id *string, seen map[string]int) bool {
	switch {
	case id == nil:
		p.lacks("it is missing: 1 to %d letters, digits, '.', '_' and '-'", barrier.MaxIDBytes)
		return false
	case !isID(*id):
		p.problem("%.80q is not 1 to %d letters, digits, '.', '_' and '-'", *id, barrier.MaxIDBytes)
		return false
	}
	if line, twice := seen[*id]; twice {
		p.problem("%q stands already on line %d", *id, line)
		return false
	}
	seen[*id] = p.v.text.Line(p.at)
	return true
}

func isID(id string) bool { return barrier.CheckMember(barrier.MemberID(id), "any") == nil }

// value is what was written, or what stands for it.
func value[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// choice is value for one of a few words.
func choice[T ~string](p place, v *T, all ...T) T {
	if v == nil {
		return all[0]
	}
	if !slices.Contains(all, *v) {
		words := make([]string, len(all))
		for i, w := range all {
			words[i] = string(w)
		}
		p.problem("%.80q is not %s", *v, either(words))
		return all[0]
	}
	return *v
}

func either(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// within notes a duration out of its range.
func within(p place, d, low, high time.Duration) {
	switch {
	case d < 0:
		p.problem("%s is negative", spell(d))
	case d < low || d > high:
		p.problem("%s is not between %s and %s", spell(d), spell(low), spell(high))
	case d%time.Millisecond != 0:
		p.problem("%s is not whole milliseconds", spell(d))
	}
}

func (v *validator) bridge(p place, w wireBridge) Bridge {
	b := Bridge{
		Mode:            choice(p.member("deployment_mode"), w.Mode, Standalone, Clustered),
		ShutdownTimeout: time.Duration(value(w.ShutdownTimeout, duration(DefaultTimeout))),
		LogLevel:        choice(p.member("log_level"), w.LogLevel, "info", "debug", "warn", "error"),
	}
	within(p.member("shutdown_timeout"), b.ShutdownTimeout, time.Second, MaxTimeout)
	b.DrainTimeout = time.Duration(value(w.DrainTimeout, duration(min(b.ShutdownTimeout, DefaultTimeout))))
	if drain := p.member("drain_timeout"); b.DrainTimeout > b.ShutdownTimeout && b.ShutdownTimeout >= 0 {
		drain.problem("%s is more than shutdown_timeout, %s, of which it is a part", spell(b.DrainTimeout), spell(b.ShutdownTimeout))
	} else {
		within(drain, b.DrainTimeout, 0, MaxTimeout)
	}
	cluster := p.member("cluster")
	switch {
	case b.Mode == Clustered:
		b.Cluster = v.cluster(cluster, value(w.Cluster, wireCluster{}))
	case w.Cluster != nil && (w.Mode == nil || b.Mode == *w.Mode) && !v.missing(p.member("deployment_mode").at):
		cluster.problem("it is of a clustered bridge: write deployment_mode: clustered, or leave it out")
		v.cluster(cluster, *w.Cluster)
	}
	return b
}

func (v *validator) cluster(p place, w wireCluster) Cluster {
	c := Cluster{
		Rollout: choice(p.member("rollout"), w.Rollout, Refuse, Coordinated), Members: slices.Clone(w.Members),
		ConfirmWindow: time.Duration(value(w.ConfirmWindow, 0)),
	}
	v.members(p.member("members"), &c)
	coordinated := c.Rollout == Coordinated || v.missing(p.member("rollout").at)
	for name, given := range map[string]bool{"confirm_window": c.ConfirmWindow != 0, "deadline": w.Deadline != nil} {
		if given && !coordinated {
			p.member(name).problem("it is of a coordinated rollout: write rollout: coordinated, or leave it out")
		}
	}
	if coordinated {
		c.Deadline = time.Duration(value(w.Deadline, duration(barrier.DefaultDeadline)))
		within(p.member("deadline"), c.Deadline, barrier.MinDeadline, barrier.MaxDeadline)
	}
	window, soak := p.member("confirm_window"), p.member("soak")
	within(window, c.ConfirmWindow, 0, barrier.MaxWindow)
	switch {
	case w.Soak != nil && c.ConfirmWindow == 0:
		soak.problem("it is of a confirm window, and there is none")
	case c.ConfirmWindow > 0:
		c.Soak = time.Duration(value(w.Soak, duration(barrier.DefaultSoak)))
		within(soak, c.Soak, time.Millisecond, barrier.MaxWindow)
		if c.Soak > 0 && c.ConfirmWindow < 2*c.Soak {
			window.problem("%s is less than twice the soak, %s: members could not prove in time that a change works", spell(c.ConfirmWindow), spell(c.Soak))
		}
	}
	return c
}

func (v *validator) members(p place, c *Cluster) {
	seen := map[string]bool{}
	for i, m := range c.Members {
		switch at := p.item(i, nil); {
		case !isID(m):
			at.problem("%.80q is not 1 to %d letters, digits, '.', '_' and '-'", m, barrier.MaxIDBytes)
		case seen[m]:
			at.problem("%q is named twice", m)
		}
		seen[m] = true
	}
	switch {
	case len(c.Members) > barrier.MaxMembers:
		p.problem("%d members are more than %d", len(c.Members), barrier.MaxMembers)
	case len(c.Members) == 0 && c.Rollout == Coordinated:
		p.lacks("a coordinated rollout needs the roster: name every member's id")
	}
	slices.Sort(c.Members)
}

// process notes what keeps the process from running d.
func (v *validator) process(d *Document, p Process) {
	bridge := place{v: v}.member("bridge")
	if d.Bridge.Mode != Clustered {
		return
	}
	c := d.Bridge.Cluster
	members := bridge.member("cluster").member("members")
	switch {
	case p.MemberID == "":
		bridge.member("deployment_mode").problem("a clustered bridge needs to know who it is: start it with --member-id")
	case len(c.Members) > 0 && !slices.Contains(c.Members, p.MemberID):
		members.problem("this member, %s, is not in the roster (%s): correct --member-id, or name it there", p.MemberID, list(c.Members))
	}
	if c.Rollout == Coordinated && !p.RolloutStore {
		bridge.member("cluster").member("rollout").problem("a coordinated rollout needs a store: start every member with the same --rollout-store")
	}
	for _, s := range d.Sessions {
		if s.Exclusive && !p.LeaseStore {
			place{v, "/sessions", "sessions." + s.ID}.problem("an exclusive session of a clustered bridge needs a store of leases: start every member with the same --lease-store")
		}
	}
}

// list prints a few of many.
func list(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

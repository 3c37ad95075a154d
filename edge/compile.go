package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/ratelimit"
	"github.com/guardyn-edge/guardyn/edge/rrset"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// Options of Compile.
type Options struct {
	// ServiceAddresses are the node's own, answered for proxied names: at most MaxServiceAddresses of each family. A family
	// without any answers NODATA.
	ServiceAddresses []netip.Addr
	// Epoch of the activation; 0 reads as 1.
	Epoch uint64
	// Programs is where rules of different zones share compiled expressions; nil takes the old view's, or a
	// new cache of the default size.
	Programs *rules.Programs
	// Monitor takes notice of what becomes of origins; nil takes the old view's, or none.
	Monitor *pool.Monitor
	// Secrets opens the private keys of TLS hosts; nil takes the old view's, or none: a zone with a TLS host does not
	// compile then, unless it shares the host with the old view.
	Secrets Secrets
	// Functions compiles and runs the functions of zones; nil takes the old view's, or a new engine with the defaults.
	Functions *function.Engine
}

// MaxServiceAddresses bounds Options.ServiceAddresses of one family, so that they fit one UDP answer without EDNS.
const MaxServiceAddresses = 16

// maxErrors bounds how many zones the error of Compile names.
const maxErrors = 20

// Compile makes the view of s under an activation's generation. old is the view served now, nil for the
// first: a zone that s shares with old's snapshot keeps its compiled zone, and the cost follows the
// difference, not the platform. When zones do not compile the error names them and there is no view.
func Compile(old *View, s *snapshot.Snapshot, generation uint64, o Options) (*View, error) {
	if s == nil {
		return nil, errors.New("compile: there is no snapshot")
	}
	var ipv4, ipv6 int
	for i, a := range o.ServiceAddresses {
		switch {
		case !a.IsValid():
			return nil, fmt.Errorf("compile: service address %d is not set", i+1)
		case a.Unmap().Is4():
			ipv4++
		default:
			ipv6++
		}
	}
	if max(ipv4, ipv6) > MaxServiceAddresses {
		return nil, fmt.Errorf("compile: %d IPv4 and %d IPv6 service addresses, at most %d of each can be answered", ipv4, ipv6, MaxServiceAddresses)
	}
	v := &View{
		snapshot: s, generation: generation, epoch: o.Epoch,
		service: rrset.PackAddresses(o.ServiceAddresses), programs: o.Programs, monitor: o.Monitor, secrets: o.Secrets,
		functions: o.Functions,
	}
	var prev *snapshot.Snapshot
	var before index
	if old != nil {
		prev, before = old.snapshot, old.index
		if v.programs == nil {
			v.programs = old.programs
		}
		if v.monitor == nil {
			v.monitor = old.monitor
		}
		if v.secrets == nil {
			v.secrets = old.secrets
		}
		if v.functions == nil {
			v.functions = old.functions
		}
	}
	if v.programs == nil {
		v.programs = rules.NewPrograms(0)
	}
	if v.functions == nil {
		var err error
		if v.functions, err = function.New(function.Config{}); err != nil {
			return nil, fmt.Errorf("compile: %w", err)
		}
	}
	if old != nil && prev.ContentHash() == s.ContentHash() {
		v.index = before // the same content under another generation
		return v, nil
	}
	delta := s.Delta(prev)
	added, err := compileZones(&before, delta.Changed, v)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	var removed []*Zone
	remove := func(z *zone.Zone) {
		if old := before.of(z); old != nil && old.Config.ID == z.ID {
			removed = append(removed, old)
		}
	}
	for _, z := range delta.Removed {
		remove(z)
	}
	if prev != nil {
		for _, z := range delta.Changed {
			if was := prev.Zone(z.ID); was != nil && was.Name != z.Name {
				remove(was)
			}
		}
	}
	v.index = before.with(removed, added)
	if v.index.n != s.Len() {
		return nil, fmt.Errorf("compile: the snapshot has %d zones, the view would have %d", s.Len(), v.index.n)
	}
	return v, nil
}

// compileZones compiles zones for v on all processors, which unseals private keys beside each other. before holds the zones of the
// old view.
func compileZones(before *index, zones []*zone.Zone, v *View) ([]*Zone, error) {
	out := make([]*Zone, len(zones))
	failed := make([]error, len(zones))
	var next atomic.Int64
	work := func() {
		var c rrset.Compiler
		for {
			i := int(next.Add(1)) - 1
			if i >= len(zones) {
				return
			}
			out[i], failed[i] = compileZone(&c, before.of(zones[i]), zones[i], v)
		}
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(zones)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()

	var problems []error
	for i, err := range failed {
		if err == nil {
			continue
		}
		if len(problems) == maxErrors {
			problems = append(problems, errors.New("and more"))
			break
		}
		problems = append(problems, fmt.Errorf("zone %s: %w", zones[i].Name, err))
	}
	return out, errors.Join(problems...)
}

// compileZone compiles z. old, which may be nil, is the zone of that apex in the old view: its pools keep
// what they learnt, and what z shares with it is not compiled again.
func compileZone(c *rrset.Compiler, old *Zone, z *zone.Zone, v *View) (*Zone, error) {
	if old != nil && old.Config == z {
		return old, nil
	}
	if err := withinCeilings(z); err != nil {
		return nil, err
	}
	ceilings := z.Ceilings.Effective()
	out := &Zone{Config: z, MaxBody: int64(ceilings.RequestBody), Rate: ratelimit.NewRate(uint32(ceilings.RequestRate), time.Second)}
	var oldRules *rules.Set
	var oldPools *pool.Set
	var oldTLS *TLS
	var same *Zone // old, when it is this zone as it was before
	if old != nil && old.Config.ID == z.ID {
		oldRules, out.Requests, out.Handling = old.Rules, old.Requests, old.Handling
		oldPools, oldTLS = old.Pools, &old.TLS
		same = old
	}
	if out.Requests == nil {
		out.Requests, out.Handling = new(ratelimit.Meter), new(atomic.Int64)
	}
	apex, ok := rrset.AppendWire(nil, z.Name.String())
	if !ok {
		return nil, errors.New("its name cannot be packed")
	}
	out.apex = string(apex)
	var err error
	if out.Records, err = c.Compile(z); err != nil {
		return nil, err
	}
	if len(z.Rulesets) > 0 || len(z.Lists) > 0 {
		if out.Rules, err = rules.Compile(z, rules.Options{Programs: v.programs, Old: oldRules}); err != nil {
			return nil, err
		}
	}
	if len(z.Pools) > 0 || len(z.LoadBalancers) > 0 {
		if out.Pools, err = pool.Compile(z, oldPools, v.monitor); err != nil {
			return nil, err
		}
	}
	out.Cache = cache.NewPolicy(z.CachePolicy)
	if out.TrustedProxies, err = CompilePrefixes(z.Settings.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted_proxies: %w", err)
	}
	if out.TLS, err = compileTLS(z, oldTLS, v.secrets); err != nil {
		return nil, err
	}
	if out.Functions, err = compileFunctions(z, same, v.functions); err != nil {
		return nil, err
	}
	return out, nil
}

// CompilePrefixes returns a table of prefixes, nil for none.
func CompilePrefixes(items []string) (*bart.Lite, error) {
	if len(items) == 0 {
		return nil, nil
	}
	t := new(bart.Lite)
	for _, s := range items {
		p, err := zone.ParsePrefix(s)
		if err != nil {
			return nil, err
		}
		t.Insert(p)
	}
	return t, nil
}

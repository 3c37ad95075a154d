package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/zone"
)

// Any and Absent are conditions on an object's revision: no condition, and that it must not exist. Absent
// is also the revision of a cache policy or settings that were never written and have their defaults.
const (
	Any    int64 = 0
	Absent int64 = -1
)

// singletonName names the one object of a kind of which each zone has one.
const singletonName = "zone"

// Object is an object of a zone with its name and revision.
type Object[T any] struct {
	Name     string
	Value    T
	Revision int64
}

// Objects edits the objects of one kind. Names are those of ObjectKind; a host name is folded to its
// normal form. Values are normalised before they are stored; a *ProblemsError says what is malformed.
type Objects[T any] struct {
	s         *Service
	kind      ObjectKind
	title     string // how people call the kind
	parseName func(zn zone.Name, name string) (string, error)
	normalize func(name string, v T) (T, error)
}

// Rulesets holds a list of rules per phase.
func (s *Service) Rulesets() Objects[[]zone.Rule] {
	return Objects[[]zone.Rule]{s, KindRuleset, "ruleset", phaseName, normalizeRules}
}

// Lists holds the zone's lists.
func (s *Service) Lists() Objects[zone.List] {
	return Objects[zone.List]{s, KindList, "list", objectName, plain(zone.List.Normalize)}
}

// Pools holds the zone's pools.
func (s *Service) Pools() Objects[zone.Pool] {
	return Objects[zone.Pool]{s, KindPool, "pool", objectName, plain(zone.Pool.Normalize)}
}

// LoadBalancers are named by host.
func (s *Service) LoadBalancers() Objects[zone.LoadBalancer] {
	return Objects[zone.LoadBalancer]{s, KindLoadBalancer, "load balancer", hostName, plain(zone.LoadBalancer.Normalize)}
}

// TLSHosts are named by host.
func (s *Service) TLSHosts() Objects[zone.TLSHost] {
	return Objects[zone.TLSHost]{s, KindTLSHost, "TLS host", hostName, plain(zone.TLSHost.Normalize)}
}

// Functions holds the zone's functions.
func (s *Service) Functions() Objects[zone.Function] {
	return Objects[zone.Function]{s, KindFunction, "function", objectName, plain(zone.Function.Normalize)}
}

// CachePolicy is one object whose name is ignored.
func (s *Service) CachePolicy() Objects[zone.CachePolicy] {
	return Objects[zone.CachePolicy]{s, KindCachePolicy, "cache policy", nil, plain(zone.CachePolicy.Normalize)}
}

// Settings is one object whose name is ignored.
func (s *Service) Settings() Objects[zone.Settings] {
	return Objects[zone.Settings]{s, KindSettings, "settings", nil, plain(zone.Settings.Normalize)}
}

// singleton kinds have exactly one object in each zone.
func (o Objects[T]) singleton() bool { return o.parseName == nil }

func plain[T any](f func(T) (T, error)) func(string, T) (T, error) {
	return func(_ string, v T) (T, error) { return f(v) }
}

// normalizeRules reports what is malformed in any of the rules, each with its number.
func normalizeRules(name string, rules []zone.Rule) ([]zone.Rule, error) {
	out := make([]zone.Rule, len(rules))
	var bad []error
	for i, r := range rules {
		var err error
		out[i], err = r.Normalize(zone.Phase(name))
		for _, e := range unjoinNil(err) {
			bad = append(bad, fmt.Errorf("rule %d: %w", i+1, e))
		}
	}
	return out, errors.Join(bad...)
}

// unrepeated is an answer of the store without the store's own name of what was asked for: who wraps it names that as people do.
func unrepeated(err error) error {
	for _, known := range []error{ErrNotFound, ErrExists} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

func unjoinNil(err error) []error {
	if err == nil {
		return nil
	}
	return unjoin(err)
}

func phaseName(_ zone.Name, name string) (string, error) {
	ph, err := zone.ParsePhase(name)
	return string(ph), err
}

func objectName(_ zone.Name, name string) (string, error) { return zone.ParseObjectName(name) }

func hostName(zn zone.Name, name string) (string, error) {
	n, err := zone.ParseNameIn(zn, name)
	return n.String(), err
}

// named returns the normal form of a name. One that is malformed names nothing when reading and is a
// problem when writing.
func (o Objects[T]) named(zn zone.Name, name string) (string, error) {
	if o.singleton() {
		return singletonName, nil
	}
	n, err := o.parseName(zn, name)
	if err != nil {
		return "", malformedBy(zn, fmt.Sprintf("%s %s", o.title, name), err)
	}
	return n, nil
}

func (o Objects[T]) object(name string) string {
	switch o.kind {
	case KindSettings, KindCachePolicy:
		return o.title
	case KindRuleset:
		return "ruleset " + name
	}
	return o.title + " " + name
}

// List returns all of a zone, by name (viewer).
func (o Objects[T]) List(ctx context.Context, p Principal, ref string) ([]Object[T], error) {
	z, err := o.s.zoneFor(ctx, p, RoleViewer, ref)
	if err != nil {
		return nil, err
	}
	rows, err := o.s.store.ListObjects(ctx, p.Workspace, z.ID, o.kind)
	if err != nil {
		return nil, fmt.Errorf("listing the %ss of %s: %w", o.title, z.Name, err)
	}
	out := make([]Object[T], len(rows))
	for i, r := range rows {
		if out[i], err = o.decode(z, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Get returns one (viewer). Cache policy and settings that were never written are their zero value, at
// revision Absent.
func (o Objects[T]) Get(ctx context.Context, p Principal, ref, name string) (Object[T], error) {
	z, err := o.s.zoneFor(ctx, p, RoleViewer, ref)
	if err != nil {
		return Object[T]{}, err
	}
	n, err := o.named(z.Name, name)
	if err != nil {
		return Object[T]{}, fmt.Errorf("%s of %s: %w", o.object(name), z.Name, ErrNotFound)
	}
	return o.stored(ctx, p.Workspace, z, n)
}

// stored reads one by its normal name.
func (o Objects[T]) stored(ctx context.Context, ws string, z ZoneRow, name string) (Object[T], error) {
	row, err := o.s.store.Object(ctx, ws, z.ID, o.kind, name)
	if errors.Is(err, ErrNotFound) && o.singleton() {
		return Object[T]{Name: name, Revision: Absent}, nil
	}
	if err != nil {
		return Object[T]{}, fmt.Errorf("%s of %s: %w", o.object(name), z.Name, unrepeated(err))
	}
	return o.decode(z, row)
}

func (o Objects[T]) decode(z ZoneRow, row ObjectRow) (Object[T], error) {
	out := Object[T]{Name: row.Name, Revision: row.Revision}
	if err := json.Unmarshal(row.Body, &out.Value, json.RejectUnknownMembers(true)); err != nil {
		return Object[T]{}, fmt.Errorf("%s of %s as it is stored: %w", o.object(row.Name), z.Name, err)
	}
	return out, nil
}

// Put writes v and returns it in normal form (editor). ifRevision is Any, Absent (ErrExists when there is
// one) or the revision that must stand (ErrConflict).
func (o Objects[T]) Put(ctx context.Context, p Principal, ref, name string, v T, ifRevision int64) (Object[T], error) {
	z, err := o.s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return Object[T]{}, err
	}
	n, err := o.named(z.Name, name)
	if err != nil {
		return Object[T]{}, err
	}
	return o.put(ctx, p, z, n, v, ifRevision)
}

func (o Objects[T]) put(ctx context.Context, p Principal, z ZoneRow, name string, v T, ifRevision int64) (Object[T], error) {
	v, err := o.normalize(name, v)
	if err != nil {
		return Object[T]{}, malformedBy(z.Name, o.object(name), err)
	}
	body, err := encode(v)
	if err != nil {
		return Object[T]{}, err
	}
	a := o.s.entry(p, p.Workspace, string(o.kind)+".put", o.target(z, name))
	row := ObjectRow{Kind: o.kind, Name: name, Body: body}
	revision, err := o.s.store.PutObject(ctx, p.Workspace, z.ID, row, ifRevision, a)
	if err != nil {
		return Object[T]{}, fmt.Errorf("%s of %s: %w", o.object(name), z.Name, unrepeated(err))
	}
	return Object[T]{Name: name, Value: v, Revision: revision}, nil
}

// Delete removes one (editor); cache policy and settings go back to their defaults. ifRevision is Any or
// the revision that must stand (ErrConflict).
func (o Objects[T]) Delete(ctx context.Context, p Principal, ref, name string, ifRevision int64) error {
	z, err := o.s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return err
	}
	n, err := o.named(z.Name, name)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", o.object(name), z.Name, ErrNotFound)
	}
	a := o.s.entry(p, p.Workspace, string(o.kind)+".delete", o.target(z, n))
	err = o.s.store.DeleteObject(ctx, p.Workspace, z.ID, o.kind, n, ifRevision, a)
	if errors.Is(err, ErrNotFound) && o.singleton() && (ifRevision == Any || ifRevision == Absent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", o.object(n), z.Name, unrepeated(err))
	}
	return nil
}

// target names the object in the audit log.
func (o Objects[T]) target(z ZoneRow, name string) string {
	if o.singleton() {
		return z.Name.String()
	}
	return z.Name.String() + " " + name
}

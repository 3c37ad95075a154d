package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/zone"
)

// Any and Absent are conditions on an object's revision: no condition, and that it must not exist. Absent
// is also the revision of a cache policy or settings that were never written and have their defaults.
const (
	Any    int64 = 0
	Absent int64 = -1
)

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
	singleton bool // always there, named "zone"
	parseName func(zn zone.Name, name string) (string, error)
	normalize func(zn zone.Name, name string, v T) (T, error)
}

// Rulesets holds a list of rules per phase.
func (s *Service) Rulesets() Objects[[]zone.Rule] { panic("unbuilt") }

// Lists holds the zone's lists.
func (s *Service) Lists() Objects[zone.List] { panic("unbuilt") }

// Pools holds the zone's pools.
func (s *Service) Pools() Objects[zone.Pool] { panic("unbuilt") }

// LoadBalancers are named by host.
func (s *Service) LoadBalancers() Objects[zone.LoadBalancer] { panic("unbuilt") }

// TLSHosts are named by host.
func (s *Service) TLSHosts() Objects[zone.TLSHost] { panic("unbuilt") }

// Functions holds the zone's functions.
func (s *Service) Functions() Objects[zone.Function] { panic("unbuilt") }

// CachePolicy is one object whose name is ignored.
func (s *Service) CachePolicy() Objects[zone.CachePolicy] { panic("unbuilt") }

// Settings is one object whose name is ignored.
func (s *Service) Settings() Objects[zone.Settings] { panic("unbuilt") }

// List returns all of a zone, by name (viewer).
func (o Objects[T]) List(ctx context.Context, p Principal, ref string) ([]Object[T], error) {
	panic("unbuilt")
}

// Get returns one (viewer). Cache policy and settings that were never written are their zero value, at
// revision Absent.
func (o Objects[T]) Get(ctx context.Context, p Principal, ref, name string) (Object[T], error) {
	panic("unbuilt")
}

// Put writes v and returns it in normal form (editor). ifRevision is Any, Absent (ErrExists when there is
// one) or the revision that must stand (ErrConflict).
func (o Objects[T]) Put(ctx context.Context, p Principal, ref, name string, v T, ifRevision int64) (Object[T], error) {
	panic("unbuilt")
}

// Delete removes one (editor); cache policy and settings go back to their defaults. ifRevision is Any or
// the revision that must stand (ErrConflict).
func (o Objects[T]) Delete(ctx context.Context, p Principal, ref, name string, ifRevision int64) error {
	panic("unbuilt")
}

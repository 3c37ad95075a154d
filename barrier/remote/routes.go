package remote

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/barrier"
)

// route is one call, and which kinds of principals may make it. What a call may name beyond that (a member, an
// operator, a claim) is tested where its body is read.
type route struct {
	method, path string
	may          rights
	serve        func(*exchange) error
}

var routes = []route{
	{http.MethodGet, "/row", coordinator | operator, (*exchange).row},
	{http.MethodGet, "/view", member | coordinator | operator, (*exchange).view},
	{http.MethodGet, "/watch", member | coordinator | operator, (*exchange).watch},

	{http.MethodPost, "/join", member, taking(maxRequest, (*exchange).join)},
	{http.MethodPost, "/ack", member, taking(maxRequest, (*exchange).ack)},
	{http.MethodPost, "/nack", member, taking(maxRequest, (*exchange).nack)},
	{http.MethodPost, "/converge", member, taking(maxRequest, (*exchange).converge)},
	{http.MethodPost, "/withdraw", member, taking(maxRequest, (*exchange).withdraw)},

	{http.MethodPost, "/claim", coordinator, taking(maxRequest, (*exchange).claim)},
	{http.MethodPost, "/commit", coordinator, taking(maxRequest, (*exchange).commit)},
	{http.MethodPost, "/confirm", coordinator, taking(maxRequest, (*exchange).confirm)},
	{http.MethodPost, "/abort", coordinator | operator, taking(maxRequest, (*exchange).abort)},
	{http.MethodPost, "/revert", member | coordinator | operator, taking(maxRequest, (*exchange).revert)},

	{http.MethodPost, "/propose", coordinator | operator, taking(maxRequest, (*exchange).propose)},
	{http.MethodPost, "/roster", coordinator | operator, taking(maxRoster, (*exchange).setRoster)},
	{http.MethodPost, "/baseline", coordinator | operator, taking(maxRequest, (*exchange).adoptBaseline)},

	{http.MethodPost, "/lease/acquire", coordinator, taking(maxRequest, (*exchange).acquire)},
	{http.MethodPost, "/lease/renew", coordinator, taking(maxRequest, (*exchange).renew)},
	{http.MethodPost, "/lease/release", coordinator, taking(maxRequest, (*exchange).release)},

	{http.MethodPut, "/artefact", coordinator | operator, (*exchange).put},
	{http.MethodGet, "/artefact", member | coordinator, (*exchange).get},
}

// paths finds a route by its path and method.
var paths = func() map[string]map[string]route {
	m := map[string]map[string]route{}
	for _, rt := range routes {
		if m[rt.path] == nil {
			m[rt.path] = map[string]route{}
		}
		m[rt.path][rt.method] = rt
	}
	return m
}()

func allowed(methods map[string]route) string {
	return strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
}

func (x *exchange) row() error {
	if _, err := x.query(); err != nil {
		return err
	}
	row, err := x.b.Store.Current(x.ctx)
	if err != nil {
		return err
	}
	return x.answer(row)
}

func (x *exchange) view() error {
	q, err := x.query("member")
	if err != nil {
		return err
	}
	m := barrier.MemberID(q.Get("member"))
	if !x.p.is(coordinator | operator) {
		if err := x.p.speaksFor(m); err != nil {
			return err
		}
	}
	view, err := x.b.Store.Look(x.ctx, m)
	if err != nil {
		return err
	}
	return x.answer(view)
}

func (x *exchange) join(b joinBody) (any, error) {
	if err := x.p.speaksFor(b.Member); err != nil {
		return nil, err
	}
	return x.b.Store.Join(x.ctx, b.Member, b.Boot, b.Incarnation)
}

func (x *exchange) ack(b voteBody) (any, error) {
	if err := x.p.speaksFor(b.Member); err != nil {
		return nil, err
	}
	return doneAnswer{}, x.b.Store.Ack(x.ctx, b.Ref, b.Member, b.Boot, b.BuildDigest)
}

func (x *exchange) nack(b reasonBody) (any, error) {
	if err := x.p.speaksFor(b.Member); err != nil {
		return nil, err
	}
	return doneAnswer{}, x.b.Store.Nack(x.ctx, b.Ref, b.Member, b.Boot, b.Reason)
}

func (x *exchange) converge(b convergeBody) (any, error) {
	if err := x.p.speaksFor(b.Member); err != nil {
		return nil, err
	}
	return doneAnswer{}, x.b.Store.Converge(x.ctx, b.Ref, b.Member, b.Boot, b.Detail)
}

func (x *exchange) withdraw(b reasonBody) (any, error) {
	if err := x.p.speaksFor(b.Member); err != nil {
		return nil, err
	}
	return doneAnswer{}, x.b.Store.Withdraw(x.ctx, b.Ref, b.Member, b.Boot, b.Reason)
}

func (x *exchange) claim(b claimBody) (any, error) {
	return doneAnswer{}, x.b.Store.Claim(x.ctx, b.Token)
}

func (x *exchange) commit(b decideBody) (any, error) {
	return doneAnswer{}, x.b.Store.Commit(x.ctx, b.Ref, b.Token)
}

func (x *exchange) confirm(b decideBody) (any, error) {
	return doneAnswer{}, x.b.Store.Confirm(x.ctx, b.Ref, b.Token)
}

func (x *exchange) abort(b endBody) (any, error) {
	by, err := x.p.authority(b.By)
	if err != nil {
		return nil, err
	}
	return doneAnswer{}, x.b.Store.Abort(x.ctx, b.Ref, by, b.Reason)
}

func (x *exchange) revert(b endBody) (any, error) {
	by, err := x.p.authority(b.By)
	if err != nil {
		return nil, err
	}
	return doneAnswer{}, x.b.Store.Revert(x.ctx, b.Ref, by, b.Reason)
}

func (x *exchange) propose(p barrier.Proposal) (any, error) {
	if !x.p.Coordinator {
		switch p.Proposer {
		case x.p.Operator:
		case "":
			p.Proposer = x.p.Operator
		default:
			return nil, forbidden("the credentials are another operator's")
		}
	}
	return x.b.Store.Propose(x.ctx, p)
}

func (x *exchange) setRoster(b rosterBody) (any, error) {
	return x.b.Store.SetRoster(x.ctx, b.Revision, b.Members)
}

func (x *exchange) adoptBaseline(p barrier.Pointer) (any, error) {
	outcome, err := x.b.Store.AdoptBaseline(x.ctx, p)
	return baselineAnswer{outcome}, err
}

var errNotServed = &refusal{http.StatusNotFound, codeNotFound, "it is not served here"}

func (x *exchange) acquire(b acquireBody) (any, error) {
	if x.b.Leases == nil {
		return nil, errNotServed
	}
	return x.b.Leases.Acquire(x.ctx, b.Holder, b.TTL)
}

func (x *exchange) renew(l barrier.Lease) (any, error) {
	if x.b.Leases == nil {
		return nil, errNotServed
	}
	return doneAnswer{}, x.b.Leases.Renew(x.ctx, l)
}

func (x *exchange) release(l barrier.Lease) (any, error) {
	if x.b.Leases == nil {
		return nil, errNotServed
	}
	return doneAnswer{}, x.b.Leases.Release(x.ctx, l)
}

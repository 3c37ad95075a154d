package remote

import (
	"errors"
	"net/http"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Principal is who a request's credentials belong to, and so on whose word it can be acted. What is set adds
// up: a process may be a member and a coordinator. The zero Principal is known and may do nothing.
type Principal struct {
	// Member is the one member that the credentials speak for: no other can be named by a request.
	Member barrier.MemberID

	// Coordinator lets it hold the lease and decide by claim, propose, change the roster, and read everything.
	Coordinator bool

	// Operator is the name of a person, at most barrier.MaxNameBytes bytes. It is what aborts and reverts by an operator are
	// recorded under, and what he proposes; a request cannot give another.
	Operator string
}

// Authorizer tells whose credentials a request has: by its headers, or its connection's certificate. It does
// not read the body, and is called by many goroutines at once. A request for which it returns an error is
// refused unseen: as 503 when the error is ErrUnavailable, which asks the client to come again, and as 401
// else.
type Authorizer func(*http.Request) (Principal, error)

// ErrUnavailable is for an Authorizer that cannot tell at the moment. Clients return it for an answer of 503
// too: the call had no effect.
var ErrUnavailable = errors.New("not available at the moment")

var (
	// ErrUnauthenticated is a client's error when its credentials are not known: the call had no effect.
	ErrUnauthenticated = errors.New("credentials are not known")

	// ErrForbidden is a client's error when its credentials do not allow the call: it had no effect.
	ErrForbidden = errors.New("credentials do not allow it")
)

// rights are the kinds of principals that may use a route.
type rights uint8

const (
	member rights = 1 << iota
	coordinator
	operator
)

// rights returns what p is.
func (p Principal) rights() rights {
	var r rights
	if p.Member != "" {
		r |= member
	}
	if p.Coordinator {
		r |= coordinator
	}
	if p.Operator != "" {
		r |= operator
	}
	return r
}

// is tells whether p is any of what may names.
func (p Principal) is(may rights) bool { return p.rights()&may != 0 }

// speaksFor refuses a request of p that names another member.
func (p Principal) speaksFor(m barrier.MemberID) error {
	if p.Member == "" || m != p.Member {
		return forbidden("the credentials do not speak for that member")
	}
	return nil
}

// authority returns on whose word p decides when it says by: a claim is a coordinator's, a deadman the
// member's own, and an operator is who the credentials say, named or not. Of one that mixes kinds, which the store
// refuses, every part must be p's.
func (p Principal) authority(by barrier.Authority) (barrier.Authority, error) {
	if by == (barrier.Authority{}) {
		by.Operator = p.Operator
	}
	if by.Member != "" || by.Boot != "" {
		if err := p.speaksFor(by.Member); err != nil {
			return by, err
		}
	}
	switch {
	case by.Token != 0 && !p.Coordinator:
		return by, forbidden("the credentials are not a coordinator's")
	case by.Operator != "" && p.Operator == "":
		return by, forbidden("the credentials are not an operator's")
	case by.Operator != "" && by.Operator != p.Operator:
		return by, forbidden("the credentials are another operator's")
	}
	return by, nil
}

package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// A control plane serves a cohort, and a member of it votes with its own credentials.
func ExampleHandler() {
	store := memory.New(memory.Options{})
	tokens := map[string]remote.Principal{
		"Bearer node-a's": {Member: "node-a"},
		"Bearer alice's":  {Operator: "alice"},
	}
	handler := remote.NewHandler(
		remote.Backend{Store: store, Leases: store, Artefacts: store},
		func(r *http.Request) (remote.Principal, error) {
			p, ok := tokens[r.Header.Get("Authorization")]
			if !ok {
				return p, errors.New("unknown token")
			}
			return p, nil
		},
		remote.Options{},
	)
	defer handler.Close()
	mux := http.NewServeMux()
	mux.Handle("/v1/barrier/edge/", http.StripPrefix("/v1/barrier/edge", handler))
	server := httptest.NewServer(mux)
	defer server.Close()

	connect := func(token string) *remote.Client {
		c, err := remote.NewClient(server.URL+"/v1/barrier/edge", remote.ClientOptions{Authorize: remote.Bearer(token)})
		if err != nil {
			panic(err)
		}
		return c
	}
	ctx := context.Background()
	alice, node := connect("alice's"), connect("node-a's")
	defer alice.Close()
	defer node.Close()

	roster, err := alice.SetRoster(ctx, 0, []barrier.MemberID{"node-a"})
	fmt.Println(roster.Members, err)
	_, err = node.Join(ctx, "node-a", "boot-1", 0)
	fmt.Println(err)
	rollout, err := alice.Propose(ctx, barrier.Proposal{ID: "2f1c", Digest: "sha256:ab", RosterRevision: roster.Revision})
	fmt.Println(rollout.State, "by", rollout.Proposer, err)
	fmt.Println(node.Ack(ctx, rollout.Ref, "node-a", "boot-1", ""))
	err = node.Nack(ctx, rollout.Ref, "node-a", "boot-1", "no")
	fmt.Println(errors.Is(err, barrier.ErrVoted))
	err = node.Ack(ctx, rollout.Ref, "node-b", "boot-1", "")
	fmt.Println(errors.Is(err, remote.ErrForbidden))
	// Output:
	// [node-a] <nil>
	// <nil>
	// proposed by alice <nil>
	// <nil>
	// true
	// true
}

package api

import (
	"net/http"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// purgesPath is asked by a node that was told that the log of purges goes on.
const purgesPath = "/v1/node/purges"

// headerPurges carries a place in the log of purges: with a poll the one up to which the node has done all of them, with its answer
// the log's end.
const headerPurges = "x-guardyn-purges"

// purgesType is the type of a signed statement, which is ASCII.
const purgesType = "text/plain; charset=us-ascii"

var canonicalPurges = http.CanonicalHeaderKey(headerPurges)

func (h *Handler) purgeRoutes() []*route {
	return []*route{
		write(route{
			method: http.MethodPost, pattern: "/v1/zones/{zone}/purges", access: forUsers, role: "editor", status: http.StatusCreated,
			summary: "Have every node drop what it cached of a zone",
		}, func(c *call, in NewPurge) (Purge, error) {
			st, err := h.svc.Purge(c.r.Context(), c.principal, c.param("zone"), zone.Purge{Kind: zone.PurgeKind(in.Kind), Values: in.Values})
			return c.purge(st), err
		}),
		read(route{
			pattern: "/v1/zones/{zone}/purges", access: forUsers, role: "viewer", query: []string{"limit", "cursor"},
			summary: "List a zone's purges, newest first, with how far the fleet is",
		}, func(c *call) (Page[Purge], error) {
			p, err := c.page()
			if err != nil {
				return Page[Purge]{}, err
			}
			l, err := h.svc.ListPurges(c.r.Context(), c.principal, c.param("zone"), p)
			return pageOf(l, c.purge), err
		}),
		read(route{
			pattern: "/v1/zones/{zone}/purges/{id}", access: forUsers, role: "viewer", summary: "Return a purge with how far the fleet is",
		}, func(c *call) (Purge, error) {
			st, err := h.svc.PurgeByID(c.r.Context(), c.principal, c.param("zone"), c.param("id"))
			return c.purge(st), err
		}),
		{
			method: http.MethodGet, pattern: purgesPath, access: forNodes, query: []string{"after"},
			summary: "Return the purges that follow a place in the log, as a signed statement", outType: "text/plain", status: http.StatusOK,
			serve: func(c *call) error {
				var after *seal.PurgeMark
				if text, given := c.args["after"]; given {
					m, err := seal.ParsePurgeMark(text)
					if err != nil {
						return badQuery([]Problem{{Object: "parameter after", Code: "bad_parameter", Message: err.Error()}})
					}
					after = &m
				}
				statement, err := h.svc.Purges(c.r.Context(), c.principal, after)
				if err != nil {
					return err
				}
				c.answer(http.StatusOK, purgesType, []byte(statement))
				return nil
			},
		},
	}
}

func (c *call) purge(st control.PurgeStatus) Purge {
	out := Purge{
		ID: st.ID, Kind: string(st.Kind), Values: st.Values, At: st.At.UTC(), By: st.By,
		Nodes: st.Nodes, Done: st.Done, Silent: st.Silent, Waiting: st.Waiting,
	}
	if out.Values == nil {
		out.Values = []string{}
	}
	if c.principal.Operator {
		out.Sequence = st.Sequence
	}
	return out
}

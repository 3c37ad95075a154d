package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// rolloutPrefix is where members of the cohort find the barrier: package barrier/remote has what travels there.
const (
	rolloutPrefix = "/v1/node/rollout"
	watchPath     = rolloutPrefix + "/watch"
)

// selfRoutes tell a node who it is and what the open rollout carries.
func (h *Handler) selfRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/node/self", access: forNodes, summary: "Tell the node who it is, and whether it takes part in rollouts",
		}, func(c *call) (nodeproto.Self, error) {
			return h.svc.NodeSelf(c.r.Context(), c.principal)
		}),
		{
			method: http.MethodGet, pattern: candidatePath, access: forNodes, query: []string{"digest"},
			summary: "Return what the open rollout carries, to a node that must agree to it; nothing makes it live yet",
			outType: "application/octet-stream", status: http.StatusOK, serve: h.candidate,
		},
	}
}

// candidatePath gives out what a rollout carries.
const candidatePath = "/v1/node/candidate"

// candidate answers with the envelope less its activation, which there is none of, and the payload.
func (h *Handler) candidate(c *call) error {
	digest, ok := c.args["digest"]
	if !ok {
		return badQuery([]Problem{{Object: "parameter digest", Code: "missing_parameter", Message: "say which candidate, as the rollout names it"}})
	}
	got, err := h.svc.CandidateFor(c.r.Context(), c.principal, digest)
	if err != nil {
		return err
	}
	hd := c.w.Header()
	seal.WriteHeader(hd, seal.Artefact{Sealed: got.Sealed})
	hd.Del(seal.HeaderActivation)
	hd.Set(headerMargin, strconv.Itoa(got.Margin))
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeTimeout + transferTime(int64(len(got.Payload)))))
	c.answer(http.StatusOK, "application/octet-stream", got.Payload)
	return nil
}

// memberRoutes are the part of the barrier that members use, of those that barrier/remote knows: to a node, too, the others do not
// exist. None without a rollout store.
func (h *Handler) memberRoutes() []*route {
	if h.barrier == nil {
		return nil
	}
	type vote struct {
		Rollout     barrier.Ref      `json:"rollout"`
		Member      barrier.MemberID `json:"member"`
		Boot        barrier.BootID   `json:"boot"`
		BuildDigest string           `json:"build_digest"`
	}
	type why struct {
		Rollout barrier.Ref      `json:"rollout"`
		Member  barrier.MemberID `json:"member"`
		Boot    barrier.BootID   `json:"boot"`
		Reason  string           `json:"reason"`
	}
	type evidence struct {
		Rollout barrier.Ref      `json:"rollout"`
		Member  barrier.MemberID `json:"member"`
		Boot    barrier.BootID   `json:"boot"`
		Detail  string           `json:"detail"`
	}
	type join struct {
		Member      barrier.MemberID `json:"member"`
		Boot        barrier.BootID   `json:"boot"`
		Incarnation uint64           `json:"incarnation"`
	}
	type deadman struct {
		Rollout barrier.Ref       `json:"rollout"`
		By      barrier.Authority `json:"by"`
		Reason  string            `json:"reason"`
	}
	type seen struct {
		Seen string `json:"seen"`
	}
	get := func(path, summary string, out reflect.Type, query ...string) *route {
		return &route{method: http.MethodGet, pattern: rolloutPrefix + path, summary: summary, query: query, out: out}
	}
	post := func(path, summary string, in, out reflect.Type) *route {
		return &route{method: http.MethodPost, pattern: rolloutPrefix + path, summary: summary, in: in, out: out, limit: maxMemberBody}
	}
	none := reflect.TypeFor[struct{}]()
	all := []*route{
		get("/view", "Return the rollout as this node needs it; durations are milliseconds", reflect.TypeFor[barrier.View](), "member"),
		get("/watch", "Wait for the rollout to change: 204 when it has not", reflect.TypeFor[seen](), "topic", "seen"),
		post("/join", "Make a process the node's own", reflect.TypeFor[join](), reflect.TypeFor[barrier.Registration]()),
		post("/ack", "Vote for the rollout: it is built", reflect.TypeFor[vote](), none),
		post("/nack", "Vote against the rollout", reflect.TypeFor[why](), none),
		post("/converge", "Say that the trial works on this node", reflect.TypeFor[evidence](), none),
		post("/withdraw", "Say that the trial does not work on this node", reflect.TypeFor[why](), none),
		post("/revert", "Revert a trial that was not confirmed in time", reflect.TypeFor[deadman](), none),
	}
	for _, rt := range all {
		rt.access, rt.status, rt.foreign, rt.serve = forNodes, http.StatusOK, true, h.serveBarrier
	}
	return all
}

// maxMemberBody is the limit of barrier/remote, in bytes.
const maxMemberBody = 64 << 10

// nodeKey is of the member's id in the context of a request to the barrier.
type nodeKey struct{}

// newBarrier returns the handler of what members say, whom the router has authenticated. It ends its watches with draining.
func newBarrier(store barrier.Store, o Options) *remote.Handler {
	authorize := func(r *http.Request) (remote.Principal, error) {
		id, ok := r.Context().Value(nodeKey{}).(barrier.MemberID)
		if !ok {
			return remote.Principal{}, errors.New("not by way of the router")
		}
		return remote.Principal{Member: id}, nil
	}
	return remote.NewHandler(remote.Backend{Store: store}, authorize, remote.Options{Challenge: challenge, Logger: o.Logger})
}

// serveBarrier hands a node's request on.
func (h *Handler) serveBarrier(c *call) error {
	w := &recorder{ResponseWriter: c.w, c: c}
	r := c.r.WithContext(context.WithValue(c.r.Context(), nodeKey{}, barrier.MemberID(c.principal.NodeID)))
	http.StripPrefix(rolloutPrefix, h.barrier).ServeHTTP(w, r)
	return nil
}

// recorder notes what another handler answers.
type recorder struct {
	http.ResponseWriter
	c *call
}

func (w *recorder) WriteHeader(status int) {
	if w.c.status == 0 {
		w.c.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.c.status == 0 {
		w.c.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.c.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Close ends what the handler began for rollouts, after the server that uses it. It is called once nobody is served, or not at all when
// Options.Rollouts was nil.
func (h *Handler) Close() {
	if h.barrier != nil {
		h.undrain()
		h.barrier.Close()
	}
}

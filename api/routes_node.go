package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// pollPath is asked by every node of the fleet every few seconds.
const pollPath = "/v1/node/config"

// maxTrustedKeys bounds the keys that a node may say it trusts.
const maxTrustedKeys = 64

func (h *Handler) nodeRoutes() []*route {
	return []*route{
		{
			method: http.MethodGet, pattern: pollPath, access: forNodes,
			query:   []string{"have", "generation", "epoch", "nonce", "wait", "held", "trial"},
			headers: []string{headerTrustedKeys, headerDictionary, headerPurges},
			summary: "Ask for a newer configuration: 200 with it, 204 when there is none, 409 when the node is ahead",
			outType: "application/octet-stream", status: http.StatusOK,
			// Only an unusual spelling of the path comes by the router.
			serve: func(c *call) error { return control.ErrNoRoute },
		},
		{
			method: http.MethodPost, pattern: "/v1/node/ack", access: forNodes, summary: "Report what this node serves",
			in: reflect.TypeFor[nodeproto.Ack](), limit: maxAckBody, status: http.StatusNoContent,
			serve: func(c *call) error {
				// Members that are not known are passed over: nodes are upgraded before the control plane, and a
				// later one may say more. None of them can say for whom: that is the token's alone.
				var a nodeproto.Ack
				if err := c.decodeJSON(&a, maxAckBody); err != nil {
					return err
				}
				if err := h.svc.Ack(c.r.Context(), c.principal, a); err != nil {
					return err
				}
				if a.Error != nil {
					h.metrics.refusal(a.Error.Code)
				}
				return c.noContent()
			},
		},
	}
}

// servePoll answers pollPath without a line in the log for each.
func (h *Handler) servePoll(w http.ResponseWriter, r *http.Request) {
	p, err := h.authenticate(r)
	if err == nil && p.NodeID == "" {
		err = control.ErrNoRoute
	}
	var q nodeproto.Poll
	if err == nil {
		q, err = parsePoll(r)
	}
	var a control.PollAnswer
	if err == nil {
		a, err = h.poll(w, r, p, q)
	}
	if err != nil {
		c := &call{h: h, w: w, r: r, principal: p, start: h.now()}
		c.fail(err)
		h.metrics.poll(c.status)
		return
	}
	hd := w.Header()
	secure(hd)
	if a.Freshness != "" {
		hd.Set(seal.HeaderFreshness, a.Freshness)
	}
	if a.Purges != "" {
		hd[canonicalPurges] = []string{a.Purges}
	}
	if a.Artefact == nil {
		h.fleet.write(hd, a.Version, a.Generation)
		w.WriteHeader(http.StatusNoContent)
		h.metrics.poll(http.StatusNoContent)
		return
	}
	seal.WriteHeader(hd, *a.Artefact)
	if a.Generation != 0 {
		hd.Set(seal.HeaderGeneration, strconv.FormatUint(a.Generation, 10))
	}
	payload := a.Artefact.Payload
	hd["Vary"] = varyByDictionary
	if a.Coding != nil {
		payload = a.Coding.Body
		hd["Content-Encoding"] = []string{codingName}
		hd.Set(seal.HeaderCoding, a.Coding.Signature)
	}
	hd["Content-Type"] = []string{"application/octet-stream"}
	hd["Content-Length"] = []string{strconv.Itoa(len(payload))}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout + transferTime(int64(len(payload)))))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(payload)
	h.metrics.poll(http.StatusOK)
}

// poll asks the control plane. A poll that waits gets the time for it, and ends when the client goes or the
// server drains.
func (h *Handler) poll(w http.ResponseWriter, r *http.Request, p control.Principal, q nodeproto.Poll) (control.PollAnswer, error) {
	ctx := r.Context()
	if q.Wait > 0 {
		// Deadlines are the connection's own clock, whatever the handler's is.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(q.Wait + writeTimeout))
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.draining, cancel)()
		ctx = waiting
	}
	return h.svc.Poll(ctx, p, q)
}

// headerCache holds the headers of a 204, which are the same for the whole fleet between two activations.
type headerCache struct{ at atomic.Pointer[fleetHeader] }

type fleetHeader struct {
	version, generation         uint64
	versionValue, generationVal []string
}

// write sets the two headers; a version of 0, nothing published yet, has none.
func (f *headerCache) write(hd http.Header, version, generation uint64) {
	if version == 0 {
		return
	}
	v := f.at.Load()
	if v == nil || v.version != version || v.generation != generation {
		v = &fleetHeader{
			version: version, generation: generation,
			versionValue:  []string{strconv.FormatUint(version, 10)},
			generationVal: []string{strconv.FormatUint(generation, 10)},
		}
		f.at.Store(v)
	}
	hd[canonicalVersion] = v.versionValue
	hd[canonicalGeneration] = v.generationVal
}

// The header names as net/http keeps them.
var (
	canonicalVersion     = http.CanonicalHeaderKey(seal.HeaderVersion)
	canonicalGeneration  = http.CanonicalHeaderKey(seal.HeaderGeneration)
	canonicalTrustedKeys = http.CanonicalHeaderKey(headerTrustedKeys)
)

// rolloutIDs are the characters of a rollout's id.
const rolloutIDs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-"

// parsePoll reads the query and header of a poll, strictly: what it does not know, or sees twice, it refuses.
func parsePoll(r *http.Request) (nodeproto.Poll, error) {
	var (
		q        nodeproto.Poll
		seen     [7]bool
		problems []Problem
	)
	bad := func(name, code, format string, args ...any) {
		problems = append(problems, Problem{Object: "parameter " + clip(name), Code: code, Message: fmt.Sprintf(format, args...)})
	}
	number := func(name, v string) uint64 {
		n, err := parseDecimal(v)
		if err != nil {
			bad(name, "bad_parameter", "%v", err)
		}
		return n
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" && r.URL.RawQuery == "" {
			break
		}
		// Names and values are digits and letters: an escape in one can only be a mistake.
		name, v, _ := strings.Cut(pair, "=")
		var i int
		switch name {
		case "have":
			q.Have = number(name, v)
		case "generation":
			q.Generation, i = number(name, v), 1
		case "epoch":
			q.Epoch, i = number(name, v), 2
		case "nonce":
			q.Nonce, i = v, 3
			if len(v) < 16 || len(v) > 64 || !isHex(v) {
				bad(name, "bad_parameter", "it takes 16 to 64 hex digits, in lower case")
			}
		case "wait":
			n := number(name, v)
			q.Wait, i = time.Duration(min(n, 1<<20))*time.Second, 4
			if q.Wait > nodeproto.MaxWait {
				bad(name, "bad_parameter", "it takes 0 to %d seconds", nodeproto.MaxWait/time.Second)
			}
		case "held":
			q.Held, i = v, 5
			if len(v) != 64 || !isHex(v) {
				bad(name, "bad_parameter", "it takes the hash of a payload: 64 hex digits, in lower case")
			}
		case "trial":
			q.Trial, i = v, 6
			if v == "" || len(v) > barrier.MaxIDBytes || strings.Trim(v, rolloutIDs) != "" {
				bad(name, "bad_parameter", "it takes the id of a rollout")
			}
		default:
			bad(name, "unknown_parameter", "this path takes no such parameter")
			continue
		}
		if seen[i] {
			bad(name, "repeated_parameter", "the parameter is given more than once")
		}
		seen[i] = true
	}
	if !seen[0] {
		bad("have", "missing_parameter", "say which version is served; 0 is none")
	}
	if seen[1] != seen[2] {
		bad("generation", "missing_parameter", "generation and epoch go together")
	}
	var err error
	if q.TrustedKeys, err = trustedKeys(r.Header[canonicalTrustedKeys]); err != nil {
		problems = append(problems, Problem{Object: "header " + headerTrustedKeys, Code: "bad_header", Message: err.Error()})
	}
	if q.Purged, err = purgedUpTo(r.Header[canonicalPurges]); err != nil {
		problems = append(problems, Problem{Object: "header " + headerPurges, Code: "bad_header", Message: err.Error()})
	}
	if len(problems) > 0 {
		return q, badQuery(problems)
	}
	q.Dictionary = heldDictionary(r.Header)
	return q, nil
}

// purgedUpTo reads the place in the log of purges that a node is at.
func purgedUpTo(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", errors.New("the header is given more than once")
	case values[0] == nodeproto.NoPurges:
		return values[0], nil
	}
	_, err := seal.ParsePurgeMark(values[0])
	return values[0], err
}

// trustedKeys reads the key ids that a node trusts.
func trustedKeys(values []string) ([]seal.KeyID, error) {
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 {
		return nil, fmt.Errorf("the header is given more than once")
	}
	if strings.Count(values[0], ",") >= maxTrustedKeys {
		return nil, fmt.Errorf("it takes at most %d key ids", maxTrustedKeys)
	}
	var ids []seal.KeyID
	for id := range strings.SplitSeq(values[0], ",") {
		if len(id) != 16 || !isHex(id) {
			return nil, fmt.Errorf("%q is not a key id: 16 hex digits, in lower case", clip(id))
		}
		ids = append(ids, seal.KeyID(id))
	}
	return ids, nil
}

// isHex reports whether s is lower-case hex digits.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

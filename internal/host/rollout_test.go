package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// fleet is a control plane with three nodes of its cohort, in this process.
type fleet struct {
	t       *testing.T
	cfg     host.ControlConfig
	control *host.Control
	op      *api.Client
	nodes   []*host.Edge
	record  string // id of the record that tells what is served
}

func startFleet(t *testing.T, cfg host.ControlConfig, configure ...func(*host.EdgeConfig)) *fleet {
	t.Helper()
	cfg.Lease, cfg.AllowedOrigins = 300*time.Millisecond, loopback()
	f := &fleet{t: t, cfg: cfg, control: startControl(t, cfg)}
	f.op = operator(t, f.control)
	trusted, err := seal.Trust(cfg.SigningKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		made, err := f.op.CreateNode(t.Context(), api.NewNode{Name: fmt.Sprintf("edge-%d", i+1), Cohort: true})
		if err != nil {
			t.Fatal(err)
		}
		edge := host.EdgeConfig{
			APIURL: "http://" + f.control.Addr(), Token: made.Secret, PublicKeys: trusted, StateDir: t.TempDir(),
			DNSAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0",
			AllowedOrigins: loopback(), RateLimitExempt: loopback(), Interval: 100 * time.Millisecond, Logger: cfg.Logger, TraceEndpoint: cfg.TraceEndpoint,
		}
		for _, c := range configure {
			c(&edge)
		}
		node, err := host.StartEdge(t.Context(), edge)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := node.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		f.nodes = append(f.nodes, node)
	}
	return f
}

// edit has the next apply publish a TXT record that says what, and www.example.com from origin.
func (f *fleet) edit(what, origin string) {
	f.t.Helper()
	ctx := f.t.Context()
	if f.record == "" {
		if _, err := f.op.CreateZone(ctx, api.NewZone{Name: "example.com"}); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "www", Type: "A", Content: "192.0.2.1", Proxied: true}); err != nil {
			f.t.Fatal(err)
		}
	} else if err := f.op.DeleteRecord(ctx, "example.com", f.record); err != nil {
		f.t.Fatal(err)
	}
	rec, err := f.op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "v", Type: "TXT", Content: what})
	if err != nil {
		f.t.Fatal(err)
	}
	f.record = rec.ID
	pool := zone.Pool{Origins: []zone.Origin{{Name: "a", Address: origin}}}
	if _, _, err := f.op.PutPool(ctx, "example.com", "default", pool, api.WriteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// apply publishes and, of what was put to the cohort, waits for the end.
func (f *fleet) apply(o *api.RolloutOptions) *api.Rollout {
	f.t.Helper()
	res, err := f.op.Apply(f.t.Context(), api.ApplyRequest{Message: "test", AcceptDisruption: true, Rollout: o})
	if err != nil {
		f.t.Fatal(err)
	}
	if o == nil {
		if !res.Applied {
			f.t.Fatalf("not applied: %+v", res)
		}
		return nil
	}
	if res.Rollout == nil || !res.Rollout.Open {
		f.t.Fatalf("not proposed: %+v", res)
	}
	ro := res.Rollout
	for ro.Open {
		if ro, err = f.op.AwaitRollout(f.t.Context(), ro.ID, ro.Seen, 20*time.Second); err != nil {
			f.t.Fatal(err)
		}
	}
	return ro
}

// soak of all trials: nodes prove what they found again within half of it, and tell what does not work while less than it remains. Both
// must be in time on a machine that has other work.
const soak = 4 * time.Second

// toConfirm is a trial that confirms as soon as it may.
func toConfirm() *api.RolloutOptions { return window(time.Minute, soak) }

// toRevert is a trial that is to fail, which takes all of its window.
func toRevert() *api.RolloutOptions { return window(3*soak, soak) }

func window(d, s time.Duration) *api.RolloutOptions {
	confirm, proof := api.Duration(d), api.Duration(s)
	return &api.RolloutOptions{Mode: "coordinated", ConfirmWindow: &confirm, Soak: &proof}
}

// eventually waits until every node is as it is asked to be.
func (f *fleet) eventually(what string, is func(*host.Edge) error) {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	for i, node := range f.nodes {
		for {
			err := is(node)
			if err == nil {
				break
			}
			select {
			case <-tick.C:
			case <-end.C:
				ro, _ := f.op.Rollout(f.t.Context(), api.CurrentRollout)
				f.t.Fatalf("%s: node %d: %v; rollout %+v", what, i+1, err, ro)
			}
		}
	}
}

// serves waits until every node answers so by DNS and HTTP.
func (f *fleet) serves(txt, page string) {
	f.t.Helper()
	f.eventually("serves "+txt, func(node *host.Edge) error {
		answer, err := dns.Exchange(new(dns.Msg).SetQuestion("v.example.com.", dns.TypeTXT), node.DNSAddr())
		if err != nil {
			return err
		}
		if len(answer.Answer) != 1 || answer.Answer[0].(*dns.TXT).Txt[0] != txt {
			return fmt.Errorf("DNS says %v", answer.Answer)
		}
		req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+node.HTTPAddr()+"/", nil)
		if err != nil {
			return err
		}
		req.Host = "www.example.com"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(body) != page {
			return fmt.Errorf("HTTP says %s %q", resp.Status, body)
		}
		return nil
	})
}

// health is the rollout member of /deephealth, by its documented names.
type health struct {
	Version    uint64
	Generation uint64
	Rollout    map[string]any
}

func deepHealth(t *testing.T, node *host.Edge) health {
	t.Helper()
	var h health
	status, body := get(t, "http://"+node.AdminAddr()+"/deephealth")
	if err := json.Unmarshal([]byte(body), &h); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	return h
}

// tells waits until deep health of every node has these members.
func (f *fleet) tells(want map[string]any) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("deep health has %v", want), func(node *host.Edge) error {
		h := deepHealth(f.t, node)
		for name, v := range want {
			if got, there := h.Rollout[name]; !there || fmt.Sprint(got) != fmt.Sprint(v) {
				return fmt.Errorf("%s is %v, not %v: %v", name, got, v, h.Rollout)
			}
		}
		return nil
	})
}

func (f *fleet) metric(url, line string) {
	f.t.Helper()
	if _, body := get(f.t, url); !strings.Contains(body, line+"\n") {
		for l := range strings.Lines(body) {
			if strings.HasPrefix(l, "guardyn_rollout") {
				f.t.Log(l)
			}
		}
		f.t.Errorf("%s lacks %q", url, line)
	}
}

func origin(t *testing.T, page string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Three nodes take changes over together, without and with a window, and back when one does not work.
func TestRollouts(t *testing.T) {
	for _, db := range []string{"sqlite", "postgres"} {
		t.Run(db, func(t *testing.T) {
			t.Parallel()
			cfg := controlConfig(t)
			if db == "postgres" {
				cfg.DatabaseURL, cfg.Migrate = testpg.URL(t), true
			}
			f := startFleet(t, cfg)
			metrics := "http://" + f.control.Addr() + "/metrics"
			one, two := origin(t, "one"), origin(t, "two")

			f.edit("1", one)
			f.apply(nil)
			f.serves("1", "one")
			f.tells(map[string]any{"cohort": true, "generation": 0, "state": "", "confirm_pending": false, "stale": false, "baseline_outcome": "skipped"})

			f.edit("2", one)
			ro := f.apply(&api.RolloutOptions{Mode: "coordinated"})
			if ro.State != "committed" || ro.Generation != 2 || ro.EpochSize != 3 {
				t.Fatalf("%+v", ro)
			}
			f.serves("2", "one")
			f.tells(map[string]any{
				"generation": 2, "version": 2, "state": "committed", "epoch": 3, "acked": true, "nacked": false, "applied": true,
				"confirm_pending": false, "terminal_generation": 0, "terminal_reason": "",
			})
			f.metric(metrics, `guardyn_rollout_state{state="committed"} 1`)
			f.metric(metrics, "guardyn_rollout_acks 3")
			f.metric(metrics, "guardyn_rollout_epoch_size 3")
			f.metric(metrics, `guardyn_rollout_resolved_total{outcome="committed",reason=""} 1`)

			f.edit("3", two)
			if ro = f.apply(toConfirm()); ro.State != "confirmed" || ro.Generation != 3 {
				t.Fatalf("%+v", ro)
			}
			for _, m := range ro.Members {
				if want := "zones 1/1, hosts 1/1, pools 1/1"; !m.Converged || !strings.HasPrefix(m.Detail, want) {
					t.Errorf("%s converged %t: %q, want %q", m.Name, m.Converged, m.Detail, want)
				}
			}
			f.serves("3", "two")
			f.tells(map[string]any{"generation": 3, "state": "confirmed", "converged": true, "applied": true, "confirm_pending": false, "flaps": 0})
			f.metric(metrics, `guardyn_rollout_resolved_total{outcome="confirmed",reason=""} 1`)

			// An origin that refuses connections: the host and the pool fail. The window is long enough for the nodes to have said so.
			f.edit("4", "127.0.0.1:1")
			if ro = f.apply(toRevert()); ro.State != "reverted" || !strings.Contains(ro.Reason, "www.example.com") {
				t.Fatalf("%+v", ro)
			}
			f.serves("3", "two")
			f.tells(map[string]any{"generation": 4, "state": "reverted", "applied": true, "confirm_pending": false})
			f.metric(metrics, `guardyn_rollout_state{state="reverted"} 1`)
			f.metric(metrics, `guardyn_rollout_resolved_total{outcome="reverted",reason="failed"} 1`)
			for _, node := range f.nodes {
				url := "http://" + node.AdminAddr() + "/metrics"
				f.metric(url, "guardyn_rollout_diverged 0")
				f.metric(url, "guardyn_rollout_terminal 0")
				f.metric(url, "guardyn_rollout_flaps_total 0")
				if _, body := get(t, url); !strings.Contains(body, "\nguardyn_rollout_observation_age_seconds ") {
					t.Error("a node does not say how old its knowledge is")
				}
				if h := deepHealth(t, node); h.Rollout["observed_at"] == nil || h.Version != 3 {
					t.Errorf("%+v", h)
				}
			}

			// Direct publishing goes on beside it, with generations of its own.
			f.edit("5", one)
			f.apply(nil)
			f.serves("5", "one")
		})
	}
}

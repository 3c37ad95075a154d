package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/zone"
)

// testRequest is the file that gdn rules test reads.
type testRequest struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
	Client     string            `json:"client"`
	Version    string            `json:"version"`
	SNI        string            `json:"sni"`
	TLSVersion string            `json:"tls_version"`
}

// request is what rules see of the file's request, in a zone with those settings; the error joins all that is wrong with it.
func (t testRequest) request(z zone.Name, s *zone.Settings) (*rules.Request, error) {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	r := &rules.Request{Method: t.Method, Version: t.Version, SNI: t.SNI, TLSVersion: t.TLSVersion, Header: http.Header{}, Zone: z.String()}
	u, err := url.Parse(t.URL)
	if err != nil {
		bad("url: %w; nodes answer such a target with 400", err)
	} else if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		bad("url %q is not absolute, such as https://www.%s/path?query", t.URL, z)
	} else {
		r.Scheme = u.Scheme
		if r.Host, err = zone.NormalizeHost(u.Host); err != nil {
			bad("url: %w", err)
		} else if r.Host != z.String() && !strings.HasSuffix(r.Host, "."+z.String()) {
			bad("url: host %s is not in zone %s", r.Host, z)
		}
		target, _, _ := strings.Cut(t.URL, "#")
		if r.Path, r.Query, err = zone.NormalizeTarget(target); err != nil {
			bad("url: %w", err)
		}
	}
	switch t.Method {
	case "":
		r.Method = http.MethodGet
	case http.MethodConnect, http.MethodTrace:
		bad("method %s is not served: nodes answer 405", t.Method)
	default:
		if !httpguts.ValidHeaderFieldName(t.Method) {
			bad("method %q is none: nodes answer 400", t.Method)
		}
	}
	peer, err := t.peer()
	if err != nil {
		bad("client %q is not an address", t.Client)
	}
	if r.Version == "" {
		r.Version = "1.1"
	}
	if r.Version != "1.0" && r.Version != "1.1" && r.Version != "2" {
		bad("version %q is not 1.0, 1.1 or 2", r.Version)
	}
	if r.Scheme == "https" {
		if r.SNI == "" {
			r.SNI = r.Host
		}
		if r.TLSVersion == "" {
			r.TLSVersion = "1.3"
		}
	} else if r.SNI != "" || r.TLSVersion != "" {
		bad("sni and tls_version need an https url")
	}
	if r.TLSVersion != "" && r.TLSVersion != "1.2" && r.TLSVersion != "1.3" {
		bad("tls_version %q is not 1.2 or 1.3", r.TLSVersion)
	}
	for name, value := range t.Headers {
		if strings.EqualFold(name, "host") {
			bad("headers: the host is in the url")
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			bad("headers: %q: %q is no field: nodes answer 400", name, value)
		}
		key := http.CanonicalHeaderKey(name)
		if _, twice := r.Header[key]; twice {
			bad("headers: %s is there twice", name)
		}
		r.Header.Set(key, value)
	}
	asked := http.Request{Method: r.Method, ProtoMajor: int(r.Version[0] - '0'), Header: r.Header}
	if asked.ProtoMajor == 1 {
		asked.ProtoMinor = int(r.Version[len(r.Version)-1] - '0')
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	r.Client, r.Scheme, err = web.Receive(&asked, s, peer, r.Scheme)
	return r, err
}

// peer is who connects.
func (t testRequest) peer() (netip.Addr, error) {
	a, err := netip.ParseAddr(cmp.Or(t.Client, "192.0.2.1"))
	return a.Unmap().WithZone(""), err
}

func (a *app) rulesTestCommand() *cobra.Command {
	var file string
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "test ZONE --request FILE",
		Short: "Explain what the edited rules of a zone do with a request, before they are published",
		Long: `Explain what the edited rules of a zone do with a request, before they are published. Nothing is sent to an origin and
no rate limit counts. Of a client that is one of the zone's trusted_proxies, X-Forwarded-For and X-Forwarded-Proto are believed, as by
nodes. FILE is YAML or JSON (- is standard input):

  method: POST                            default GET
  url: https://www.example.com/path?a=1   absolute; its host is in the zone
  headers: {user-agent: curl/8}           a request has no others; what nodes take from a client's is left out
  client: 192.0.2.7                       who connects; default 192.0.2.1
  version: "2"                            1.0, 1.1 (default) or 2
  sni: www.example.com                    of https; default the host
  tls_version: "1.3"                      of https; 1.2 or 1.3 (default)`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usagef(cmd, "%s needs --request FILE", cmd.CommandPath())
			}
			var in testRequest
			if err := a.readYAML(file, &in); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			z, err := editedRules(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			r, err := in.request(z.Name, &z.Settings)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			set, err := rules.Compile(z, rules.Options{})
			if err != nil {
				return fmt.Errorf("%s: %w", z.Name, err)
			}
			peer, err := in.peer()
			if err != nil {
				return err
			}
			outcome := runRules(z, set, r)
			if peer != r.Client {
				outcome.Proxy = peer.String()
			}
			if a.json {
				return a.printJSON(outcome)
			}
			return a.printRuleTest(outcome)
		},
	})
	cmd.Flags().StringVar(&file, "request", "", "`FILE` of the request")
	return cmd
}

// editedRules reads the rulesets, the lists, the cache policy and the settings of a zone as they are edited.
func editedRules(ctx context.Context, c *api.Client, name string) (*zone.Zone, error) {
	row, err := c.Zone(ctx, name)
	if err != nil {
		return nil, err
	}
	z := &zone.Zone{ID: zone.ID(row.ID), Rulesets: map[zone.Phase][]zone.Rule{}, Lists: map[string]zone.List{}}
	if z.Name, err = zone.ParseName(row.Name); err != nil {
		return nil, err
	}
	all, err := collect(ctx, 0, func(ctx context.Context, o api.PageOptions) (*api.Page[api.Object[api.Ruleset]], error) {
		return c.Rulesets(ctx, row.ID, o)
	})
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		z.Rulesets[zone.Phase(s.Name)] = s.Value.Rules
	}
	lists, err := names(ctx, row.ID, c.Lists)
	if err != nil {
		return nil, err
	}
	for _, name := range lists {
		l, _, err := c.List(ctx, row.ID, name)
		if err != nil {
			return nil, err
		}
		z.Lists[name] = *l
	}
	policy, _, err := c.CachePolicy(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	z.CachePolicy = *policy
	settings, _, err := c.Settings(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	z.Settings = *settings
	return z, nil
}

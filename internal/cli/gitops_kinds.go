package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// objectKind is a kind of object as zone files in YAML hold it. Bodies are the JSON of the zone type in normal
// form, so that equal bytes are equal meaning.
type objectKind struct {
	member string // of the file: pools
	noun   string // in edits: pool
	single bool   // every zone has one, of defaults when it was never written
	limit  int    // of what the API takes as one body, in bytes
	// parse returns the normal form of a name.
	parse func(zn zone.Name, name string) (string, error)
	// normal reads the value of a file strictly and returns its body.
	normal func(name string, text jsontext.Value) ([]byte, error)
	names  func(ctx context.Context, c *api.Client, zone string) ([]string, error)
	get    func(ctx context.Context, c *api.Client, zone, name string) (body []byte, revision int64, err error)
	put    func(ctx context.Context, c *api.Client, zone, name string, body []byte, o api.WriteOptions) error
	remove func(ctx context.Context, c *api.Client, zone, name string, o api.WriteOptions) error
	size   func(body []byte) string
}

// objectKinds are all kinds, in the order in which files hold them.
func objectKinds() []objectKind {
	return []objectKind{
		namedKind("rulesets", "ruleset", api.MaxBody, phaseName, normalRules,
			(*api.Client).Rulesets, (*api.Client).Ruleset, (*api.Client).PutRuleset, (*api.Client).DeleteRuleset,
			func(r api.Ruleset) []zone.Rule { return r.Rules }, func(r []zone.Rule) api.Ruleset { return api.Ruleset{Rules: r} },
			func(r []zone.Rule) string { return count(len(r), "rule") }),
		namedKind("lists", "list", api.MaxLargeBody, objectName, plain(zone.List.Normalize),
			(*api.Client).Lists, (*api.Client).List, (*api.Client).PutList, (*api.Client).DeleteList,
			same[zone.List], same[zone.List], func(l zone.List) string { return count(len(l.Items), "item") }),
		namedKind("pools", "pool", api.MaxBody, objectName, plain(zone.Pool.Normalize),
			(*api.Client).Pools, (*api.Client).Pool, (*api.Client).PutPool, (*api.Client).DeletePool,
			same[zone.Pool], same[zone.Pool], func(p zone.Pool) string { return count(len(p.Origins), "origin") }),
		namedKind("load_balancers", "load balancer", api.MaxBody, hostName, plain(zone.LoadBalancer.Normalize),
			(*api.Client).LoadBalancers, (*api.Client).LoadBalancer, (*api.Client).PutLoadBalancer, (*api.Client).DeleteLoadBalancer,
			same[zone.LoadBalancer], same[zone.LoadBalancer], func(b zone.LoadBalancer) string { return "pools " + join(b.Pools) }),
		singleKind("cache_policy", "cache policy", zone.CachePolicy.Normalize,
			(*api.Client).CachePolicy, (*api.Client).PutCachePolicy),
		namedKind("tls_hosts", "TLS host", api.MaxBody, hostName, plain(zone.TLSHost.Normalize),
			(*api.Client).TLSHosts, (*api.Client).TLSHost, (*api.Client).PutTLSHost, (*api.Client).DeleteTLSHost,
			same[zone.TLSHost], same[zone.TLSHost],
			func(h zone.TLSHost) string { return fmt.Sprintf("%d bytes of certificates", len(h.Certificate)) }),
		namedKind(functionsMember, "function", api.MaxLargeBody, objectName, plain(zone.Function.Normalize),
			(*api.Client).Functions, (*api.Client).Function, (*api.Client).PutFunction, (*api.Client).DeleteFunction,
			same[zone.Function], same[zone.Function], func(f zone.Function) string { return fmt.Sprintf("%d bytes", len(f.Module)) }),
		singleKind("settings", "settings", zone.Settings.Normalize, (*api.Client).Settings, (*api.Client).PutSettings),
	}
}

// functionsMember is the kind whose modules stand in files of their own.
const functionsMember = "functions"

// namedKind makes a kind of named objects: T is its value in files, W in the API's messages, S in listings.
func namedKind[T, W, S any](member, noun string, limit int, parse func(zone.Name, string) (string, error),
	normalize func(name string, v T) (T, error),
	list func(*api.Client, context.Context, string, api.PageOptions) (*api.Page[api.Object[S]], error),
	get func(*api.Client, context.Context, string, string) (*W, int64, error),
	put func(*api.Client, context.Context, string, string, W, api.WriteOptions) (*W, int64, error),
	remove func(*api.Client, context.Context, string, string, api.WriteOptions) error,
	out func(W) T, in func(T) W, size func(T) string,
) objectKind {
	return objectKind{
		member: member, noun: noun, limit: limit, parse: parse,
		normal: func(name string, text jsontext.Value) ([]byte, error) { return normalBody(name, text, normalize) },
		names: func(ctx context.Context, c *api.Client, zoneName string) ([]string, error) {
			return names(ctx, zoneName, func(ctx context.Context, zoneName string, o api.PageOptions) (*api.Page[api.Object[S]], error) {
				return list(c, ctx, zoneName, o)
			})
		},
		get: func(ctx context.Context, c *api.Client, zoneName, name string) ([]byte, int64, error) {
			v, revision, err := get(c, ctx, zoneName, name)
			if err != nil {
				return nil, 0, err
			}
			body, err := encodeBody(out(*v))
			return body, revision, err
		},
		put: func(ctx context.Context, c *api.Client, zoneName, name string, body []byte, o api.WriteOptions) error {
			var v T
			if err := json.Unmarshal(body, &v); err != nil {
				return err
			}
			_, _, err := put(c, ctx, zoneName, name, in(v), o)
			return err
		},
		remove: func(ctx context.Context, c *api.Client, zoneName, name string, o api.WriteOptions) error {
			return remove(c, ctx, zoneName, name, o)
		},
		size: func(body []byte) string {
			var v T
			if json.Unmarshal(body, &v) != nil {
				return ""
			}
			return size(v)
		},
	}
}

// singleKind makes a kind of which every zone has one object.
func singleKind[T any](member, noun string, normalize func(T) (T, error),
	get func(*api.Client, context.Context, string) (*T, int64, error),
	put func(*api.Client, context.Context, string, T, api.WriteOptions) (*T, int64, error),
) objectKind {
	return objectKind{
		member: member, noun: noun, single: true, limit: api.MaxBody,
		normal: func(name string, text jsontext.Value) ([]byte, error) {
			return normalBody(name, text, plain(normalize))
		},
		get: func(ctx context.Context, c *api.Client, zoneName, _ string) ([]byte, int64, error) {
			v, revision, err := get(c, ctx, zoneName)
			if err != nil {
				return nil, 0, err
			}
			body, err := encodeBody(*v)
			return body, revision, err
		},
		put: func(ctx context.Context, c *api.Client, zoneName, _ string, body []byte, o api.WriteOptions) error {
			var v T
			if err := json.Unmarshal(body, &v); err != nil {
				return err
			}
			_, _, err := put(c, ctx, zoneName, v, o)
			return err
		},
		size: func([]byte) string { return "" },
	}
}

func same[T any](v T) T { return v }

func plain[T any](f func(T) (T, error)) func(string, T) (T, error) {
	return func(_ string, v T) (T, error) { return f(v) }
}

// normalBody reads text strictly and prints its normal form.
func normalBody[T any](name string, text jsontext.Value, normalize func(string, T) (T, error)) ([]byte, error) {
	var v T
	if err := json.Unmarshal(text, &v, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	v, err := normalize(name, v)
	if err != nil {
		return nil, err
	}
	return encodeBody(v)
}

func encodeBody(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true))
}

func phaseName(_ zone.Name, name string) (string, error) {
	phase, err := zone.ParsePhase(name)
	return string(phase), err
}

func objectName(_ zone.Name, name string) (string, error) { return zone.ParseObjectName(name) }

func hostName(zn zone.Name, name string) (string, error) {
	n, err := zone.ParseNameIn(zn, name)
	return n.String(), err
}

// normalRules reports what is malformed in any rule, each with its place, which the file's lines are known by.
func normalRules(phase string, rules []zone.Rule) ([]zone.Rule, error) {
	out := make([]zone.Rule, len(rules))
	var bad []error
	for i, r := range rules {
		var err error
		if out[i], err = r.Normalize(zone.Phase(phase)); err != nil {
			for _, e := range unjoin(err) {
				bad = append(bad, &placedError{at: jsontext.Pointer("").AppendToken(fmt.Sprint(i)), err: e})
			}
		}
	}
	return out, errors.Join(bad...)
}

// placedError is an error of a part of a value.
type placedError struct {
	at  jsontext.Pointer
	err error
}

func (e *placedError) Error() string { return e.err.Error() }

// unjoin flattens errors.Join.
func unjoin(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, unjoin(e)...)
	}
	return all
}

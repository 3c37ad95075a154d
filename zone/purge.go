package zone

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of one purge.
const (
	// MaxPurgeValues is how many values a purge has at most, MaxPurgeBytes how many bytes they have together.
	MaxPurgeValues = 100
	MaxPurgeBytes  = 64 << 10
	// MaxPurgeURL is the length in bytes of the longest URL or prefix, MaxCacheTag of the longest tag.
	MaxPurgeURL = 8192
	MaxCacheTag = 256
)

// PurgeKind says what the values of a [Purge] name.
type PurgeKind string

const (
	// PurgeURL: absolute URLs, http or https, in the normal form that a node's cache key has: host in lower case without
	// port, path and query as they are forwarded. Both the scheme and the query are part of what is named.
	PurgeURL PurgeKind = "url"
	// PurgePrefix: host and the beginning of a path, such as www.example.com/img/, without scheme and query. Whatever begins
	// with these bytes is named, of both schemes and with every query.
	PurgePrefix PurgeKind = "prefix"
	// PurgeTag: tags that the origin gave its answers in Cache-Tag. They are compared byte by byte.
	PurgeTag PurgeKind = "tag"
	// PurgeAll: everything of the zone. It has no values.
	PurgeAll PurgeKind = "all"
)

// Purge says that what caches hold of one zone is out of date, whenever it was fetched up to now: what a node stored, and
// what an exchange brings that was begun before the node heard of it. The zone is named by its name: whatever was, is or will be
// served under that name is meant, also when the zone was deleted and made again, or an older snapshot was activated that has it by
// another id. Purges are in the order of their sequence, which is the platform's and counts from 1 without a gap.
type Purge struct {
	Sequence uint64    `json:"sequence"`
	Zone     Name      `json:"zone"`
	Kind     PurgeKind `json:"kind"`
	// Values in normal form, sorted, each once; none with PurgeAll.
	Values []string `json:"values,omitempty"`
	// At is when the control plane took it, to the microsecond, UTC. Nothing is decided by it.
	At time.Time `json:"at"`
}

// Normalize returns p, of the zone whose name is apex, with its values in normal form, or all that is wrong with it,
// joined.
func (p Purge) Normalize(apex Name) (Purge, error) {
	var bad problems
	var normal func(string) (string, error)
	switch p.Kind {
	case PurgeURL:
		normal = func(s string) (string, error) { return normalPurgeURL(s, apex) }
	case PurgePrefix:
		normal = func(s string) (string, error) { return normalPurgePrefix(s, apex) }
	case PurgeTag:
		normal = ParseCacheTag
	case PurgeAll:
		if len(p.Values) > 0 {
			bad.addf("a purge of kind all has no values: everything is purged")
		}
	default:
		bad.addf("kind %s: use url, prefix, tag or all", quote(string(p.Kind)))
	}
	if normal != nil && len(p.Values) == 0 {
		bad.addf("values are missing; a purge of kind %s needs 1 to %d of them", p.Kind, MaxPurgeValues)
	}
	if len(p.Values) > MaxPurgeValues {
		bad.addf("values: there are %d, the most is %d", len(p.Values), MaxPurgeValues)
		normal = nil // a request of a million is not gone through
	}
	if normal != nil {
		values, bytes := make([]string, 0, len(p.Values)), 0
		for i, s := range p.Values {
			v, err := normal(s)
			if err != nil {
				bad.in(fmt.Sprintf("value %d", i+1), err)
				continue
			}
			values, bytes = append(values, v), bytes+len(v)
		}
		if bytes > MaxPurgeBytes {
			bad.addf("values: they have %d bytes together, the most is %d", bytes, MaxPurgeBytes)
		}
		p.Values = sortedUnique(values)
	}
	if err := bad.err(); err != nil {
		return Purge{}, err
	}
	return p, nil
}

// ParseCacheTag returns a tag as origins write it in Cache-Tag: 1 to MaxCacheTag visible ASCII characters but the comma.
func ParseCacheTag(s string) (string, error) {
	if s == "" || len(s) > MaxCacheTag {
		return "", fmt.Errorf("tag %s: it has %d characters, not 1 to %d", quote(s), len(s), MaxCacheTag)
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == ',' {
			return "", fmt.Errorf("tag %s: at character %d: a tag holds visible ASCII characters but the comma", quote(s), i+1)
		}
	}
	return s, nil
}

// normalPurgeURL is scheme, host, path and query of an absolute URL as a cache key has them. A port is taken off: what a
// node stores has none.
func normalPurgeURL(s string, apex Name) (string, error) {
	if err := checkPurgeText(s, "URL"); err != nil {
		return "", err
	}
	scheme, rest, found := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("URL %s is not absolute: write it as https://www.%s/path?query", quote(s), apex)
	}
	authority, target := rest, "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, target = rest[:i], rest[i:]
		if target[0] == '?' {
			target = "/" + target
		}
	}
	host, err := purgeHost(authority, apex)
	if err == nil && strings.Contains(target, "#") {
		err = errors.New("leave out the fragment, which no request has")
	}
	if err != nil {
		return "", fmt.Errorf("URL %s: %w", quote(s), err)
	}
	path, query, err := NormalizeTarget(target)
	if err != nil {
		return "", fmt.Errorf("URL %s: %w", quote(s), err)
	}
	if query != "" {
		path += "?" + query
	}
	return longPurgeText(scheme+"://"+host+path, s, "URL")
}

// normalPurgePrefix is host and beginning of a path as a cache key has them.
func normalPurgePrefix(s string, apex Name) (string, error) {
	if err := checkPurgeText(s, "prefix"); err != nil {
		return "", err
	}
	fail := func(err error) (string, error) { return "", fmt.Errorf("prefix %s: %w", quote(s), err) }
	switch {
	case strings.Contains(s, "://"):
		return fail(fmt.Errorf("leave out the scheme: www.%s/path", apex))
	case strings.ContainsAny(s, "?#"):
		return fail(errors.New("it names host and path alone, with every query; purge one query by its URL"))
	}
	authority, path, _ := strings.Cut(s, "/")
	host, err := purgeHost(authority, apex)
	if err != nil {
		return fail(err)
	}
	if path, err = NormalizePath("/" + path); err != nil {
		return fail(err)
	}
	return longPurgeText(host+path, s, "prefix")
}

func purgeHost(authority string, apex Name) (string, error) {
	host, err := NormalizeHost(authority)
	if err != nil {
		return "", err
	}
	if n, err := ParseName(host); err != nil || !n.Under(apex) {
		return "", fmt.Errorf("host %s is not in the zone %s", quote(host), apex)
	}
	return host, nil
}

func checkPurgeText(s, what string) error {
	if s == "" {
		return fmt.Errorf("the %s is empty", what)
	}
	return checkText(s, what+" "+quote(s), MaxPurgeURL)
}

// longPurgeText judges a normal form, which may be longer than what was written.
func longPurgeText(normal, written, what string) (string, error) {
	if len(normal) > MaxPurgeURL {
		return "", fmt.Errorf("%s %s: its normal form has %d bytes, the most is %d", what, quote(written), len(normal), MaxPurgeURL)
	}
	return normal, nil
}

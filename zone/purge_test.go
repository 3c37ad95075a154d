package zone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestNormalizePurge(t *testing.T) {
	apex := zone.MustName("example.com")
	many := make([]string, zone.MaxPurgeValues+1)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	long := "https://www.example.com/" + strings.Repeat("a", zone.MaxPurgeURL)
	for _, tc := range []struct {
		name   string
		kind   zone.PurgeKind
		values []string
		want   []string
		wrong  []string // each a part of one problem; nil: there is none
	}{
		{"url", "url", []string{"https://www.example.com/a?b=c"}, []string{"https://www.example.com/a?b=c"}, nil},
		{"url of a host", "url", []string{"https://www.example.com"}, []string{"https://www.example.com/"}, nil},
		{"url of a query", "url", []string{"http://example.com?q=1"}, []string{"http://example.com/?q=1"}, nil},
		{
			"url in another form", "url",
			[]string{"HTTPS://WWW.Example.Com.:443/a//./b/%7euser?x=1;y", "https://bücher.example.com/ü"},
			[]string{"https://www.example.com/a/b/~user?x=1%3By", "https://xn--bcher-kva.example.com/%C3%BC"},
			nil,
		},
		{"url twice", "url", []string{"http://example.com/b", "http://example.com/a", "http://EXAMPLE.com/%61"}, []string{"http://example.com/a", "http://example.com/b"}, nil},
		{"url of another zone", "url", []string{"https://example.org/", "https://notexample.com/"}, nil, []string{`value 1: URL "https://example.org/": host "example.org" is not in the zone example.com`, "value 2"}},
		{"url that is none", "url", []string{"/a", "ftp://example.com/", "", "https:///x"}, nil, []string{"value 1: URL \"/a\" is not absolute", "value 2", "value 3: the URL is empty", "value 4"}},
		{"url with a fragment, a bad escape, a user", "url", []string{"https://example.com/#a", "https://example.com/%zz", "https://u@example.com/"}, nil, []string{"fragment", "value 2", "value 3"}},
		{"url of an address", "url", []string{"https://192.0.2.1/", "https://[2001:db8::1]/"}, nil, []string{"not in the zone", "not in the zone"}},
		{"url that is too long", "url", []string{long}, nil, []string{"the most is 8192"}},
		{"url whose normal form is too long", "url", []string{"https://example.com/" + strings.Repeat("é", 4000)}, nil, []string{"its normal form"}},
		{"prefix", "prefix", []string{"www.example.com/img/", "EXAMPLE.com", "example.com/a//b/../c"}, []string{"example.com/", "example.com/a/c", "www.example.com/img/"}, nil},
		{"prefix with a scheme, a query, of another zone", "prefix", []string{"https://example.com/", "example.com/?a", "example.org/"}, nil, []string{"leave out the scheme: www.example.com/path", "purge one query by its URL", "not in the zone"}},
		{"tag", "tag", []string{"Product-1", "a;b", "product-1"}, []string{"Product-1", "a;b", "product-1"}, nil},
		{"tag that is none", "tag", []string{"a,b", "", "a b", "ü", strings.Repeat("t", 257)}, nil, []string{"value 1", "value 2", "value 3", "value 4", "value 5"}},
		{"all", "all", nil, nil, nil},
		{"all with values", "all", []string{"x"}, nil, []string{"has no values"}},
		{"no values", "tag", nil, nil, []string{"values are missing"}},
		{"too many values", "tag", many, nil, []string{"there are 101, the most is 100"}},
		{"too many bytes", "url", slices.Repeat([]string{"https://example.com/" + strings.Repeat("a", 8000)}, 9), nil, []string{"bytes together"}},
		{"no kind", "file", []string{"x"}, nil, []string{"use url, prefix, tag or all"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := zone.Purge{Kind: tc.kind, Values: tc.values}.Normalize(apex)
			var problems []string
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				for _, e := range joined.Unwrap() {
					problems = append(problems, e.Error())
				}
			} else if err != nil {
				problems = []string{err.Error()}
			}
			if len(problems) != len(tc.wrong) || !slices.EqualFunc(problems, tc.wrong, strings.Contains) {
				t.Fatalf("problems %q, want %q", problems, tc.wrong)
			}
			if !slices.Equal(p.Values, tc.want) {
				t.Fatalf("values %q, want %q", p.Values, tc.want)
			}
			if err != nil {
				return
			}
			if again, err := p.Normalize(apex); err != nil || !slices.Equal(again.Values, p.Values) {
				t.Errorf("%q is not a normal form: %q, %v", p.Values, again.Values, err)
			}
		})
	}
}

package zone_test

import (
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestNormalizeHost(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"h.example", "h.example"},
		{"H.Example.", "h.example"},
		{"H.Example.:80", "h.example"},
		{"h.example:", "h.example"},
		{"h.example:65535", "h.example"},
		{"a_b.example", "a_b.example"},
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"},
		{"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"192.0.2.1:8080", "192.0.2.1"},
		{"[2001:DB8::1]:80", "[2001:db8::1]"},
		{"[::1]", "[::1]"},
		{"", ""},
		{".", ""},
		{":80", ""},
		{"h.example:x", ""},
		{"h.example:80:80", ""},
		{"h.example:123456", ""},
		{"h.example:65536", ""},
		{"h.example:99999", ""},
		{"h.example:00080", "h.example"},
		{"h.example:0", "h.example"},
		{"[::1]:65535", "[::1]"},
		{"[::1]:99999", ""},
		{"h..example", ""},
		{".h.example", ""},
		{"h.example..", ""},
		{"*.example", ""},
		{"u@h.example", ""},
		{"u:p@h.example", ""},
		{"h.example/x", ""},
		{"h example", ""},
		{"h%2eexample", ""},
		{"[::1", ""},
		{"[::1]x", ""},
		{"[v1.x]", ""},
		{"h\\.example", ""},
		{"h-1.example", "h-1.example"},
		{"xn--a.example", ""},
		{strings.Repeat("a", 64) + ".example", ""},
		{strings.Repeat("a.", 127) + "aa", ""},
	} {
		got, err := zone.NormalizeHost(tc.in)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q: got %q, %v; want %q", tc.in, got, err, tc.want)
		}
		if err == nil {
			if again, err := zone.NormalizeHost(got); err != nil || again != got {
				t.Errorf("%q: not a normal form: %q, %v", got, again, err)
			}
		}
	}
}

func TestNormalizeTarget(t *testing.T) {
	for _, tc := range []struct{ in, path, query string }{
		{"/", "/", ""},
		{"/?", "/", ""},
		{"/a/b?c=d", "/a/b", "c=d"},
		{"/a//b///c/", "/a/b/c/", ""},
		{"//evil.example/x", "/evil.example/x", ""},
		{"///", "/", ""},
		{"/a/./b/../c", "/a/c", ""},
		{"/a/b/..", "/a/", ""},
		{"/a/b/.", "/a/b/", ""},
		{"/..", "/", ""},
		{"/../../etc/passwd", "/etc/passwd", ""},
		{"/a/../../b", "/b", ""},
		{"/a//../b", "/b", ""}, // the empty segment is none
		{"/%2e%2e/%2E./admin", "/admin", ""},
		{"/a/%2e/b", "/a/b", ""},
		{"/a/...", "/a/...", ""},
		{"/.well-known/x", "/.well-known/x", ""},
		{"/%61%2d%5f%7E", "/a-_~", ""},
		{"/a%2fb", "/a%2Fb", ""},
		{"/%25%32%66", "/%252f", ""},
		{"/a%252e", "/a%252e", ""},
		{"/a;x=1/b", "/a;x=1/b", ""},
		{"/a\\b", "/a%5Cb", ""},
		{"/a\"<>^`{|}[]b", "/a%22%3C%3E%5E%60%7B%7C%7D%5B%5Db", ""},
		{"/\xc3\xbc", "/%C3%BC", ""},
		{"/%c3%bc", "/%C3%BC", ""},
		{"/a%20b", "/a%20b", ""},
		{"/!$&'()*+,;=:@", "/!$&'()*+,;=:@", ""},
		{"/?a=1;b=2", "/", "a=1%3Bb=2"},
		{"/?a=1%3bb=2", "/", "a=1%3Bb=2"},
		{"/?a=%41&b=+&c=%2B", "/", "a=A&b=+&c=%2B"},
		{"/?a[]=1", "/", "a%5B%5D=1"},
		{"/?x=//../%2e", "/", "x=//../."},
		{"/?a?b", "/", "a?b"},
		{"http://h.example", "/", ""},
		{"http://h.example?q", "/", "q"},
		{"http://h.example/a/../b?q", "/b", "q"},
		{"HTTPS://h.example:443/x", "/x", ""},
		{"/%zz", "", ""},
		{"/%", "", ""},
		{"/%2", "", ""},
		{"/?%zz", "", ""},
		{"/?a=%", "", ""},
		{"/%00", "", ""},
		{"/?%00", "", ""},
		{"/a#b", "", ""},
		{"/?a#b", "", ""},
		{"/a b", "", ""},
		{"/a\tb", "", ""},
		{"/a\x7fb", "", ""},
		{"/x/..;/admin", "", ""},
		{"/x/%2e%2e;a=b/admin", "", ""},
		{"/x/.;/admin", "", ""},
		{"*", "", ""},
		{"", "", ""},
		{"x", "", ""},
	} {
		path, query, err := zone.NormalizeTarget(tc.in)
		if path != tc.path || query != tc.query || (err == nil) != (tc.path != "") {
			t.Errorf("%q: got %q ? %q, %v; want %q ? %q", tc.in, path, query, err, tc.path, tc.query)
		}
	}
}

func BenchmarkNormalizeTarget(b *testing.B) {
	for _, target := range []string{"/index.html?a=1&b=2", "/a//b/../%7euser/x?a=1;b=2"} {
		b.Run(target, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := zone.NormalizeTarget(target); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzNormalizeTarget(f *testing.F) {
	for _, s := range []string{"/", "/a/../b?c;d", "/%2e%2e/%zz", "http://h/x?y", "//a//..//b/.", "/%c3%bc?%2B", "/..;/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, target string) {
		path, query, err := zone.NormalizeTarget(target)
		if err != nil {
			return
		}
		if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.Contains(path+"/", "/../") || strings.Contains(path+"/", "/./") {
			t.Fatalf("%q: path %q", target, path)
		}
		for _, s := range []string{path, query} {
			for i := range len(s) {
				if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '#' {
					t.Fatalf("%q: octet %q in %q", target, s[i], s)
				}
			}
		}
		again := path
		if query != "" {
			again += "?" + query
		}
		p, q, err := zone.NormalizeTarget(again)
		if err != nil || p != path || q != query {
			t.Fatalf("%q: %q ? %q is not a normal form: %q ? %q, %v", target, path, query, p, q, err)
		}
	})
}

func FuzzNormalizeHost(f *testing.F) {
	for _, s := range []string{"h.example", "H.Example.:80", "bücher.example", "[::1]:80", "*.x", "xn--bcher-kva"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		host, err := zone.NormalizeHost(authority)
		if err != nil {
			return
		}
		if again, err := zone.NormalizeHost(host); err != nil || again != host {
			t.Fatalf("%q: %q is not a normal form: %q, %v", authority, host, again, err)
		}
	})
}

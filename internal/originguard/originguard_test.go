package originguard

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		addr   string
		reason string // "": passes
	}{
		{"8.8.8.8", ""},
		{"192.0.2.10", ""},
		{"198.51.100.7", ""},
		{"203.0.113.9", ""},
		{"2606:4700::1111", ""},
		{"2001:db8::1", ""},
		{"2001:4860:4860::8888", ""},
		{"172.15.255.255", ""},
		{"172.32.0.0", ""},
		{"100.63.255.255", ""},
		{"100.128.0.0", ""},
		{"1.0.0.0", ""},
		{"223.255.255.255", ""},
		{"127.0.0.1", "loopback"},
		{"127.255.255.254", "loopback"},
		{"::1", "loopback"},
		{"0.0.0.0", "unspecified"},
		{"::", "unspecified"},
		{"0.1.2.3", "this network"},
		{"169.254.169.254", "metadata"},
		{"168.63.129.16", "metadata"},
		{"100.100.100.200", "metadata"},
		{"192.0.0.192", "metadata"},
		{"fd00:ec2::254", "metadata"},
		{"169.254.1.1", "link-local"},
		{"fe80::1", "link-local"},
		{"febf::1", "link-local"},
		{"fe80::1%eth0", "one link"},
		{"10.0.0.0", "private"},
		{"10.255.255.255", "private"},
		{"172.16.0.1", "private"},
		{"172.31.255.255", "private"},
		{"192.168.1.1", "private"},
		{"fc00::1", "private"},
		{"fdff::1", "private"},
		{"fec0::1", "private"},
		{"100.64.0.0", "CGNAT"},
		{"100.127.255.255", "CGNAT"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.255", "multicast"},
		{"ff02::1", "multicast"},
		{"255.255.255.255", "broadcast"},
		{"240.0.0.1", "reserved"},
		{"192.0.0.8", "reserved"},
		{"198.18.0.1", "benchmarks"},
		{"198.19.255.255", "benchmarks"},
		{"::ffff:127.0.0.1", "mapped"},
		{"::ffff:10.0.0.1", "mapped"},
		{"::ffff:8.8.8.8", "mapped"},
		{"::ffff:0:127.0.0.1", "translated"},
		{"::127.0.0.1", "compatible"},
		{"64:ff9b::7f00:1", "NAT64"},
		{"64:ff9b::808:808", "NAT64"},
		{"64:ff9b:1::7f00:1", "NAT64"},
		{"2002:7f00:1::", "6to4"},
		{"2002:a00:1::1", "6to4"},
		{"2001:0:4136:e378:8000:63bf:80ff:fffe", "Teredo"},
		{"100::1", "discarding"},
	} {
		t.Run(tc.addr, func(t *testing.T) {
			err := Check(netip.MustParseAddr(tc.addr), nil)
			if tc.reason == "" {
				if err != nil {
					t.Fatalf("got %v, want it to pass", err)
				}
				return
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tc.reason) {
				t.Fatalf("got %v, want a refusal that says %q", err, tc.reason)
			}
		})
	}
	if err := Check(netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}); err == nil {
		t.Fatal("the zero address passed")
	}
}

func TestCheckAllowed(t *testing.T) {
	for _, tc := range []struct {
		name, addr, allowed string
		pass                bool
	}{
		{"loopback by its prefix", "127.0.0.1", "127.0.0.0/8", true},
		{"loopback by another", "127.0.0.1", "10.0.0.0/8", false},
		{"mapped by the IPv4 prefix", "::ffff:127.0.0.1", "127.0.0.0/8", true},
		{"mapped by the mapped prefix", "::ffff:127.0.0.1", "::ffff:127.0.0.0/104", true},
		{"IPv4 is not in an IPv6 prefix", "127.0.0.1", "::/0", false},
		{"ULA", "fd00::7", "fd00::/8", true},
		{"NAT64 by its own prefix", "64:ff9b::808:808", "64:ff9b::/96", true},
		{"NAT64 is not the IPv4 address in it", "64:ff9b::7f00:1", "127.0.0.0/8", false},
		{"zone", "fe80::1%eth0", "fe80::/10", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Check(netip.MustParseAddr(tc.addr), []netip.Prefix{netip.MustParsePrefix(tc.allowed)})
			if (err == nil) != tc.pass {
				t.Fatalf("got %v, want pass=%v", err, tc.pass)
			}
		})
	}
}

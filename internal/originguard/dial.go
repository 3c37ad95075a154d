package originguard

import (
	"net"
	"net/netip"
	"syscall"
)

// Control returns a [net.Dialer.Control] that judges the address that is about to be connected to, after resolution: names that resolve to
// other addresses than before gain nothing. Its error is Check's.
func Control(allowed []netip.Prefix) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return Check(a.Addr(), allowed)
	}
}

// Absolute returns host:port so that no search domain of this machine applies to a name.
func Absolute(hostport string) (string, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(host); err != nil {
		host += "."
	}
	return net.JoinHostPort(host, port), nil
}

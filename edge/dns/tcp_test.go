package dns_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/dns"
)

func dialTCP(t *testing.T, s *dns.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

// framed is a query with its length before it.
func framed(t *testing.T, id uint16, name string, qtype uint16) []byte {
	t.Helper()
	m := question(name, qtype)
	m.Id = id
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

func readFramed(t *testing.T, conn io.Reader) *mdns.Msg {
	t.Helper()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatal(err)
	}
	m := new(mdns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	return m
}

// closed waits for the server to close conn without another octet.
func closed(t *testing.T, conn net.Conn) {
	t.Helper()
	var b [1]byte
	n, err := conn.Read(b[:])
	if n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d octets, %v: want the connection closed", n, err)
	}
}

func TestTCPPipelining(t *testing.T) {
	s := startTest(t, dns.Config{})
	conn := dialTCP(t, s)
	const n = 500
	var all []byte
	for i := range n {
		all = append(all, framed(t, uint16(i), "big.example.com", mdns.TypeA)...)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(all)
		sent <- err
	}()
	for i := range n {
		if m := readFramed(t, conn); m.Id != uint16(i) || len(m.Answer) != 80 {
			t.Fatalf("answer %d: id %d, %d records", i, m.Id, len(m.Answer))
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// TestTCPOctetByOctet: a query that comes in single octets is answered, and half of the next one does not hold
// the answer back.
func TestTCPOctetByOctet(t *testing.T) {
	s := startTest(t, dns.Config{})
	conn := dialTCP(t, s)
	query := framed(t, 1, "www.example.com", mdns.TypeA)
	for i := range query {
		if _, err := conn.Write(query[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write(query[:len(query)/2]); err != nil {
		t.Fatal(err)
	}
	if m := readFramed(t, conn); m.Id != 1 {
		t.Fatal(m)
	}
	if _, err := conn.Write(query[len(query)/2:]); err != nil {
		t.Fatal(err)
	}
	if m := readFramed(t, conn); m.Id != 1 {
		t.Fatal(m)
	}
}

// TestTCPHalfClose: a client that has sent all and closes its side gets its answers.
func TestTCPHalfClose(t *testing.T) {
	s := startTest(t, dns.Config{})
	conn := dialTCP(t, s)
	if _, err := conn.Write(append(framed(t, 1, "www.example.com", mdns.TypeA), framed(t, 2, "none.example.com", mdns.TypeA)...)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for id := range uint16(2) {
		if m := readFramed(t, conn); m.Id != id+1 {
			t.Fatal(m)
		}
	}
	closed(t, conn)
}

func TestTCPLargeQuery(t *testing.T) {
	s := startTest(t, dns.Config{})
	conn := dialTCP(t, s)
	m := question("www.example.com", mdns.TypeA)
	m.SetEdns0(1232, false)
	m.IsEdns0().Option = append(m.IsEdns0().Option, &mdns.EDNS0_PADDING{Padding: make([]byte, 60_000)})
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)); err != nil {
			t.Fatal(err)
		}
		if a := readFramed(t, conn); len(a.Answer) != 1 {
			t.Fatal(a)
		}
	}
}

func TestTCPDeadlines(t *testing.T) {
	for name, row := range map[string]struct {
		config dns.Config
		send   []byte
	}{
		"says nothing":            {dns.Config{IdleTimeout: 50 * time.Millisecond}, nil},
		"half a length":           {dns.Config{IdleTimeout: 50 * time.Millisecond}, []byte{0}},
		"65535 and one octet":     {dns.Config{IdleTimeout: 50 * time.Millisecond}, []byte{0xff, 0xff, 0}},
		"an answer":               {dns.Config{}, []byte("\x00\x0c\xab\xcd\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		"length 0":                {dns.Config{}, []byte{0, 0}},
		"length 11":               {dns.Config{}, append([]byte{0, 11}, make([]byte, 11)...)},
		"total time, said little": {dns.Config{ConnectionTimeout: 50 * time.Millisecond}, []byte{0, 40, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialTCP(t, startTest(t, row.config))
			if _, err := conn.Write(row.send); err != nil {
				t.Fatal(err)
			}
			closed(t, conn)
		})
	}
}

// TestTCPSlowOctets: octets that keep coming do not move a message's deadline.
func TestTCPSlowOctets(t *testing.T) {
	conn := dialTCP(t, startTest(t, dns.Config{IdleTimeout: 100 * time.Millisecond}))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for range 1000 {
		if _, err := conn.Write([]byte{0xff}); err != nil {
			return // closed by the server
		}
		if time.Since(start) > 5*time.Second {
			break
		}
		<-tick.C
	}
	t.Error("the connection outlives its deadline")
}

// TestTCPTotalTime: queries that keep coming do not move the connection's end.
func TestTCPTotalTime(t *testing.T) {
	conn := dialTCP(t, startTest(t, dns.Config{ConnectionTimeout: 100 * time.Millisecond}))
	query := framed(t, 1, "www.example.com", mdns.TypeA)
	start := time.Now()
	buf := make([]byte, 4096)
	for time.Since(start) < 5*time.Second {
		if _, err := conn.Write(query); err != nil {
			return
		}
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
	t.Error("the connection outlives its time")
}

func TestTCPCaps(t *testing.T) {
	for name, config := range map[string]dns.Config{
		"per source": {MaxConnectionsPerSource: 2}, "in all": {MaxConnections: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTest(t, config)
			use := func(conn net.Conn) {
				t.Helper()
				if _, err := conn.Write(framed(t, 1, "www.example.com", mdns.TypeA)); err != nil {
					t.Fatal(err)
				}
				readFramed(t, conn)
			}
			first, second := dialTCP(t, s), dialTCP(t, s)
			use(first)
			use(second)
			closed(t, dialTCP(t, s))
			if got := s.Stats(); got.Connections != 2 || got.RefusedConnections != 1 || got.OpenConnections != 2 {
				t.Errorf("%+v", got)
			}
			// One that ends makes room.
			if err := first.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			closed(t, first)
			use(dialTCP(t, s))
		})
	}
}

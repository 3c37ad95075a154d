// Command probe asks a node over DNS or HTTP, for machines that have neither dig nor curl.
//
//	probe dns HOST:PORT NAME TYPE     prints the answers' data, one line each, or the response code
//	probe http HOST:PORT HOST PATH    prints the status, then the body
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"
)

func main() {
	if len(os.Args) != 5 || os.Args[1] != "dns" && os.Args[1] != "http" {
		fmt.Fprintln(os.Stderr, "usage: probe dns HOST:PORT NAME TYPE | probe http HOST:PORT HOST PATH")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ask := askDNS
	if os.Args[1] == "http" {
		ask = askHTTP
	}
	if err := ask(ctx, os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func askDNS(ctx context.Context, server, name, rrtype string) error {
	t, ok := dns.StringToType[strings.ToUpper(rrtype)]
	if !ok {
		return fmt.Errorf("unknown type %q", rrtype)
	}
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), t)
	c := &dns.Client{}
	answer, _, err := c.ExchangeContext(ctx, m, server)
	if err == nil && answer.Truncated {
		c.Net = "tcp"
		answer, _, err = c.ExchangeContext(ctx, m, server)
	}
	if err != nil {
		return err
	}
	if len(answer.Answer) == 0 {
		fmt.Println(dns.RcodeToString[answer.Rcode])
	}
	for _, rr := range answer.Answer {
		fmt.Println(strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	return nil
}

// maxBody bounds what is printed of an answer, in bytes.
const maxBody = 1 << 20

func askHTTP(ctx context.Context, server, host, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+path, nil)
	if err != nil {
		return err
	}
	req.Host = host
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	_, err = io.Copy(os.Stdout, io.LimitReader(resp.Body, maxBody))
	return err
}

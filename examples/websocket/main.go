// Command websocket sends each line of standard input as a message and prints the answer to it.
//
//	websocket [-host NAME] [-cacert FILE] ws://HOST:PORT/PATH
//
// It ends with standard input, or with an error when the connection does.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/coder/websocket"
)

// answerTimeout bounds how long an answer is waited for.
const answerTimeout = 10 * time.Second

func main() {
	host := flag.String("host", "", "`NAME` of the host that is asked for, when it is not the URL's")
	authority := flag.String("cacert", "", "certificate in PEM of who vouches for a wss: URL, from `FILE`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: websocket [-host NAME] [-cacert FILE] ws://HOST:PORT/PATH")
		os.Exit(2)
	}
	client, err := httpClient(*host, *authority)
	if err == nil {
		err = talk(context.Background(), flag.Arg(0), &websocket.DialOptions{Host: *host, HTTPClient: client}, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// httpClient asks for host by SNI and trusts whom the file authority holds, when they are not empty.
func httpClient(host, authority string) (*http.Client, error) {
	config := &tls.Config{ServerName: host}
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: it holds no certificate in PEM", authority)
		}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}

func talk(ctx context.Context, url string, options *websocket.DialOptions, in io.Reader, out io.Writer) error {
	dialing, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	c, _, err := websocket.Dial(dialing, url, options)
	if err != nil {
		return err
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer, err := say(ctx, c, lines.Bytes())
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", answer)
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func say(ctx context.Context, c *websocket.Conn, message []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := c.Write(ctx, websocket.MessageText, message); err != nil {
		return nil, err
	}
	_, answer, err := c.Read(ctx)
	return answer, err
}

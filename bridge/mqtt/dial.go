package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// dialer opens connections to one broker.
type dialer struct {
	url *url.URL
	tls *tls.Config
}

func (d dialer) dial(ctx context.Context) (net.Conn, error) {
	switch d.url.Scheme {
	case "mqtt":
		return (&net.Dialer{}).DialContext(ctx, "tcp", d.url.Host)
	case "mqtts":
		c, err := (&tls.Dialer{Config: d.tls}).DialContext(ctx, "tcp", d.url.Host)
		if err != nil {
			return nil, err
		}
		return tlsConn{c.(*tls.Conn)}, nil
	case "ws", "wss":
		return d.webSocket(ctx)
	}
	return nil, fmt.Errorf("%s is no scheme of MQTT", d.url.Scheme)
}

// webSocket dials MQTT over WebSocket (MQTT 5.0 §6).
func (d dialer) webSocket(ctx context.Context) (net.Conn, error) {
	transport := &http.Transport{TLSClientConfig: d.tls, DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}
	u := *d.url
	if u.Path == "" {
		u.Path = "/mqtt"
	}
	c, _, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{"mqtt"},
	})
	if err != nil {
		return nil, err
	}
	if c.Subprotocol() != "mqtt" {
		return nil, errors.Join(errors.New("the server does not speak MQTT over WebSocket"), c.CloseNow())
	}
	c.SetReadLimit(session.MaxMessageBytes + 16)
	// The connection outlives the context of its making; Close ends it.
	return webSocketConn{websocket.NetConn(context.WithoutCancel(ctx), c, websocket.MessageBinary), c}, nil
}

// tlsConn closes within disconnectTimeout: by itself TLS gives a broker that reads nothing five seconds for its last alert.
type tlsConn struct{ *tls.Conn }

func (t tlsConn) Close() error {
	force := time.AfterFunc(disconnectTimeout, func() { _ = t.NetConn().Close() })
	defer force.Stop()
	return t.Conn.Close()
}

// webSocketConn closes at once, as TCP does: a closing handshake would wait for a broker that may be gone, and keep a session that has lost its
// lease from ending in time.
type webSocketConn struct {
	net.Conn
	c *websocket.Conn
}

func (w webSocketConn) Close() error { return w.c.CloseNow() }

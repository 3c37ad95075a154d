package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/internal/host"
)

// shownByABridge adds the metrics of a standalone member that runs one route.
func shownByABridge(ctx context.Context, t *testing.T, shown map[string]map[string]bool) {
	t.Helper()
	document := filepath.Join(t.TempDir(), "bridge.yaml")
	text := `sessions:
  - {id: a, kind: mqtt, url: "mqtt://127.0.0.1:1"}
  - {id: b, kind: http, url: "http://127.0.0.1:1"}
routes:
  - {id: r, from: {session: a, topic: x}, to: {session: b}}
`
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := host.StartBridge(ctx, host.BridgeConfig{
		Name: "bridge", Source: "file:" + document, Listen: "127.0.0.1:0", StateDir: t.TempDir(),
		Runner: func(p host.BridgeParts) bridge.Runner { return run.New(run.Options{Origin: p.Name}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	until(ctx, t, func() bool {
		return scrape(t, "http://"+b.Addr(), shown) && shown["guardyn_bridge_route_messages_total"] != nil
	})
	if err := b.Close(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
}

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// waitEvery is how often the nodes are asked for while waiting.
const waitEvery = 500 * time.Millisecond

// published is what nodes are waited for to serve.
type published struct{ version, generation uint64 }

// waitForNodes waits until every node acknowledges the generation. A node that refuses it ends the waiting.
func (a *app) waitForNodes(ctx context.Context, c *api.Client, p published, timeout time.Duration) error {
	began := time.Now()
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	var behind []string
	for {
		nodes, err := collect(deadline, 0, c.Nodes)
		if err == nil {
			behind = behind[:0]
			for _, n := range nodes {
				if n.Generation >= p.generation {
					continue
				}
				if n.LastError != nil && n.LastError.Version == p.version {
					a.waitProgress("")
					return hint(fmt.Errorf("node %s refused version %d: %s", n.Name, p.version, n.LastError.Message),
						"it serves what it had; gdn node list shows the fleet")
				}
				behind = append(behind, n.Name)
			}
			if len(behind) == 0 {
				a.waitProgress("")
				a.notef("✓ %s on version %d\n", count(len(nodes), "node"), p.version)
				return nil
			}
			a.waitProgress(waitLine(len(nodes), behind, p.version, time.Since(began)))
		}
		select {
		case <-tick.C:
		case <-deadline.Done():
			a.waitProgress("")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil && behind == nil {
				return fmt.Errorf("version %d is live; asking for the nodes failed: %w", p.version, err)
			}
			return hint(fmt.Errorf("version %d is live, but after %s these nodes do not serve it: %s", p.version, timeout, strings.Join(behind, ", ")),
				"gdn node list shows when each was last seen")
		}
	}
}

// waitNames is how many nodes the line of progress names.
const waitNames = 3

// waitLine is the line of progress: a bar, how many nodes are there, and who is not.
func waitLine(all int, behind []string, version uint64, took time.Duration) string {
	const width = 20
	there := all - len(behind)
	full := width * there / max(all, 1)
	names := strings.Join(behind[:min(waitNames, len(behind))], ", ")
	if more := len(behind) - waitNames; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("v%d  [%s%s] %d of %s  %ds  waiting for %s", version, strings.Repeat("=", full), strings.Repeat(" ", width-full),
		there, count(all, "node"), int(took.Seconds()), inert(names))
}

// waitProgress replaces the line of progress on a terminal; empty text clears it.
func (a *app) waitProgress(text string) {
	if a.StderrIsTerminal {
		fmt.Fprintf(a.Stderr, "\r\x1b[K%s", text)
	}
}

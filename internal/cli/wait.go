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

// quietAfter is how long a node outside of the cohort is waited for that is not heard: every node polls once in that time.
const quietAfter = time.Minute

// patience says which nodes are waited for: the members of a rollout or, with none, all that were ever heard, but those
// outside of the cohort that fell silent, which were drained perhaps.
type patience struct {
	members map[string]bool      // ids; nil: no rollout
	heard   map[string]time.Time // when each was heard last, as of the first look
}

// waits tells whether n is waited for, took after the beginning.
func (p *patience) waits(n *api.Node, took time.Duration) bool {
	if p.members != nil {
		return p.members[n.ID]
	}
	first, known := p.heard[n.ID]
	if !known {
		p.heard[n.ID] = n.LastSeen
	}
	switch {
	case n.LastSeen.IsZero():
		return false
	case n.Cohort || !known || !n.LastSeen.Equal(first):
		return true
	}
	return took < quietAfter
}

// servedError is a version that is live and that nodes do not serve.
type servedError struct {
	message, hint, code string
	rollout             *api.Rollout // that made it live; nil: none
}

func (e *servedError) Error() string { return e.message }

// waitForNodes waits until every node that is waited for acknowledges the generation. One of them that refuses it ends the
// waiting; of all others it is told who does not serve it. ro is the rollout that published it, nil for none.
func (a *app) waitForNodes(ctx context.Context, c *api.Client, p published, ro *api.Rollout, timeout time.Duration) error {
	began := time.Now()
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	who := patience{heard: map[string]time.Time{}}
	if ro != nil {
		who.members = map[string]bool{}
		for _, m := range ro.Members {
			who.members[m.ID] = true
		}
	}
	var behind, others []string
	for {
		nodes, err := collect(deadline, 0, c.Nodes)
		if err == nil {
			took := time.Since(began)
			behind, others = behind[:0], others[:0]
			for _, n := range nodes {
				if n.Generation >= p.generation {
					continue
				}
				if !who.waits(&n, took) {
					others = append(others, n.Name)
					continue
				}
				if n.LastError != nil && n.LastError.Version == p.version {
					a.waitProgress("")
					return &servedError{
						message: fmt.Sprintf("node %s refused version %d: %s", n.Name, p.version, n.LastError.Message),
						hint:    "it serves what it had; gdn node list shows the fleet", code: "node_refused", rollout: ro,
					}
				}
				behind = append(behind, n.Name)
			}
			if len(behind) == 0 {
				a.waitProgress("")
				a.notef("✓ %s on version %d\n", count(len(nodes)-len(others), "node"), p.version)
				if len(others) > 0 {
					a.notef("  not waited for, and not on it yet: %s\n", inert(strings.Join(others, ", ")))
				}
				return nil
			}
			a.waitProgress(waitLine(len(nodes)-len(others), behind, p.version, took))
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
			return &servedError{
				message: fmt.Sprintf("version %d is live, but after %s these nodes do not serve it: %s", p.version, timeout, strings.Join(behind, ", ")),
				hint:    "gdn node list shows when each was last seen", code: "nodes_behind", rollout: ro,
			}
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

package probe

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/edge/health"
	"github.com/guardyn-edge/guardyn/zone"
)

// originClient asks origins as the data plane would, within the same guard.
type originClient struct{ health *health.Client }

func newOriginClient(allowed []netip.Prefix, roots *x509.CertPool) *originClient {
	return &originClient{health.NewClient(health.ClientConfig{AllowedOrigins: allowed, Roots: roots, UserAgent: userAgent})}
}

// originsAtOnce is how many of a pool's origins are asked at once; a pool with more takes turns within the time of one question.
const originsAtOnce = 8

// check returns nil when the pool has an origin that works: the first that does ends it.
func (c *originClient) check(ctx context.Context, r poolRef) error {
	var failed []string
	turns := (len(r.pool.Origins) + originsAtOnce - 1) / originsAtOnce
	for some := range slices.Chunk(r.pool.Origins, originsAtOnce) {
		turn, cancel := context.WithTimeout(ctx, timeout/time.Duration(turns))
		errs := make(chan error, len(some))
		for i := range some {
			go func() {
				err := c.ask(turn, r.pool.Health, &some[i])
				if err != nil {
					err = fmt.Errorf("%s: %w", some[i].Name, err)
				}
				errs <- err
			}()
		}
		works := false
		for range some {
			if err := <-errs; err == nil {
				works = true
				cancel() // the others
			} else {
				failed = append(failed, err.Error())
			}
		}
		cancel()
		if works {
			return nil
		}
	}
	if len(failed) == 0 {
		return nil // a pool without origins serves nobody, before and after
	}
	return fmt.Errorf("%s has no healthy origin: %s", r, strings.Join(failed, ", "))
}

// ask makes the check that the node makes of an origin, or connects when it has none.
func (c *originClient) ask(ctx context.Context, h *zone.HealthCheck, o *zone.Origin) error {
	return c.health.Check(ctx, h, health.Target{
		Scheme: o.Scheme, Address: o.Address, Host: cmp.Or(o.HostHeader, o.Address), SNI: o.SNI,
	})
}

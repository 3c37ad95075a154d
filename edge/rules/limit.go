package rules

import (
	"fmt"
	"net/netip"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/guardyn-edge/guardyn/edge/ratelimit"
	"github.com/guardyn-edge/guardyn/internal/expr"
	"github.com/guardyn-edge/guardyn/zone"
)

// limit fills what a rule of action rate_limit counts by. Its identity is what it matches and how it counts, not how
// it answers nor its place, so that its counts outlive other edits; equal rules of a zone are told apart by their order.
func (rule *Rule) limit(z *zone.Zone, r zone.Rule, programs *Programs, twins map[string]int) error {
	p := r.Parameters.Effective(r.Action, rule.Phase)
	if r.Parameters.Key != "" && r.Parameters.Key != (zone.Parameters{}).Effective(r.Action, rule.Phase).Key {
		c, err := compileWith(p.Key, expr.String, programs, z.Lists)
		if err != nil {
			return err
		}
		rule.key = c.program
	}
	identity := fmt.Sprintf("%s\x00%s\x00%s\x00%d\x00%d", rule.Phase, r.Expression, p.Key, p.Period, p.Limit)
	twins[identity]++
	if n := twins[identity]; n > 1 {
		identity += fmt.Sprintf("\x00%d", n)
	}
	rule.Limit = ratelimit.NewRule(string(z.ID), identity, p.Limit, time.Duration(p.Period))
	return nil
}

// Take counts r against the rule's limit at now and returns 0, or how long to wait. A key that errs is counted as an
// error and limits nothing.
func (rule *Rule) Take(l *ratelimit.Limiter, r *Request, now time.Time) time.Duration {
	if rule.key == nil {
		return l.TakeAddr(rule.Limit, r.Client, now)
	}
	key, ok := rule.keyOf(r)
	if !ok {
		return 0
	}
	return l.Take(rule.Limit, key, now)
}

func (rule *Rule) keyOf(r *Request) (string, bool) {
	v, _, err := rule.key.Eval(r)
	s, ok := v.(types.String)
	if err != nil || !ok {
		rule.Failed(r)
		return "", false
	}
	return string(s), true
}

// Key returns what the rule counts r by: the value of its key or the client's address, an IPv6 one as its /64. ok is
// false when the key errs.
func (rule *Rule) Key(r *Request) (key string, ok bool) {
	if rule.key != nil {
		return rule.keyOf(r)
	}
	a := r.Client.Unmap()
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().String(), true
	}
	return a.String(), true
}

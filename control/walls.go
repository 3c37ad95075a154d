package control

import "context"

// PlanHolding is Plan as an apply with HoldBroken would do it (operator): a zone with problems stays as it
// is published, or is left out when it never was; Plan.Held tells which and why.
func (s *Service) PlanHolding(ctx context.Context, p Principal) (PlanReport, error) { panic("unbuilt") }

// Rollback makes a stored version live again under the next generation (operator). Errors: *TargetError,
// *PlanChangedError, *DisruptiveError, *StaleError (which is ErrConflict), *AheadNodeError (which is
// ErrNodeAhead), ErrKeyMismatch, ErrKeyReused. With any error the live pointer did not move, with Apply's
// exception. Any stored version will do, one that never was live too.
func (s *Service) Rollback(ctx context.Context, p Principal, r RollbackRequest) (RollbackResult, error) {
	panic("unbuilt")
}

// Recover raises the epoch after the database was restored from an old backup (operator). Everything that is
// signed from then on is newer than whatever nodes show of the epochs before; it lifts the refusal that
// AheadNodeError tells of. Nodes follow with the next apply, which publishes even when nothing else changed.
// ErrConflict when another recovery was faster.
func (s *Service) Recover(ctx context.Context, p Principal, r RecoverRequest) (RecoverResult, error) {
	panic("unbuilt")
}

// KeysCheck tells which nodes trust the configured signing key, as they last said (operator), by name.
func (s *Service) KeysCheck(ctx context.Context, p Principal) (KeysReport, error) { panic("unbuilt") }

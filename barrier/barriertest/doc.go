// Package barriertest is the conformance suite of the barrier's ports: what every adapter must do, as tests.
//
// An adapter's test makes cohorts and lets Run judge them:
//
//	func TestConformance(t *testing.T) {
//		barriertest.Run(t, func(t testing.TB) barriertest.Opener {
//			dsn := newDatabase(t) // empty, of this call alone
//			return func(t testing.TB) barriertest.Handles {
//				s := open(t, dsn) // as another process would; closed by t.Cleanup
//				return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
//			}
//		})
//	}
//
// There is one subtest for each sentence of the ports' documentation, named after it, and each runs twice:
// plain, and wrapped, where every call may be lost, applied but answered with an error, or slow, and the suite
// repeats a call whose outcome it does not know, as the driver does. What comes of it must be the same. Every read
// of every clause is judged besides: by the invariants I1–I8, and by what was read before.
//
// The suite knows no other time than the store's: it reads until Row.Now has passed, and never asks that
// something be done within a time. Where a store has no time of its own, Row.Margin stretches the suite's
// windows; keep it under 200 ms in tests. Where its clock can be given to it, one that runs faster saves time.
//
// Clauses that wait run in parallel with each other, so fresh and the Openers are called concurrently. Handles are called
// for every member of the cohort, and concurrently. A race goes on for as many rounds as the store does in 400 ms, and for a few at least. What
// only one adapter promises, such as hints that arrive and artefacts that are deleted, is for its own tests.
//
// Faulty is of use in these too: Faults.Next befalls a call that is named, and Faults.Hold keeps one on its way until
// others have overtaken it.
package barriertest

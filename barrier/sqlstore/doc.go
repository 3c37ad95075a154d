// Package sqlstore keeps a cohort's row, votes, lease and artefacts in Postgres or SQLite.
//
// It lives in tables of its own (schema "barrier" in Postgres, prefix "barrier_" in SQLite), alone in a database or beside
// its host's, and its decisions can be part of the host's transactions: see Store.In and OnChange.
//
// On Postgres it speaks to the primary and takes the primary's clock, inside of each write and after its lock. On
// SQLite all processes are on one machine and take that machine's clock.
package sqlstore

// Package store keeps the control plane's rows in SQLite or Postgres: it implements the ports of package
// control over database/sql, with embedded migrations for each database.
//
// Both databases run the same statements, written once in the words of Postgres; a dialect translates
// what differs. Times are kept to the microsecond. On Postgres everything lives in schema edge.
package store

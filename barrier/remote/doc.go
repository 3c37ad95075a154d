// Package remote carries a cohort's barrier over HTTP: a Handler in front of a store, and a Client that is one.
package remote

//go:build !race

package cache

const (
	scanned = 1_000_000
	stored  = 100_000
)

//go:build race

package cache

// The race detector makes everything ten times slower and finds no race in more of the same.
const (
	scanned = 50_000
	stored  = 10_000
)

package api

import "time"

// NewPurge names what caches are to drop: by url, by prefix (host and beginning of a path, without the scheme), by tag, or all.
type NewPurge struct {
	Kind   string   `json:"kind"`
	Values []string `json:"values,omitempty"` // 1 to 100, none with all
}

// Purge is a purge with how far the fleet is.
type Purge struct {
	ID       string    `json:"id"`
	Sequence uint64    `json:"sequence,omitzero"` // in the platform's log, for operators alone
	Kind     string    `json:"kind"`
	Values   []string  `json:"values"` // in normal form
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	// Nodes are waited for: those that cache, but those outside of the cohort that were not heard for a minute, which are
	// Silent. Done of them have done it.
	Nodes   int      `json:"nodes"`
	Done    int      `json:"done"`
	Silent  int      `json:"silent"`
	Waiting []string `json:"waiting,omitempty"` // names of the others, at most 100, not in listings, for operators alone
}

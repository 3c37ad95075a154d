package api

import "time"

// PoolStatus is how a pool's origins do on the fleet's nodes, by what each node acknowledged last.
type PoolStatus struct {
	Zone string `json:"zone"`
	Pool string `json:"pool"`
	// Nodes say how their pools do; of Unknown nodes it is not known.
	Nodes   int            `json:"nodes"`
	Unknown int            `json:"unknown"`
	Origins []OriginStatus `json:"origins"`
}

// OriginStatus is how one origin does. It takes requests on Serving nodes; on Unhealthy and Ejected ones it
// does not.
type OriginStatus struct {
	Name      string    `json:"name"`
	Address   string    `json:"address"`
	Enabled   bool      `json:"enabled"`
	Serving   int       `json:"serving"`
	Unhealthy int       `json:"unhealthy"`
	Ejected   int       `json:"ejected"`
	Since     time.Time `json:"since,omitzero"`    // it is down somewhere
	Error     string    `json:"error,omitempty"`   // the newest
	DownOn    []string  `json:"down_on,omitempty"` // names of nodes, for operators alone
}

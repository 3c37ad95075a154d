package nodeproto

import "time"

// MaxOriginsDown bounds Pools.Down: with the longest names and errors an acknowledgement stays under its 64 KiB.
const MaxOriginsDown = 96

// What keeps an origin from taking requests.
const (
	OriginUnhealthy = "unhealthy" // by its health checks
	OriginEjected   = "ejected"   // for a while, since requests to it failed
)

// Pools is what a node says of the origins of its pools: those that take no requests. All others do.
type Pools struct {
	Checked int          `json:"checked"` // origins whose health it checks
	Down    []OriginDown `json:"down"`    // by zone, pool and name, at most MaxOriginsDown
	Omitted int          `json:"omitted,omitzero"`
}

// OriginDown is an origin that takes no requests on a node.
type OriginDown struct {
	Zone   string    `json:"zone"` // id
	Pool   string    `json:"pool"`
	Origin string    `json:"origin"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Error  string    `json:"error,omitempty"` // the newest, at most 200 bytes
}

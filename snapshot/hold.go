package snapshot

import "github.com/guardyn-edge/guardyn/zone"

// HeldZone is a zone whose saved content has problems and is not published.
type HeldZone struct {
	ID   zone.ID   `json:"id"`
	Name zone.Name `json:"name"`
	// Published tells that it stays as it is published; else it never was and is left out.
	Published bool      `json:"published"`
	Problems  []Problem `json:"problems"`
}

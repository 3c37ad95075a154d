package zone

// ID identifies a zone for its whole life: a lower-case UUID in its 36-character text form (RFC 9562
// §4). The control plane gives out version 7, so a later zone has the greater ID.
type ID string

// Zone is one zone as rows hold it and, after [Zone.Served], as a snapshot holds it. Every collection
// may be nil: nil and empty mean the same and print the same bytes.
type Zone struct {
	ID            ID                    `json:"id"`
	Name          Name                  `json:"name"`
	Records       []Record              `json:"records,omitempty"`
	Rulesets      map[Phase][]Rule      `json:"rulesets,omitempty"`
	Lists         map[string]List       `json:"lists,omitempty"`
	Pools         map[string]Pool       `json:"pools,omitempty"`
	LoadBalancers map[Name]LoadBalancer `json:"load_balancers,omitempty"`
	CachePolicy   CachePolicy           `json:"cache_policy,omitzero"`
	TLSHosts      map[Name]TLSHost      `json:"tls_hosts,omitempty"`
	Functions     map[string]Function   `json:"functions,omitempty"`
	Settings      Settings              `json:"settings,omitzero"`
	Ceilings      Ceilings              `json:"ceilings,omitzero"`
}

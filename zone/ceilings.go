package zone

// Ceilings are a plan's limits for one zone, resolved to numbers. A zero member reads as the default; no
// ceiling is unlimited.
type Ceilings struct {
	Records        int      `json:"records,omitzero"`         // default 10,000
	Rules          int      `json:"rules,omitzero"`           // over all phases; default 500
	Lists          int      `json:"lists,omitzero"`           // default 50
	ListItems      int      `json:"list_items,omitzero"`      // over all lists; default 200,000
	Pools          int      `json:"pools,omitzero"`           // default 50
	Origins        int      `json:"origins,omitzero"`         // over all pools; default 200
	LoadBalancers  int      `json:"load_balancers,omitzero"`  // default 100
	TLSHosts       int      `json:"tls_hosts,omitzero"`       // default 100
	Functions      int      `json:"functions,omitzero"`       // default 20
	FunctionSize   Size     `json:"function_size,omitzero"`   // of one module; default 4MiB
	FunctionMemory Size     `json:"function_memory,omitzero"` // of one call; default 64MiB
	FunctionTime   Duration `json:"function_time,omitzero"`   // wall time of one call; default 1s
	FunctionOutput Size     `json:"function_output,omitzero"` // of one call; default 4MiB
	RequestBody    Size     `json:"request_body,omitzero"`    // of one HTTP request; default 100MiB
	RequestRate    int      `json:"request_rate,omitzero"`    // HTTP requests/s per node; default 10,000
}

// Plan is a named set of ceilings that workspaces subscribe to.
type Plan struct {
	Name     string   `json:"name"`
	Ceilings Ceilings `json:"ceilings,omitzero"`
}

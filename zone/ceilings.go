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

// defaults are the ceilings of a plan that says nothing.
func defaults() Ceilings {
	return Ceilings{
		Records: 10_000, Rules: 500, Lists: 50, ListItems: 200_000, Pools: 50, Origins: 200, LoadBalancers: 100,
		TLSHosts: 100, Functions: 20, FunctionSize: 4 << 20, FunctionMemory: 64 << 20, FunctionTime: second,
		FunctionOutput: 4 << 20, RequestBody: 100 << 20, RequestRate: 10_000,
	}
}

// Normalize returns c with defaults zero, or all that is wrong with it, joined.
func (c Ceilings) Normalize() (Ceilings, error) {
	var bad problems
	d := defaults()
	for _, m := range []struct {
		name   string
		v, def *int
		most   int
	}{
		{"records", &c.Records, &d.Records, 1_000_000},
		{"rules", &c.Rules, &d.Rules, 100_000},
		{"lists", &c.Lists, &d.Lists, 100_000},
		{"list_items", &c.ListItems, &d.ListItems, 10_000_000},
		{"pools", &c.Pools, &d.Pools, 100_000},
		{"origins", &c.Origins, &d.Origins, 100_000},
		{"load_balancers", &c.LoadBalancers, &d.LoadBalancers, 100_000},
		{"tls_hosts", &c.TLSHosts, &d.TLSHosts, 100_000},
		{"functions", &c.Functions, &d.Functions, 10_000},
		{"request_rate", &c.RequestRate, &d.RequestRate, 100_000_000},
	} {
		inRange(&bad, m.name, *m.v, 1, m.most, decimal)
		zeroDefault(m.v, *m.def)
	}
	inRange(&bad, "function_size", c.FunctionSize, 1, MaxModule, Size.String)
	inRange(&bad, "function_memory", c.FunctionMemory, 64<<10, 4<<30, Size.String)
	inRange(&bad, "function_time", c.FunctionTime, 1e6, 60*second, Duration.String)
	inRange(&bad, "function_output", c.FunctionOutput, 1, 1<<30, Size.String)
	inRange(&bad, "request_body", c.RequestBody, 1, 1<<40, Size.String)
	zeroDefault(&c.FunctionSize, d.FunctionSize)
	zeroDefault(&c.FunctionMemory, d.FunctionMemory)
	zeroDefault(&c.FunctionTime, d.FunctionTime)
	zeroDefault(&c.FunctionOutput, d.FunctionOutput)
	zeroDefault(&c.RequestBody, d.RequestBody)
	if err := bad.err(); err != nil {
		return Ceilings{}, err
	}
	return c, nil
}

// Effective returns c with each zero member replaced by its default.
func (c Ceilings) Effective() Ceilings {
	d := defaults()
	or(&c.Records, d.Records)
	or(&c.Rules, d.Rules)
	or(&c.Lists, d.Lists)
	or(&c.ListItems, d.ListItems)
	or(&c.Pools, d.Pools)
	or(&c.Origins, d.Origins)
	or(&c.LoadBalancers, d.LoadBalancers)
	or(&c.TLSHosts, d.TLSHosts)
	or(&c.Functions, d.Functions)
	or(&c.FunctionSize, d.FunctionSize)
	or(&c.FunctionMemory, d.FunctionMemory)
	or(&c.FunctionTime, d.FunctionTime)
	or(&c.FunctionOutput, d.FunctionOutput)
	or(&c.RequestBody, d.RequestBody)
	or(&c.RequestRate, d.RequestRate)
	return c
}

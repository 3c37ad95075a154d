package expr

import (
	"strings"

	"cel.dev/cel-go/common/cost"
)

// sizes tells the estimate how large what a request brings can be.
type sizes struct{}

// The largest that the node lets through: header fields and the target share 64 KiB, of which one value
// rarely takes more than these.
var largest = map[string]uint64{
	"http.host":           253,
	"http.method":         32,
	"http.path":           8192,
	"http.query":          8192,
	"http.uri":            16385,
	"http.scheme":         5,
	"http.version":        3,
	"http.headers":        100,
	"http.headers.@keys":  64,
	"http.headers.@items": 8192,
	"http.cookies":        100,
	"http.cookies.@keys":  64,
	"http.cookies.@items": 4096,
	"tls.sni":             253,
	"tls.version":         3,
	"zone.name":           253,
}

// EstimateSize returns the range of sizes of a variable or of what is in it.
func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := strings.Join(n.Path(), ".")
	path = strings.Replace(path, "@values", "@items", 1)
	if most, ok := largest[path]; ok {
		return &cost.SizeEstimate{Min: 0, Max: most}
	}
	for _, fields := range []string{"http.headers", "http.cookies"} {
		if strings.HasPrefix(path, fields+".") {
			return &cost.SizeEstimate{Min: 0, Max: largest[fields+".@items"]}
		}
	}
	return nil
}

// EstimateCallCost gives the cost of the functions that the environment adds.
func (s sizes) EstimateCallCost(_, overload string, _ *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	size := func(i int) cost.SizeEstimate {
		if i >= len(args) {
			return cost.FixedSizeEstimate(1)
		}
		if n := args[i].ComputedSize(); n != nil {
			return *n
		}
		if n := s.EstimateSize(args[i]); n != nil {
			return *n
		}
		return cost.SizeEstimate{Min: 0, Max: 16385}
	}
	scan := func(i int) cost.Estimate {
		return size(i).MultiplyByCostFactor(cost.StringTraversalCostFactor).Add(cost.FixedCostEstimate(1))
	}
	switch overload {
	case "ip_string", "cidr_string", "ip_to_string":
		n := cost.SizeEstimate{Min: 2, Max: 45}
		return cost.NewCallEstimate(cost.FixedCostEstimate(10), &n)
	case "cidr_contains_ip":
		return cost.NewCallEstimate(cost.FixedCostEstimate(1), nil)
	case "in_list_ip":
		return cost.NewCallEstimate(cost.FixedCostEstimate(10), nil)
	case "in_list_string":
		return cost.NewCallEstimate(scan(1).Add(cost.FixedCostEstimate(10)), nil)
	case "starts_with_string_string", "ends_with_string_string":
		return cost.NewCallEstimate(scan(1), nil)
	case "contains_string_string", "glob_string_string":
		return cost.NewCallEstimate(scan(0).Multiply(scan(1)), nil)
	case "lower_string", "upper_string":
		n := size(0)
		return cost.NewCallEstimate(scan(0), &n)
	}
	return nil
}

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestMetricsZones(t *testing.T) {
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("z%04d.example", i)
	}
	for _, row := range []struct {
		name, text string
		all        bool
		zones      []string
		errors     []string
	}{
		{"unset", "", false, nil, nil},
		{"all", "all", true, nil, nil},
		{"a list", "Example.com, example.org.,example.com", false, []string{"example.com", "example.org"}, nil},
		{"as many as there may be", strings.Join(many[:1000], ","), false, many[:1000], nil},
		{"more", strings.Join(many, ","), false, many, []string{"1001 zones, at most 1000"}},
		{"no names", "example.com,1.2.3.4,a b", false, []string{"example.com"}, []string{"entry 2: want all, or zones", "entry 3"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := metricsZones(row.text)
			if s.All != row.all || !slices.Equal(s.Names, row.zones) || (err == nil) != (len(row.errors) == 0) {
				t.Errorf("%v, %v", s, err)
			}
			for _, want := range row.errors {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	}
}

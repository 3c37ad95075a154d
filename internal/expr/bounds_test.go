package expr

import (
	"strings"
	"testing"
)

// Each bound by itself: what is at it passes, what is beyond it does not.
func TestBounds(t *testing.T) {
	list := func(n int) string { return "1 in [" + strings.Repeat("1,", n-1) + "1]" } // n+3 nodes
	text := func(n int) string { return `http.path == "` + strings.Repeat("a", n-len(`http.path == ""`)) + `"` }
	for _, tc := range []struct {
		name, text string
		ok         bool
	}{
		{"characters, at the bound", text(MaxSource), true},
		{"characters, beyond it", text(MaxSource + 1), false},
		{"nodes, below the bound", list(MaxNodes - 3), true},
		{"nodes, beyond it", list(MaxNodes + 1), false},
		{"levels, below the bound", strings.Repeat("!", MaxDepth/2) + "true", true},
		{"levels, beyond it", strings.Repeat("!(", 2*MaxDepth) + "true" + strings.Repeat(")", 2*MaxDepth), false},
		{"cost, below the bound", `http.headers.all(a, http.headers[a] != "")`, true},
		{"cost, beyond it", `http.headers.all(a, http.headers.all(b, http.headers.all(c, http.headers[a] + http.headers[b] != c)))`, false},
	} {
		if _, err := Check(tc.text, Bool); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

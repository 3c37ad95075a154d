package cli

import "testing"

func TestWaitLine(t *testing.T) {
	for _, tt := range []struct {
		name   string
		all    int
		behind []string
		want   string
	}{
		{"none yet", 2, []string{"a", "b"}, "v7  [                    ] 0 of 2 nodes  3s  waiting for a, b"},
		{"half", 4, []string{"a", "b"}, "v7  [==========          ] 2 of 4 nodes  3s  waiting for a, b"},
		{"many", 10, []string{"a", "b", "c", "d", "e"}, "v7  [==========          ] 5 of 10 nodes  3s  waiting for a, b, c and 2 more"},
		{"a name that acts on terminals", 1, []string{"a\x1b[2J"}, `v7  [                    ] 0 of 1 node  3s  waiting for a\x1b[2J`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := waitLine(tt.all, tt.behind, 7, 3500e6); got != tt.want {
				t.Errorf("%q\nwant\n%q", got, tt.want)
			}
		})
	}
}

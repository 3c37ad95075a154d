package cli

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// part ends when it is closed, or by itself with err.
type part struct {
	name   string
	err    error
	ended  chan struct{}
	closed *[]string
}

func (p part) Wait() error {
	<-p.ended
	return p.err
}

func (p part) Close(context.Context) error {
	*p.closed = append(*p.closed, p.name)
	if p.err == nil {
		close(p.ended)
	}
	return nil
}

func TestWaitAndClose(t *testing.T) {
	fault := errors.New("listener is gone")
	tests := []struct {
		name  string
		stop  bool // ctx is done
		fault error
	}{
		{"told to stop", true, nil},
		{"a part fails", false, fault},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var closed []string
			first := part{"first", nil, make(chan struct{}), &closed}
			second := part{"second", tt.fault, make(chan struct{}), &closed}
			if tt.stop {
				cancel()
			} else {
				close(second.ended)
			}
			if err := waitAndClose(ctx, first, second); !errors.Is(err, tt.fault) {
				t.Errorf("waitAndClose = %v, want %v", err, tt.fault)
			}
			if want := []string{"second", "first"}; !slices.Equal(closed, want) {
				t.Errorf("closed %q, want %q", closed, want)
			}
		})
	}
}

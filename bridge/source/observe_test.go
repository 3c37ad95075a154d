package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/source"
)

// script is a source whose looks show one thing after another; the last goes on.
type script struct {
	source.Source
	mu    sync.Mutex
	shows []any // source.Stored or error
	looks int
}

func (s *script) Read(ctx context.Context) (source.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	show := s.shows[min(s.looks, len(s.shows)-1)]
	s.looks++
	if err, failed := show.(error); failed {
		if errors.Is(err, context.DeadlineExceeded) {
			<-ctx.Done()
		}
		return source.Stored{}, err
	}
	return show.(source.Stored), nil
}

func TestObservations(t *testing.T) {
	at := func(version uint64, lineage string) source.Stored {
		return source.Stored{Version: version, Lineage: lineage, Body: fmt.Append(nil, "version: ", version)}
	}
	other := at(1, "a")
	other.Body = []byte("version: 1 # edited")
	gone, down := fmt.Errorf("x: %w", source.ErrMissing), errors.New("down")
	for _, tt := range []struct {
		name  string
		shows []any
		want  []string
	}{
		{"nothing new is told once", []any{at(1, ""), at(1, ""), at(1, "")}, []string{"present 1"}},
		{"every change", []any{gone, gone, at(1, ""), at(2, ""), at(1, "")}, []string{"missing", "present 1", "present 2", "present 1"}},
		{"an edit at the same version", []any{at(1, "a"), other}, []string{"present 1", "present 1"}},
		{"errors between", []any{down, at(1, ""), down, down, gone, down}, []string{"read error", "present 1", "read error", "missing", "read error"}},
		{"another error", []any{down, errors.New("denied")}, []string{"read error", "read error"}},
		{"created again unseen", []any{at(3, "a"), at(1, "b")}, []string{"present 3", "missing", "present 1"}},
		{"created again behind an error", []any{at(3, "a"), down, at(3, "a")}, []string{"present 3", "read error", "present 3"}},
		{"a look that hangs", []any{at(1, ""), context.DeadlineExceeded, at(1, "")}, []string{"present 1", "read error", "present 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{shows: tt.shows}
				o := &source.Observer{Source: s}
				out := make(chan source.Observation)
				ctx, cancel := context.WithCancel(t.Context())
				go o.Run(ctx, out)
				var got []string
				for range tt.want {
					seen := <-out
					text := string(seen.State)
					if seen.State == source.Present {
						text = fmt.Sprintf("present %d", seen.Stored.Version)
					}
					got = append(got, text)
				}
				time.Sleep(time.Minute)
				select {
				case more := <-out:
					t.Errorf("and %+v", more)
				default:
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("observed %v, want %v", got, tt.want)
				}
				cancel()
				if _, more := <-out; more {
					t.Error("it goes on")
				}
			})
		})
	}
}

// TestNotOvertaken: the next look comes when what came was taken, however late.
func TestNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{shows: []any{source.Stored{Version: 1}, source.ErrMissing, source.Stored{Version: 1}}}
		o := &source.Observer{Source: s}
		out := make(chan source.Observation)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go o.Run(ctx, out)
		time.Sleep(time.Hour)
		for _, want := range []source.State{source.Present, source.Missing, source.Present} {
			o.Nudge()
			if got := <-out; got.State != want {
				t.Errorf("observed %s, want %s", got.State, want)
			}
		}
		if got := o.Answered(); !got.Equal(time.Now()) {
			t.Errorf("last answered at %s, and it is %s", got, time.Now())
		}
		cancel()
		for range out {
		}
	})
}

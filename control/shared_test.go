package control

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedCallNeverOlderThanTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			c       sharedCall[time.Time]
			runs    int
			running int
			wg      sync.WaitGroup
		)
		read := func(context.Context) (time.Time, error) {
			runs++
			if running++; running > 1 {
				t.Error("two runs at one time")
			}
			began := time.Now()
			time.Sleep(10 * time.Second)
			running--
			return began, nil
		}
		for i := range 1000 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond) // the last one comes at 9.99 s
				asked := time.Now()
				began, err := c.do(t.Context(), read)
				if err != nil {
					t.Error(err)
				}
				if began.Before(asked) {
					t.Errorf("asked at %v, got what was read at %v", asked, began)
				}
			})
		}
		wg.Wait()
		if runs != 2 {
			t.Errorf("%d runs for 1,000 callers within one run's time, want 2", runs)
		}
	})
}

func TestSharedCallEndsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c sharedCall[int]
		ended := make(chan error, 1)
		block := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, ctx.Err()
		}
		one, leaveOne := context.WithCancel(t.Context())
		two, leaveTwo := context.WithCancel(t.Context())
		results := make(chan error, 2)
		go func() { _, err := c.do(one, block); results <- err }()
		synctest.Wait()
		// The second waits for the run after the first: ending the first starts it.
		go func() { _, err := c.do(two, block); results <- err }()
		synctest.Wait()
		leaveOne()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the run that nobody waits for got %v", err)
		}
		leaveTwo()
		<-results
		<-ended
		if v, err := c.do(t.Context(), func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("afterwards: %d, %v", v, err)
		}
	})
}

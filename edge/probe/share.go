package probe

import "sync"

// shares remembers what was answered over the last five minutes.
type shares struct {
	mu      sync.Mutex
	samples []Requests // oldest first, at most shareLen
}

func (s *shares) add(r Requests) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == shareLen {
		copy(s.samples, s.samples[1:])
		s.samples = s.samples[:shareLen-1]
	}
	s.samples = append(s.samples, r)
}

// until is the share of failures from the oldest sample to now. 0 when nothing was asked.
func (s *shares) until(now Requests) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return now.share()
	}
	return now.less(s.samples[0]).share()
}

package api

import "sync"

// Bounds of bodies over MaxBody that are being read or worked on: each is held in memory as a whole.
const (
	maxLargeBodies        = 16
	maxLargeBodiesPerUser = 4 // so that no user's slow uploads keep all others from theirs
)

// largeBodies counts them. The zero value has none.
type largeBodies struct {
	mu     sync.Mutex
	n      int
	byUser map[string]int
}

// enter reports whether a user may send one more; the caller calls leave when it is done with.
func (l *largeBodies) enter(user string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= maxLargeBodies || l.byUser[user] >= maxLargeBodiesPerUser {
		return false
	}
	if l.byUser == nil {
		l.byUser = make(map[string]int)
	}
	l.n++
	l.byUser[user]++
	return true
}

func (l *largeBodies) leave(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n--
	if l.byUser[user]--; l.byUser[user] == 0 {
		delete(l.byUser, user)
	}
}

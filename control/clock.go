package control

import (
	"sync/atomic"
	"time"
)

// maxReading is how long an answer of the database may take before it tells too little of its time to take the place of a
// better one.
const maxReading = time.Second

// databaseClock turns this process's time into the database's, by which what several processes hear is put in order: a process
// whose clock is wrong by hours, or is set, says nothing wrong of a node. The zero value takes the one for the other.
type databaseClock struct{ p atomic.Pointer[clockReading] }

// clockReading is one instant, by this process's clock and by the database's.
type clockReading struct{ own, database time.Time }

// read notes that the database, asked between two instants of this process, said that it was now; zero: it has no time of its own.
func (c *databaseClock) read(asked, answered, now time.Time) {
	took := answered.Sub(asked)
	if now.IsZero() || took > maxReading && c.p.Load() != nil {
		return
	}
	c.p.Store(&clockReading{asked.Add(took / 2), now})
}

// at is t, a time of this process, by the database's clock. A time from time.Now is counted on without the wall clock.
func (c *databaseClock) at(t time.Time) time.Time {
	r := c.p.Load()
	if r == nil {
		return t.UTC()
	}
	return r.database.Add(t.Sub(r.own))
}

// Package sim runs whole cohorts of the barrier in one goroutine under seeded faults, and checks the protocol's
// promises at every step.
//
// A schedule is one seed: a world with members, coordinators, proposers, an operator and a store, the faults that
// befall them, and every delay and loss on the way. What judges is the real thing: barrier.Decide for coordinators,
// barrier.Situation's Observe, Missed, Step and After for members, the transitions of barrier.Head inside the store. The
// simulator only performs what they say, as the drivers Coordinator and Member do, call by call.
//
// # Replaying a schedule
//
// A schedule that breaks a promise prints its seed, the promise, the faults that are needed to break it (those that are
// not were dropped) and a trace. The same seed always runs the same way:
//
//	go test ./barrier/sim -run TestSchedules -sim.seed=4711 -v
//
// # Reading a trace
//
// Each line begins with true time since the start, in seconds, and who acts: m1-b2 is the second process of member m1,
// c1-b1 the first of coordinator c1, "store" what took effect there, "fault" what befell somebody. A call is told when it
// is sent ("→"), takes effect ("store") and is answered ("←"); one that is lost, delayed or duplicated says so. A decision is
// the line of the store that names the new state. The last line is the broken promise.
//
// # Ablations
//
// Each repair of the protocol can be switched off in the simulator alone; see Ablation. That a promise is then seen to
// break, soon, is what shows that the simulator can see it break.
package sim

// Package barrier rolls a change out to all members of a cohort together or not at all.
//
// Every member builds the change without serving it and votes; a fenced coordinator commits when all have acknowledged, or
// aborts. With a confirm window the commit is on trial: members serve it and take it back by themselves
// unless the whole cohort proves in time that it works. The protocol is docs/spec/rollout.md.
package barrier

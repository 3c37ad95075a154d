// Package ratelimit counts requests by key against limits, in memory of a fixed size, by the generic cell rate
// algorithm.
//
// # Algorithm
//
// A key has one number: the time at which its count will be forgotten. Each admitted request moves it on by
// period/limit; a request is refused when it is period less period/limit or more ahead. So a key that keeps to its limit in
// every period is never refused, limit requests at once are admitted exactly, and no more than
// limit + limit·t/period in any time t. A refused request is not counted. period/limit is rounded down to a
// nanosecond.
//
// # Bounds
//
// A [Limiter] holds 24 bytes an entry and never more entries than it was made for; nothing of a key is kept but
// 64 bits of a hash with a secret of the process. Keys hash to sets of 8 entries. Where a set is full of counts that still matter,
// the zone with most entries in it gives one up, the one that used least of its limit. Who is at his limit and floods the
// table with new keys therefore makes them push out one another; to be forgotten himself he has to bring others of
// his set, which he cannot know, as near to their limits. One zone's flood leaves another its three most used
// counts of a set.
package ratelimit

// Package dynamo keeps a barrier's row, lease and artefacts in one Amazon DynamoDB table.
//
// # Items
//
// The table has the key (pk, sk), both strings, no index and no stream; several cohorts share it. A cohort's row is the partition
// "COHORT#cohort":
//
//	sk                                   attributes
//	HEAD                                 format 1, rev, doc: barrier.Head as JSON, durations as "1m30s"
//	ROSTER                               rev, members: sorted list
//	REGISTRATION#member                  boot, incarnation, joined
//	EPOCH#generation#rollout             members: sorted list; the generation has 20 digits
//	BALLOT#generation#rollout#member     doc: barrier.Ballot as JSON
//	LEASE                                holder (empty: given back), lease_token, lease_ms
//
// and its artefacts are the partition "ARTEFACTS#cohort":
//
//	MANIFEST#digest                      upload, chunks, bytes, since_ms: Unix time of the last Put
//	CHUNK#upload#0000                    body: up to 350 KiB of the artefact
//	UPLOAD#upload                        chunks, since_ms: chunks that no manifest names (yet, or any more)
//
// Every item that changes has a nonce: the random name of the call that wrote it last.
//
// # Writes
//
// A call reads, runs barrier's transition, and writes under the condition that what it read still stands: the head by its revision,
// everything else by its nonce. Roster, epoch, Join and Withdraw are written in one transaction with the head; votes and
// evidence in one with a check of their own member's registration, so that a thousand members do not stand in line
// for the head. The manifest comes last, after its chunks. A request to write is sent once. If its answer is lost, the
// call reads again, finds its own nonce or decides anew, at most 8 times; a lost race is run again at most 60 times.
// HEAD, REGISTRATION and LEASE items are never deleted.
//
// # Reads
//
// All reads ask for strong consistency, each item on its own: there is no instant over a whole cohort. A row is read between two
// looks at a head that did not change. Votes that arrive meanwhile may be seen or not; what is read is no older than the
// call.
//
// # Time
//
// DynamoDB has no clock that a condition could test. The store's time is each process's own, and the deployment owes
// that all of them are kept by NTP (chrony, or the provider's time service) within Options.ClockSkew of each other. Deadlines, soak
// and the age of evidence are judged with barrier.Row.Margin, which is ClockSkew + RequestTimeout, to spare, so a decision is only
// sent if it must arrive in time. It follows that a deadline shorter than the margin can never be met, and that
// evidence must live longer than the margin: propose an EvidenceTTL of at least the margin and two polls. If
// the bound is broken a Confirm can be written up to the excess after its deadline, against expired evidence
// likewise, and a member's deadman can revert so much before D + grace; which of Confirm and Revert stands is still one
// conditional write, and members that reach the table agree on it. Tokens, generations, revisions and votes do
// not depend on clocks at all.
//
// The lease does not either; see Store.Acquire for what that costs.
//
// # Deletion
//
// Propose deletes what it supersedes: epochs and ballots of earlier rollouts, at most 2,000, and artefacts that the row does not
// name and that were not put for barrier.ArtefactRetention, at most 16, for at most 10 seconds. What is left is
// deleted by a later one. No TTL attribute is used: the newest rollout's items must stay as long as it is the newest. Items of a
// removed member's registration stay (about 150 bytes): its number of incarnations refuses delayed calls of its old
// processes.
//
// # Deployment
//
// One region: Open refuses a global table, and nothing may make it one afterwards. The permissions are DescribeTable,
// GetItem, BatchGetItem, Query, PutItem, DeleteItem, BatchWriteItem and ConditionCheckItem, and for CreateTable that.
package dynamo

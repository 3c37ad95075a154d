// Package remote carries a cohort's barrier over HTTP: a Handler in front of a store, and a Client that is one.
//
// # The wire
//
// A Handler serves one cohort under a prefix that its host chooses, for example /v1/barrier/edge. Who may make a call
// is in the column *who*: m the member that the request names and no other, c a coordinator, o an operator; rights add up.
//
//	method and path       who    body                                              answer, 200
//	GET  /row             c o                                                      Row
//	GET  /view?member=M   m c o                                                    View
//	GET  /watch?topic=T   m c o  (votes: c o); &seen=S with what was seen last     {"seen":S}, or 204
//	POST /join            m      {member, boot, incarnation}                       Registration
//	POST /ack             m      {rollout, member, boot, build_digest}             {}
//	POST /nack            m      {rollout, member, boot, reason}                   {}
//	POST /converge        m      {rollout, member, boot, detail}                   {}
//	POST /withdraw        m      {rollout, member, boot, reason}                   {}
//	POST /claim           c      {token}                                           {}
//	POST /commit          c      {rollout, token}                                  {}
//	POST /confirm         c      {rollout, token}                                  {}
//	POST /abort           c o    {rollout, by, reason}                             {}
//	POST /revert          m c o  {rollout, by, reason}                             {}
//	POST /propose         c o    Proposal                                          Rollout
//	POST /roster          c o    {revision, members}                               Roster
//	POST /baseline        c o    Pointer                                           {"outcome":…}
//	POST /lease/acquire   c      {holder, ttl_ms}                                  Lease
//	POST /lease/renew     c      Lease                                             {}
//	POST /lease/release   c      Lease                                             {}
//	PUT  /artefact?digest=D  c o  the bytes                                        {}
//	GET  /artefact?digest=D  m c                                                   the bytes
//
// Names in capitals are types of package barrier in their JSON. rollout is {id, generation}. Times are RFC 3339 in
// UTC with up to nine digits of a second, durations (…_ms) whole milliseconds, numbers whole and up to 2^64−1. by is one of
// {token}, of a coordinator; {operator}, whose name is that of the credentials and may be left out; {member, boot}, of the
// member's deadman, which reverts only. What is proposed by an operator who is no coordinator has his name as
// its proposer. A member gets only artefacts that the row names: the committed one, the newest rollout's and
// the one's before it; others are no_artefact to it.
//
// A body is application/json, or application/octet-stream for an artefact; it says each thing once and nothing
// that is not listed. It has at most 64 KiB; a roster 71,096 bytes, which is 1,000 ids of 64 bytes; an artefact
// 4 MiB. Anything else, and a query with other parameters, is the error invalid. Answers may gain members.
//
// # The word
//
// A client makes up a word for each request, 1 to 64 letters, digits, '.', '_' and '-', and sends it as Barrier-Request;
// each answer to a request whose credentials are good has it as Barrier-Answer. An answer without its word was not
// made for the request, by a proxy or out of a cache, and says nothing about the call. Answers are no-store
// and have a Content-Length.
//
// # Errors
//
// An error is application/problem+json (RFC 9457): title, status, code, and mostly detail, for people. The codes of
// barrier's errors have these statuses:
//
//	400  invalid
//	404  no_artefact
//	409  open, no_baseline, unknown_rollout, decided, stranger, joined_late, voted, barrier_incomplete,
//	     not_converged, withdrawn, no_window, late, early, lease_held
//	412  roster_changed, stale, fenced, superseded, lease_lost
//
// open has the rollout in the way as rollout, decided has decided: {rollout, state, reason}, lease_held has holder.
// These are the Handler's own, and the call had no effect:
//
//	401  unauthenticated     the credentials are not good: the same for every path, with no word and no detail
//	403  forbidden           the credentials do not allow it
//	404  no_such_path        also where the Handler has no leases or artefacts
//	405  method_not_allowed
//	503  unavailable         too many watches, the Handler is closing, or credentials cannot be checked: Retry-After
//
// 500 is outcome_unknown. That, any other status or body, a broken connection and no answer in time leave open
// whether the call took effect: read the row again before anything else.
//
// # Watching
//
// A watch is answered when the topic, head or votes, may have changed since the answer that gave seen: at once if it has
// already, or when it does; with 204 after 25 s at most if it has not. Without seen it is answered at once. seen is opaque,
// at most 256 bytes, and good at any Handler of the cohort: what happens between two polls is told by the next.
// A Handler holds 4,096 watches and 8 of one principal, unless its host says otherwise; what is more is 503, and
// the client asks again after Retry-After and a random time, which grows to 30 s. A client whose watches fail goes
// on polling the row.
package remote

// Package webhook is the session with HTTP clients and servers: it POSTs messages to a URL, or listens and takes what is POSTed, and serves
// events to those who watch.
//
// # Sending
//
// A message is POSTed to the session's URL with the topic as the path below it. 2xx confirms it. 408, 425, 429 and 5xx, and a connection
// that fails, are tried again, after Retry-After if it is given; every other answer, redirections too, refuses it for good.
// Idempotency-Key is the same at each attempt.
//
// # Taking
//
// POST /TOPIC is answered when every route that takes the topic has settled the message: with 204; 404 when none takes it; 503 with
// Retry-After when it is not settled within answerTimeout, or intake is stopped: who sends sends again.
//
// # Watching
//
// GET /?topic=FILTER (WHATWG HTML §9.2, server-sent events) streams what routes send to a session that listens: one JSON object for
// each message. A message counts as confirmed when it is among the last maxEvents that are kept in memory for those who come back with
// Last-Event-ID. Nobody need be watching: it is for looking on, not a way to deliver.
//
// # Bounds
//
// Bodies: session.MaxMessageBytes. POSTs under way, in and out: maxRequests for a session. Watchers: maxWatchers; one that is maxEvents behind
// is cut off and may come back.
package webhook

import "time"

const (
	maxRequests    = 256
	maxWatchers    = 256
	maxEvents      = 1024
	requestTimeout = 30 * time.Second // for an answer to a POST
	answerTimeout  = 25 * time.Second // for a POST that comes to be settled
	headerTimeout  = 10 * time.Second // for a request's header to come
	retryAfter     = "5"              // seconds
	maxRetryAfter  = time.Minute      // that a server may ask for
)

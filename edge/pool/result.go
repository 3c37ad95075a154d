package pool

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Result is how one request to an origin went.
type Result struct {
	// Status of the final answer, 0 when there was none.
	Status int
	// Err is why there was no answer, or none to its end. Without an error and a status, or with
	// context.Canceled, the client left first: that says nothing of the origin.
	Err error
	// Latency is from the request to the head of the answer, or to the failure.
	Latency time.Duration
}

// Kind sorts results.
type Kind int

// The kinds of results. NoAnswer and TimedOut are failures that eject an origin; of an answer to its end its pool says by the status.
const (
	Answered     Kind = iota // any status but those below
	ServerError              // 5xx but a gateway error
	GatewayError             // 502, 503 or 504
	NoAnswer                 // the connection failed or broke
	TimedOut                 // no answer in time
	Canceled                 // the client left first
	kinds
)

// String is the value of the label result in metrics.
func (k Kind) String() string {
	switch k {
	case Answered:
		return "answered"
	case ServerError:
		return "server_error"
	case GatewayError:
		return "gateway_error"
	case NoAnswer:
		return "no_answer"
	case TimedOut:
		return "timed_out"
	case Canceled:
		return "canceled"
	default:
		return "unknown"
	}
}

// Kind sorts r.
func (r Result) Kind() Kind {
	switch left := r.Err == nil || errors.Is(r.Err, context.Canceled); {
	case !left && timedOut(r.Err):
		return TimedOut
	case !left:
		return NoAnswer
	case r.Status == http.StatusBadGateway || r.Status == http.StatusServiceUnavailable || r.Status == http.StatusGatewayTimeout:
		return GatewayError
	case r.Status >= 500:
		return ServerError
	case r.Status > 0 && r.Err == nil:
		return Answered
	default:
		return Canceled
	}
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// reason tells people why r counts as a failure.
func (r Result) reason() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return "status " + strconv.Itoa(r.Status)
}

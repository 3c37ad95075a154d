package remote

import "time"

// Bounds that tests stay under or go over.
const (
	MaxRequest = maxRequest
	MaxRoster  = maxRoster
	MaxAnswer  = maxAnswer
	MaxRow     = maxRow
	MinGap     = minGap
	MaxBackoff = maxBackoff
)

// Route is one row of the table of calls.
type Route struct{ Method, Path, May string }

// Routes returns the table of calls.
func Routes() []Route {
	var all []Route
	for _, rt := range routes {
		may := ""
		for i, letter := range []string{" m", " c", " o"} {
			if rt.may&(1<<i) != 0 {
				may += letter
			}
		}
		all = append(all, Route{rt.method, rt.path, may[1:]})
	}
	return all
}

// OwnCodes are the codes that are none of barrier's.
var OwnCodes = []string{codeUnauthenticated, codeForbidden, codeNotFound, codeMethod, codeUnavailable, codeOutcome}

// Status returns the status of a code, 0 for none.
func Status(code string) int { return statuses[code] }

// Codes returns how many codes have a status.
func Codes() int { return len(statuses) }

// SetBodyTimeout makes h wait less for bodies. Call it before h is used.
func (h *Handler) SetBodyTimeout(d time.Duration) { h.body = d }

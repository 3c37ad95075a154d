package api

import (
	"net/http"

	"github.com/guardyn-edge/guardyn/control"
)

// condition is what If-Match or If-None-Match (RFC 9110 §13.1) ask of a write.
type condition struct {
	revision int64 // of If-Match; control.Absent for If-None-Match: *; control.Any without a condition
}

func (c condition) given() bool { return c.revision != control.Any }

// never is a revision that no object has: what an entity tag that this API never gave out asks for.
const never = int64(1<<63 - 1)

// checkConditions reads the conditions of a request. One that a route cannot honour is refused, since to pass
// it over would be to write what the client asked not to be written.
func (c *call) checkConditions() error {
	match, noneMatch := c.r.Header["If-Match"], c.r.Header["If-None-Match"]
	if len(match) == 0 && len(noneMatch) == 0 || c.r.Method == http.MethodGet {
		return nil
	}
	switch {
	case !c.route.conditional:
		return badCondition("This path takes neither If-Match nor If-None-Match.")
	case len(match)+len(noneMatch) > 1:
		return badCondition("Send one If-Match or one If-None-Match.")
	case len(noneMatch) == 1:
		if noneMatch[0] != "*" || c.r.Method == http.MethodDelete {
			return badCondition("If-None-Match takes * alone, and not with DELETE.")
		}
		c.condition.revision = control.Absent
	default:
		if match[0] == "*" {
			return badCondition("If-Match takes the ETag of the object, not *.")
		}
		n, ok := parseETag(match[0])
		if !ok {
			n = never
		}
		c.condition.revision = n
	}
	return nil
}

func badCondition(detail string) error {
	return &Error{Type: "about:blank", Status: http.StatusBadRequest, Code: "bad_condition", Detail: detail}
}

package cache

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Conditions are the fields of a request that a stored answer is held against (RFC 9110 §13, §14.2).
type Conditions struct {
	IfNoneMatch, IfModifiedSince, Range, IfRange []string
}

// ConditionsOf takes them from a request's header.
func ConditionsOf(h http.Header) Conditions {
	return Conditions{h["If-None-Match"], h["If-Modified-Since"], h["Range"], h["If-Range"]}
}

// Part is what of a body an answer has: the octets from Start up to, not including, End.
type Part struct{ Start, End int64 }

// Answer decides how o, whose body has size octets or -1 while nobody knows, answers a request: with 304, with 206 and a part of the
// body, with 416, or with its own status and all of it.
func (o *Object) Answer(method string, c *Conditions, size int64) (status int, part Part) {
	part = Part{0, size}
	if o.Status != http.StatusOK {
		return o.Status, part
	}
	if o.notModified(c) {
		return http.StatusNotModified, Part{}
	}
	if method != http.MethodGet || size < 0 || len(c.Range) != 1 || !o.ifRange(c.IfRange) {
		return o.Status, part
	}
	return byteRange(c.Range[0], size)
}

// notModified evaluates If-None-Match and, only without it, If-Modified-Since (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
func (o *Object) notModified(c *Conditions) bool {
	if len(c.IfNoneMatch) > 0 {
		return o.listed(c.IfNoneMatch)
	}
	if len(c.IfModifiedSince) == 0 {
		return false
	}
	since, ok := httpDate(c.IfModifiedSince)
	if !ok || len(c.IfModifiedSince) > 1 {
		return false
	}
	at := o.timing.lastModified
	if at.IsZero() {
		at = o.timing.date
	}
	return !at.After(since)
}

// listed compares weakly (RFC 9110 §8.8.3.2).
func (o *Object) listed(values []string) bool {
	for _, v := range values {
		if strings.Trim(v, " \t") == "*" {
			return true
		}
		for v = strings.TrimLeft(v, " \t,"); v != "" && o.etag != ""; v = strings.TrimLeft(v, " \t,") {
			open := strings.IndexByte(v, '"')
			if open < 0 || open > 2 {
				break
			}
			end := strings.IndexByte(v[open+1:], '"')
			if end < 0 {
				break
			}
			tag := v[:open+1+end+1]
			if weakly(tag) == weakly(o.etag) {
				return true
			}
			v = v[len(tag):]
		}
	}
	return false
}

func weakly(etag string) string { return strings.TrimPrefix(etag, "W/") }

func isWeak(etag string) bool { return strings.HasPrefix(etag, "W/") }

// ifRange compares strongly (RFC 9110 §13.1.5); true without the field. A date is strong when the answer was made a second after it
// at least (RFC 9110 §8.8.2.2).
func (o *Object) ifRange(values []string) bool {
	switch {
	case len(values) == 0:
		return true
	case len(values) > 1:
		return false
	}
	v := values[0]
	if strings.HasPrefix(v, `"`) || isWeak(v) {
		return v == o.etag && !isWeak(v)
	}
	at, err := http.ParseTime(v)
	return err == nil && at.Equal(o.timing.lastModified) && o.timing.date.Sub(at) >= time.Second
}

// byteRange reads Range (RFC 9110 §14.2). A malformed one, another unit and several ranges are answered with the whole.
func byteRange(value string, size int64) (status int, part Part) {
	whole := Part{0, size}
	unit, set, found := strings.Cut(value, "=")
	if !found || !strings.EqualFold(strings.Trim(unit, " \t"), "bytes") || strings.Contains(set, ",") {
		return http.StatusOK, whole
	}
	from, to, found := strings.Cut(strings.Trim(set, " \t"), "-")
	if !found {
		return http.StatusOK, whole
	}
	if from == "" {
		n, ok := position(to)
		switch {
		case !ok:
			return http.StatusOK, whole
		case n == 0 || size == 0:
			return http.StatusRequestedRangeNotSatisfiable, Part{}
		}
		return http.StatusPartialContent, Part{max(0, size-n), size}
	}
	start, ok := position(from)
	end := size
	if ok && to != "" {
		var last int64
		if last, ok = position(to); ok && last < start {
			ok = false
		}
		end = min(size, last+1)
	}
	switch {
	case !ok:
		return http.StatusOK, whole
	case start >= size:
		return http.StatusRequestedRangeNotSatisfiable, Part{}
	}
	return http.StatusPartialContent, Part{start, end}
}

// position reads digits; what has more than an int64 takes is as far as there is.
func position(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if n = n*10 + int64(s[i]-'0'); n > 1<<55 {
			n = 1 << 55
		}
	}
	return n, true
}

// ContentRange is the field's value in an answer of 206 or 416.
func ContentRange(status int, part Part, size int64) string {
	if status == http.StatusRequestedRangeNotSatisfiable {
		return "bytes */" + strconv.FormatInt(size, 10)
	}
	return "bytes " + strconv.FormatInt(part.Start, 10) + "-" + strconv.FormatInt(part.End-1, 10) + "/" + strconv.FormatInt(size, 10)
}

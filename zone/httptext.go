package zone

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// checkFieldValue judges a header field's value (RFC 9110 §5.5).
func checkFieldValue(s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("it has %d bytes, the most is %d", len(s), most)
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("at character %d: a control character, which a header cannot hold", i+1)
		}
	}
	return nil
}

const maxTarget = 8192

// checkTarget judges a path, which may have a query when query is true, as it stands in a request line.
func checkTarget(s string, query bool) error {
	if !strings.HasPrefix(s, "/") {
		return fmt.Errorf("%s does not begin with /", quote(s))
	}
	if err := checkURLText(s); err != nil {
		return err
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 && (s[i] == '#' || !query) {
		return fmt.Errorf("at character %d: %q must be written as %%%X", i+1, s[i], s[i])
	}
	if _, err := url.ParseRequestURI(s); err != nil {
		return fmt.Errorf("%s has a bad percent-encoding", quote(s))
	}
	return nil
}

// checkURLText judges that s can stand in a header or request line.
func checkURLText(s string) error {
	if len(s) > maxTarget {
		return fmt.Errorf("it has %d bytes, the most is %d", len(s), maxTarget)
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return fmt.Errorf("at character %d: percent-encode what is not printable ASCII (RFC 3986 §2.1)", i+1)
		}
	}
	return nil
}

// checkLocation judges where a redirect leads: an http or https URL, or an absolute path.
func checkLocation(s string) error {
	if err := checkURLText(s); err != nil {
		return err
	}
	if strings.HasPrefix(s, "//") || strings.HasPrefix(s, `/\`) {
		return errors.New("it begins with two slashes, which browsers read as another host: write the scheme too")
	}
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("%s is not a URL", quote(s))
	}
	if strings.HasPrefix(s, "/") {
		return nil
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%s: write an http or https URL, or a path that begins with /", quote(s))
	}
	return nil
}

// reservedFields are header fields that frame messages or that the node sets itself.
const reservedFields = " connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer" +
	" transfer-encoding upgrade http2-settings content-length host proxy cdn-loop "

// parseFieldName folds the name of a header field that a rule sets or removes.
func parseFieldName(s string, set bool) (string, error) {
	if !isToken(s) || len(s) > 256 {
		return "", fmt.Errorf("%s is not the name of a header (RFC 9110 §5.1)", quote(s))
	}
	n := strings.ToLower(s)
	switch {
	case strings.Contains(reservedFields, " "+n+" "):
		return "", fmt.Errorf("%s belongs to the connection or to routing; no rule changes it", n)
	case strings.HasPrefix(n, "x-guardyn-"):
		return "", fmt.Errorf("%s: names that begin with x-guardyn- are the node's own", n)
	case set && (n == "forwarded" || n == "x-forwarded" || n == "x-real-ip" || strings.HasPrefix(n, "x-forwarded-")):
		return "", fmt.Errorf("%s is set by the node itself", n)
	}
	return n, nil
}

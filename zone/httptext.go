package zone

import (
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/fieldname"
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
	refused := "?#"
	if query {
		refused = "#"
	}
	if i := strings.IndexAny(s, refused); i >= 0 {
		return fmt.Errorf("at character %d: %q must be written as %%%X", i+1, s[i], s[i])
	}
	if _, err := url.ParseRequestURI(s); err != nil {
		return fmt.Errorf("%s has a bad percent-encoding", quote(s))
	}
	return nil
}

// checkPath judges a path that requests are rewritten to: one that a request may have.
func checkPath(s string) error {
	if err := checkTarget(s, false); err != nil {
		return err
	}
	if _, err := NormalizePath(s); err != nil {
		return fmt.Errorf("%s holds %%00, or a dot segment with parameters (..;), as no request may", quote(s))
	}
	return nil
}

// checkQuery judges a query that requests are rewritten to: one that a request may have.
func checkQuery(s string) error {
	if err := checkURLText(s); err != nil {
		return err
	}
	if strings.IndexByte(s, '#') >= 0 {
		return errors.New("# must be written as %23")
	}
	if _, err := NormalizeQuery(s); err != nil {
		return fmt.Errorf("%s has a %% that two hexadecimal digits do not follow (write %%25 for a %%), or %%00", quote(s))
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
	if _, err := NormalizeHost(u.Host); err != nil {
		return fmt.Errorf("%s: %s is not a host, or its port is over 65535", quote(s), quote(u.Host))
	}
	return nil
}

// parseFieldName folds the name of a header field that a rule sets or removes in requests, or in answers.
func parseFieldName(s string, answers bool) (string, error) {
	if !isToken(s) || len(s) > 256 {
		return "", fmt.Errorf("%s is not the name of a header (RFC 9110 §5.1)", quote(s))
	}
	n := strings.ToLower(s)
	canonical := textproto.CanonicalMIMEHeaderKey(n)
	switch settable := fieldname.SettableInRequest(canonical); {
	case fieldname.Node(n):
		return "", fmt.Errorf("%s: names that begin with %s are the node's own", n, fieldname.NodePrefix)
	case !fieldname.SettableInAnswer(canonical):
		return "", fmt.Errorf("%s belongs to the connection or to routing; no rule changes it", n)
	case answers || settable:
		return n, nil
	}
	if read := strings.ToLower(fieldname.Read(canonical)); read != n {
		return "", fmt.Errorf("%s: servers that turn names into variables read it as %s, which is not for rules to change", n, read)
	}
	return "", fmt.Errorf("%s is set by the node itself", n)
}

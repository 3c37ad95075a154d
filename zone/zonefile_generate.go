package zone

import (
	"fmt"
	"strconv"
	"strings"
)

// generate expands $GENERATE range owner [TTL] [class] type RDATA, as BIND does: in every word $ is the
// number, ${offset,width,base} the number shifted and printed in base d, o, x, X, n or N, and \$ or $$ a
// dollar. It stops at the first number whose record is bad.
func (f *fileReader) generate(e entry) {
	if len(e.words) < 4 {
		f.report(e.line, 0, "$GENERATE takes a range, an owner, a type and its content")
		return
	}
	start, stop, step, err := parseRange(e.words[1].text)
	if err != nil {
		f.report(e.words[1].line, e.words[1].column, "%s", err)
		return
	}
	// In 64 bits this cannot overflow: the numbers have 31.
	if count := (stop-start)/step + 1; count > int64(MaxGenerated-f.generated) {
		f.report(e.words[1].line, e.words[1].column, "the range makes %d records; the $GENERATE lines of a file may make %d together", count, MaxGenerated)
		return
	}
	for i := start; i <= stop; i += step {
		f.generated++
		one := entry{line: e.line, comment: e.comment, words: make([]word, 0, len(e.words)-2)}
		for _, w := range e.words[2:] {
			text, err := expandNumber(w.text, i)
			if err != nil {
				f.report(w.line, w.column, "%s", err)
				return
			}
			w.text = text
			one.words = append(one.words, w)
		}
		told := len(f.errs) + f.more
		f.record(one)
		if f.full || len(f.errs)+f.more > told {
			return
		}
	}
}

// parseRange reads start-stop or start-stop/step.
func parseRange(s string) (start, stop, step int64, err error) {
	span, stepText, stepped := strings.Cut(s, "/")
	from, to, ok := strings.Cut(span, "-")
	if !stepped {
		stepText = "1"
	}
	var errs [3]error
	for i, p := range []struct {
		text string
		to   *int64
	}{{from, &start}, {to, &stop}, {stepText, &step}} {
		*p.to, errs[i] = strconv.ParseInt(p.text, 10, 32)
	}
	if !ok || errs != [3]error{} || start < 0 || stop < start || step < 1 {
		return 0, 0, 0, fmt.Errorf("range %s: write start-stop or start-stop/step, from 0 to %d", quote(s), int32(1<<31-1))
	}
	return start, stop, step, nil
}

// expandNumber puts n where s says.
func expandNumber(s string, n int64) (string, error) {
	if strings.IndexByte(s, '$') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if s[i+1] != '$' {
				b.WriteByte(s[i])
			}
			b.WriteByte(s[i+1])
			i++
		case s[i] != '$':
			b.WriteByte(s[i])
		case strings.HasPrefix(s[i:], "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(s[i:], "${"):
			inside, _, closed := strings.Cut(s[i+2:], "}")
			if !closed {
				return "", fmt.Errorf("%s: the brace is not closed", quote(s))
			}
			text, err := formatNumber(inside, n)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			i += len(inside) + 2
		default:
			b.WriteString(strconv.FormatInt(n, 10))
		}
	}
	return b.String(), nil
}

// maxWidth bounds the width of a number; a label has no more octets.
const maxWidth = maxLabel

// formatNumber prints n by the offset, width and base of spec.
func formatNumber(spec string, n int64) (string, error) {
	bad := fmt.Errorf("${%s}: write ${offset,width,base} with base d, o, x, X, n or N, and width at most %d", spec, maxWidth)
	parts := strings.Split(spec, ",")
	offset, err := strconv.ParseInt(parts[0], 10, 32)
	if err != nil || len(parts) > 3 {
		return "", bad
	}
	width, base := uint64(0), "d"
	if len(parts) > 1 {
		if width, err = strconv.ParseUint(parts[1], 10, 8); err != nil || width > maxWidth {
			return "", bad
		}
	}
	if len(parts) > 2 {
		base = parts[2]
	}
	n += offset
	if n < 0 {
		return "", fmt.Errorf("${%s}: the number is negative", spec)
	}
	switch base {
	case "d", "o", "x", "X":
		verb := map[string]string{"d": "%0*d", "o": "%0*o", "x": "%0*x", "X": "%0*X"}[base]
		return fmt.Sprintf(verb, int(width), n), nil
	case "n", "N":
		// Nibbles, least first, dots between, as in ip6.arpa; width counts digits and dots.
		digits := strconv.FormatInt(n, 16)
		if base == "N" {
			digits = strings.ToUpper(digits)
		}
		var b strings.Builder
		for i := len(digits) - 1; i >= 0 || b.Len() < int(width); i-- {
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			if i < 0 {
				b.WriteByte('0')
				continue
			}
			b.WriteByte(digits[i])
		}
		return b.String(), nil
	}
	return "", bad
}

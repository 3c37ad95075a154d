package cli

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// live reports whether r can change what a terminal shows beside the character itself: C0 and C1
// controls, and the invisible characters that reorder or hide text.
func live(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// inert returns s with every character that could act on a terminal, and every byte that is not UTF-8,
// printed as an escape.
func inert(s string) string {
	return escape(s, func(r rune) bool { return live(r) })
}

// inertLines is inert for text of several lines: line feeds stay.
func inertLines(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && live(r) })
}

func escape(s string, bad func(rune) bool) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, bad) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !bad(r):
			b.WriteString(s[i : i+size])
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// printf prints to standard output; every string among args is made inert.
func (a *app) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = inert(s)
		}
	}
	fmt.Fprintf(a.Stdout, format, args...)
}

// notef is printf to standard error: words beside the result.
func (a *app) notef(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = inert(s)
		}
	}
	fmt.Fprintf(a.Stderr, format, args...)
}

// printJSON prints v indented, with what JSON leaves unescaped of live characters escaped too.
func (a *app) printJSON(v any) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err = a.Stdout.Write(append(escapeJSON(text), '\n'))
	return err
}

// printJSONLine prints v on one line.
func (a *app) printJSONLine(v any) {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		_, _ = a.Stdout.Write(append(escapeJSON(text), '\n'))
	}
}

// escapeJSON writes live characters of JSON text, which can stand in its strings alone, as \u escapes.
func escapeJSON(text []byte) []byte {
	special := func(r rune) bool { return r >= 0x7f && live(r) }
	if bytes.IndexFunc(text, special) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch high, low := utf16.EncodeRune(r); {
		case !special(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.Bytes()
}

// table prints rows in columns under a head.
type table struct {
	head []string
	rows [][]string
}

func (t *table) row(cells ...string) {
	t.rows = append(t.rows, cells)
}

// printTable prints t, or with --json the value that it was made of.
func (a *app) printTable(t *table, value any) error {
	if a.json {
		return a.printJSON(value)
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{t.head}, t.rows...) {
		for i, cell := range cells {
			cell = inert(cell)
			if cell == "" {
				cell = "-"
			}
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// moment prints a time for a table, "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// colours reports whether output to standard output may carry colours.
func (a *app) colours() bool {
	return a.StdoutIsTerminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

// paintPlan colours a plan's lines by their mark when colours are on.
func (a *app) paintPlan(text string) string {
	if !a.colours() {
		return text
	}
	const green, yellow, red, plain = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		body := strings.TrimSuffix(line, "\n")
		colour := ""
		switch trimmed := strings.TrimLeft(body, " "); {
		case strings.HasPrefix(trimmed, "! "), strings.HasPrefix(trimmed, "- "):
			colour = red
		case strings.HasPrefix(trimmed, "+ "):
			colour = green
		case strings.HasPrefix(trimmed, "~ "):
			colour = yellow
		}
		if colour != "" {
			lines[i] = colour + body + plain + line[len(body):]
		}
	}
	return strings.Join(lines, "")
}

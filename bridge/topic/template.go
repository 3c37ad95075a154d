package topic

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Template is text with {1}, {2}, … for what a filter's wildcards stood for and {topic} for the topic that came. "{{" and "}}" are
// the braces themselves. The zero Template is the empty text. It is immutable.
type Template struct {
	text  string
	parts []part
}

// part is literal text, or a capture.
type part struct {
	literal string
	capture int // 1 and up; 0: literal; wholeTopic: the topic
}

const wholeTopic = -1

// ParseTemplate reads a template that may name captures of 1 to captures.
func ParseTemplate(text string, captures int) (Template, error) {
	if len(text) > MaxBytes {
		return Template{}, fmt.Errorf("it has %d bytes, more than %d", len(text), MaxBytes)
	}
	t := Template{text: text}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			literal.WriteByte(c)
			i += 2
		case c == '}':
			return Template{}, errors.New(`a "}" without its "{"; a brace itself is written twice`)
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return Template{}, errors.New(`a "{" without its "}"; a brace itself is written twice`)
			}
			n, err := captureOf(text[i+1:i+end], captures)
			if err != nil {
				return Template{}, err
			}
			flush()
			t.parts = append(t.parts, part{capture: n})
			i += end + 1
		default:
			literal.WriteByte(c)
			i++
		}
	}
	flush()
	return t, nil
}

func captureOf(name string, captures int) (int, error) {
	if name == "topic" {
		return wholeTopic, nil
	}
	n, err := strconv.Atoi(name)
	switch {
	case err != nil || n < 1 || strconv.Itoa(n) != name:
		return 0, fmt.Errorf("{%s} is neither {topic} nor the number of a wildcard, as {1}", name)
	case n > captures && captures == 0:
		return 0, fmt.Errorf("{%d}: the filter that messages come by has no wildcard", n)
	case n > captures:
		return 0, fmt.Errorf("{%d}: the filter that messages come by has %d wildcards", n, captures)
	}
	return n, nil
}

// String returns the template as it was written.
func (t Template) String() string { return t.text }

// IsZero tells whether t is empty text.
func (t Template) IsZero() bool { return t.text == "" }

// Text expands t as plain text; captured levels are joined as they came.
func (t Template) Text(from Style, topic string, captures [][]string) string {
	return t.expand(topic, captures, from.Separator)
}

// Topic expands t to a topic of the target's style: captured levels are joined by its separator. The error says why what
// comes out is none, for example because a level has the target's separator in it.
func (t Template) Topic(from, to Style, topic string, captures [][]string) (string, error) {
	if from != to {
		for _, p := range t.parts {
			if err := p.crosses(from, to, topic, captures); err != nil {
				return "", err
			}
		}
		topic = strings.ReplaceAll(topic, from.Separator, to.Separator)
	}
	out := t.expand(topic, captures, to.Separator)
	if err := CheckTopic(to, out); err != nil {
		return "", fmt.Errorf("topic %q: %w", out, err)
	}
	if strings.HasPrefix(out, "$") && t.begins(captures) > 0 {
		return "", fmt.Errorf("topic %q: what begins with \"$\" is the broker's own, and a wildcard does not lead there: write it into the topic if it is meant", out)
	}
	return out, nil
}

// begins is the capture that what t expands to begins with, as part has it: the one of the first part that is not empty.
func (t Template) begins(captures [][]string) int {
	for _, p := range t.parts {
		if p.capture <= 0 || p.capture <= len(captures) && strings.Join(captures[p.capture-1], "") != "" {
			return p.capture
		}
	}
	return 0
}

// crosses says why what a part stands for cannot be written in another style: a level would become several.
func (p part) crosses(from, to Style, topic string, captures [][]string) error {
	var levels []string
	switch {
	case p.capture == wholeTopic:
		levels = strings.Split(topic, from.Separator)
	case p.capture > 0 && p.capture <= len(captures):
		levels = captures[p.capture-1]
	}
	for _, level := range levels {
		if strings.Contains(level, to.Separator) {
			return fmt.Errorf("the level %q would be several where %q separates them", level, to.Separator)
		}
	}
	return nil
}

func (t Template) expand(topic string, captures [][]string, separator string) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.capture == 0:
			b.WriteString(p.literal)
		case p.capture == wholeTopic:
			b.WriteString(topic)
		case p.capture <= len(captures):
			b.WriteString(strings.Join(captures[p.capture-1], separator))
		}
	}
	return b.String()
}

// Check says what is wrong with every topic of the style that t could make, as wildcards in its own text.
func (t Template) Check(to Style) error {
	captures := make([][]string, MaxLevels)
	for i := range captures {
		captures[i] = []string{"x"}
	}
	return CheckTopic(to, t.expand("x", captures, to.Separator))
}

package topic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filter says which topics are taken. The zero Filter matches nothing; make one with ParseFilter. It is immutable.
type Filter struct {
	style  Style
	text   string
	levels []string
}

// ParseFilter reads a filter in its style. A shared subscription's group is not part of it.
func ParseFilter(s Style, text string) (Filter, error) {
	levels, err := split(s, text)
	if err != nil {
		return Filter{}, err
	}
	for i, l := range levels {
		switch {
		case l == s.Rest && i < len(levels)-1:
			return Filter{}, fmt.Errorf("%q stands for all that follows, so it must be the last level", s.Rest)
		case l == s.One, l == s.Rest:
		case strings.Contains(l, s.One), strings.Contains(l, s.Rest):
			return Filter{}, fmt.Errorf("level %q: a wildcard stands for a whole level", l)
		}
	}
	if s == MQTT && levels[0] == "$share" {
		return Filter{}, errors.New(`name the group of a shared subscription in "share", and only the filter here`)
	}
	return Filter{style: s, text: text, levels: levels}, nil
}

// CheckTopic says what is wrong with a topic, which has no wildcards.
func CheckTopic(s Style, text string) error {
	levels, err := split(s, text)
	if err != nil {
		return err
	}
	for _, l := range levels {
		if strings.Contains(l, s.One) || strings.Contains(l, s.Rest) {
			return fmt.Errorf("level %q: a topic that is sent to has no wildcards", l)
		}
	}
	if s == NATS && slices.Contains(commands, levels[0]) {
		return fmt.Errorf("%s is the server's own: what is sent there is a command", levels[0])
	}
	return nil
}

// commands begin the subjects by which NATS servers, JetStream and those who wait for an answer are spoken to. No stream has them.
var commands = []string{"$JS", "$SYS", "_INBOX"}

func split(s Style, text string) ([]string, error) {
	switch {
	case text == "":
		return nil, errors.New("it is empty")
	case len(text) > MaxBytes:
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), MaxBytes)
	case !utf8.ValidString(text):
		return nil, errors.New("it is not UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return nil, errors.New("it has control characters")
	}
	levels := strings.Split(text, s.Separator)
	switch {
	case len(levels) > MaxLevels:
		return nil, fmt.Errorf("it has %d levels, more than %d", len(levels), MaxLevels)
	case !s.EmptyLevels && slices.Contains(levels, ""):
		return nil, fmt.Errorf("it has an empty level; levels are separated by one %q", s.Separator)
	case !s.EmptyLevels && strings.Contains(text, " "):
		return nil, errors.New("it has a space")
	}
	return levels, nil
}

// String returns the filter as it was written.
func (f Filter) String() string { return f.text }

// Style returns what it is written in.
func (f Filter) Style() Style { return f.style }

// Captures is how many wildcards it has: a template may name {1} to {Captures()}.
func (f Filter) Captures() int {
	n := 0
	for _, l := range f.levels {
		if l == f.style.One || l == f.style.Rest {
			n++
		}
	}
	return n
}

// Match tells whether the topic is taken, and what each wildcard stood for: one level, or for the last one any number of them.
func (f Filter) Match(text string) (captures [][]string, ok bool) {
	if len(f.levels) == 0 || text == "" {
		return nil, false
	}
	s := f.style
	wild := f.levels[0] == s.One || f.levels[0] == s.Rest
	if wild && s.Hidden != "" && strings.HasPrefix(text, s.Hidden) {
		return nil, false
	}
	have := strings.Split(text, s.Separator)
	for i, l := range f.levels {
		switch {
		case l == s.Rest:
			if len(have) < i || len(have) == i && !s.RestMayBeEmpty {
				return nil, false
			}
			return append(captures, have[i:]), true
		case i >= len(have):
			return nil, false
		case l == s.One:
			captures = append(captures, have[i:i+1])
		case l != have[i]:
			return nil, false
		}
	}
	return captures, len(have) == len(f.levels)
}

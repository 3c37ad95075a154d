// Package topic is the language of topics in routes: filters with wildcards and what they capture, templates that say where a message
// goes, and whether a route could feed itself.
//
// MQTT and HTTP topics have levels that '/' separates; in filters '+' stands for one level and '#', at the end, for any number
// of them (MQTT 5.0 §4.7). NATS subjects have tokens that '.' separates, with '*' and '>' for one and for one or more. A
// filter captures what each wildcard stood for, numbered from 1; a template names it as {1}, and the whole topic as {topic}.
package topic

// Style is how topics of a kind of session are written.
type Style struct {
	Separator string // between levels
	One       string // stands for exactly one level
	Rest      string // stands for all that follows; only at the end
	// RestMayBeEmpty: Rest also stands for no level at all, so that "a/#" matches "a".
	RestMayBeEmpty bool
	// Hidden: what begins with it is not matched by a wildcard in the first level (MQTT 5.0 §4.7.2); empty: nothing is hidden.
	Hidden string
	// EmptyLevels: two separators in a row are a topic too.
	EmptyLevels bool
}

// The styles. HTTP paths are written as MQTT topics, without the leading slash.
var (
	MQTT = Style{Separator: "/", One: "+", Rest: "#", RestMayBeEmpty: true, Hidden: "$", EmptyLevels: true}
	NATS = Style{Separator: ".", One: "*", Rest: ">"}
)

// MaxBytes bounds a topic, a filter and a template (MQTT 5.0 §1.5.4).
const MaxBytes = 65535

// MaxLevels bounds the levels of each.
const MaxLevels = 128

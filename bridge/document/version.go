package document

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/internal/strictyaml"
)

// VersionOf returns the version that a document's text names, 0 when it names none. The error says why the text is no mapping with a
// version; whether it is valid beyond that is not asked.
func VersionOf(data []byte) (uint64, error) {
	d := read(data)
	v, wrong := versionIn(d)
	if wrong != nil {
		return 0, &Error{[]Problem{*wrong}}
	}
	if p := d.Problems(); len(p) > 0 {
		return 0, &Error{[]Problem{{p[0].Line, p[0].Message}}}
	}
	if _, ok := d.Begin(); !ok {
		return 0, &Error{[]Problem{{1, "the file must hold members, as NAME: VALUE"}}}
	}
	return v, nil
}

// versionIn reads the version where it is written, before the rest is looked at: it is a whole number in plain decimal digits, as JSON has
// them, so that no reader takes 010 for 8, and none is given one that it cannot hold.
func versionIn(d *strictyaml.Document) (uint64, *Problem) {
	if !d.Has("/version") {
		return 0, nil
	}
	what := "it is not a plain number"
	if _, _, text, ok := d.Scalar("version"); ok {
		v, err := strconv.ParseUint(text, 10, 64)
		switch {
		case text == "":
			what = "there is no value here"
		case err == nil && v <= MaxVersion && strconv.FormatUint(v, 10) == text:
			return v, nil
		default:
			what = fmt.Sprintf("%.80q is none", text)
		}
	}
	return 0, &Problem{d.Line("/version"), fmt.Sprintf("version: %s: write a whole number from 0 to %d, in digits alone, or leave it out", what, int64(MaxVersion))}
}

// WithVersion returns the text with its version changed to v, or with one put before the first member; everything else, comments
// too, stays as it was. The error is VersionOf's, or that the text would be longer than MaxBytes.
func WithVersion(data []byte, v uint64) ([]byte, error) {
	out, err := withVersion(data, v)
	if err == nil && len(out) > MaxBytes {
		return nil, fmt.Errorf("the document has %d bytes, more than %d", len(out), MaxBytes)
	}
	return out, err
}

func withVersion(data []byte, v uint64) ([]byte, error) {
	if _, err := VersionOf(data); err != nil {
		return nil, err
	}
	d := read(data)
	number := strconv.FormatUint(v, 10)
	if line, column, old, ok := d.Scalar("version"); ok {
		at := offset(data, line, column)
		if !bytes.HasPrefix(data[at:], []byte(old)) {
			return nil, fmt.Errorf("the version on line %d is not where it seems to be", line)
		}
		return splice(data, at, len(old), number), nil
	}
	at, _ := d.Begin()
	if at.Flow {
		after := offset(data, at.Line, at.Column) + 1
		return splice(data, after, 0, `"version": `+number+map[bool]string{true: ", "}[at.Members > 0]), nil
	}
	begin := offset(data, at.Line, 0)
	indent := string(data[begin:offset(data, at.Line, at.Column)])
	return splice(data, begin, 0, indent+"version: "+number+"\n"), nil
}

// offset is where a character of a line is; lines are from 1, characters from 0.
func offset(data []byte, line, character int) int {
	at := 0
	for ; line > 1; line-- {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	if at == 0 && bytes.HasPrefix(data, []byte("\uFEFF")) {
		at = len("\uFEFF")
	}
	for ; character > 0 && at < len(data); character-- {
		_, size := utf8.DecodeRune(data[at:])
		at += size
	}
	return at
}

func splice(data []byte, at, size int, text string) []byte {
	out := append([]byte{}, data[:at]...)
	return append(append(out, text...), data[at+size:]...)
}

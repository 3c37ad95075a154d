package rrset

import "bytes"

// MaxName is the length in octets of the longest name in wire format (RFC 1035 §2.3.4).
const MaxName = 255

// maxLabel is the length of the longest label.
const maxLabel = 63

// AppendWire appends the wire format of a name to dst: text without the trailing dot and without escapes,
// its case kept. ok is false, with dst unchanged, for a name that is empty or too long, and for a label that
// is.
func AppendWire(dst []byte, text string) (wire []byte, ok bool) {
	if text == "" || len(text) > MaxName-2 {
		return dst, false
	}
	start := len(dst)
	head := start
	dst = append(dst, 0)
	for i := range len(text) {
		c := text[i]
		if c != '.' {
			dst = append(dst, c)
			continue
		}
		n := len(dst) - head - 1
		if n == 0 || n > maxLabel {
			return dst[:start], false
		}
		dst[head] = byte(n)
		head = len(dst)
		dst = append(dst, 0)
	}
	n := len(dst) - head - 1
	if n == 0 || n > maxLabel {
		return dst[:start], false
	}
	dst[head] = byte(n)
	return append(dst, 0), true
}

// appendKey appends the key that orders names as a tree: the labels of rel (wire format, without the root)
// from the last to the first, each followed by a zero octet. A name's key is a prefix of the keys of the names
// below it, and those follow it without a gap. Zero octets inside a label become ones: names of zones
// hold neither, so such a name equals none of them, and no name below it.
func appendKey(dst, rel []byte) []byte {
	var heads [MaxName/2 + 1]uint8
	n := 0
	for i := 0; i < len(rel); i += 1 + int(rel[i]) {
		heads[n] = uint8(i)
		n++
	}
	for n--; n >= 0; n-- {
		label := rel[heads[n]+1:][:rel[heads[n]]]
		at := len(dst)
		dst = append(dst, label...)
		if bytes.IndexByte(label, 0) >= 0 {
			for i := at; i < len(dst); i++ {
				dst[i] = max(dst[i], 1)
			}
		}
		dst = append(dst, 0)
	}
	return dst
}

// appendTextKey is appendKey for text that AppendWire takes.
func appendTextKey(dst []byte, text string) []byte {
	for end := len(text); end > 0; {
		i := end - 1
		for i >= 0 && text[i] != '.' {
			i--
		}
		dst = append(append(dst, text[i+1:end]...), 0)
		end = i
	}
	return dst
}

// isWildcardKey reports whether the first label of the key's name is "*".
func isWildcardKey(key []byte) bool {
	n := len(key)
	return n >= 2 && key[n-2] == '*' && (n == 2 || key[n-3] == 0)
}

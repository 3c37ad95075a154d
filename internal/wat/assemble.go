// Package wat assembles the part of WebAssembly's text format that the tests of this module write their modules in.
package wat

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Assemble returns the binary of a module in text: types by their use alone, and instructions in a row, not in each other.
//
//	(module
//	  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
//	  (memory 1 2) (table 4 funcref) (elem (i32.const 0) $main)
//	  (global $count (mut i32) (i32.const 0))
//	  (data (i32.const 8) "text\0a\00")
//	  (func $main (export "_start") (local $i i32)
//	    block $out
//	      local.get $i br_if $out
//	    end))
func Assemble(text string) (_ []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(badText)
			if !ok {
				panic(r)
			}
			err = bad.error
		}
	}()
	tokens := scan(text)
	root, rest := parse(tokens)
	if len(rest) > 0 || root.head() != "module" {
		fail("the text is not one module")
	}
	a := assembler{functions: map[string]int{}, globals: map[string]int{}}
	return a.module(root.list[1:]), nil
}

// badText is what goes up the stack when the text is wrong.
type badText struct{ error }

func fail(format string, args ...any) { panic(badText{fmt.Errorf("assemble: "+format, args...)}) }

// node is an atom, a string or a list.
type node struct {
	atom string
	text []byte // of a string, not nil
	list []node
}

func (n node) head() string {
	if len(n.list) == 0 {
		return ""
	}
	return n.list[0].atom
}

func (n node) number() int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.atom, "_", ""), 0, 64)
	if err != nil {
		u, err := strconv.ParseUint(strings.ReplaceAll(n.atom, "_", ""), 0, 64)
		if err != nil {
			fail("%q is not a number", n.atom)
		}
		v = int64(u)
	}
	return v
}

func scan(text string) (tokens []string) {
	for len(text) > 0 {
		switch c := text[0]; {
		case strings.HasPrefix(text, ";;"):
			_, text, _ = strings.Cut(text, "\n")
		case c == ' ' || c == '\n' || c == '\t':
			text = text[1:]
		case c == '(' || c == ')':
			tokens, text = append(tokens, text[:1]), text[1:]
		case c == '"':
			end := 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(text) {
				fail("a string does not end")
			}
			tokens, text = append(tokens, text[:end+1]), text[end+1:]
		default:
			end := strings.IndexAny(text, " \n\t()\";")
			if end < 0 {
				end = len(text)
			}
			tokens, text = append(tokens, text[:end]), text[end:]
		}
	}
	return tokens
}

func parse(tokens []string) (node, []string) {
	if len(tokens) == 0 {
		fail("the text ends too early")
	}
	t := tokens[0]
	tokens = tokens[1:]
	switch {
	case t == ")":
		fail("a ) has no (")
	case t[0] == '"':
		return node{text: unquote(t[1 : len(t)-1])}, tokens
	case t != "(":
		return node{atom: t}, tokens
	}
	var n node
	for len(tokens) > 0 && tokens[0] != ")" {
		var child node
		child, tokens = parse(tokens)
		n.list = append(n.list, child)
	}
	if len(tokens) == 0 {
		fail("a ( has no )")
	}
	return n, tokens[1:]
}

func unquote(s string) []byte {
	out := []byte{}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		switch i++; s[i] {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case '"', '\\':
			out = append(out, s[i])
		default:
			v, err := strconv.ParseUint(s[i:i+2], 16, 8)
			if err != nil {
				fail("the escape \\%s is not known", s[i:i+2])
			}
			out = append(out, byte(v))
			i++
		}
	}
	return out
}

func leb(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func float32Bytes(s string) []byte {
	v, err := strconv.ParseFloat(s, 32)
	if err != nil {
		fail("%q is not a number", s)
	}
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
}

func float64Bytes(s string) []byte {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		fail("%q is not a number", s)
	}
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
}

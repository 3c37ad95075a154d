package wat

import (
	"encoding/hex"
	"slices"
	"strings"
)

// code is a function's while it is assembled.
type code struct {
	*assembler
	out    []byte
	locals []string // parameters first
	labels []string // innermost last
}

func (a *assembler) body(f function) []byte {
	c := code{assembler: a, locals: append(slices.Clone(f.params), f.locals...)}
	c.out = leb(nil, uint64(len(f.kinds)))
	for _, k := range f.kinds {
		c.out = append(c.out, 1, k)
	}
	c.instructions(f.node)
	c.out = append(c.out, 0x0b)
	return append(leb(nil, uint64(len(c.out))), c.out...)
}

// instructions assembles a row of them.
func (c *code) instructions(row []node) {
	next := func() node {
		if len(row) == 0 {
			fail("an operand is missing")
		}
		n := row[0]
		row = row[1:]
		return n
	}
	number := func() { c.out = leb(c.out, uint64(next().number())) }
	for len(row) > 0 {
		name := next().atom
		op, ok := opcodes[name]
		if !ok {
			fail("an instruction %q", name)
		}
		raw, err := hex.DecodeString(op[:strings.IndexByte(op+" ", ' ')])
		if err != nil {
			fail("%v", err)
		}
		c.out = append(c.out, raw...)
		_, operands, _ := strings.Cut(op, " ")
		switch operands {
		case "":
		case "block":
			label := ""
			if len(row) > 0 && strings.HasPrefix(row[0].atom, "$") {
				label = next().atom
			}
			c.labels = append(c.labels, label)
			c.blockType(&row)
		case "end":
			c.labels = c.labels[:len(c.labels)-1]
		case "label":
			c.out = leb(c.out, c.label(next()))
		case "labels":
			var labels []uint64
			for len(row) > 0 && (strings.HasPrefix(row[0].atom, "$") || row[0].atom != "" && '0' <= row[0].atom[0] && row[0].atom[0] <= '9') {
				labels = append(labels, c.label(next()))
			}
			c.out = leb(c.out, uint64(len(labels)-1))
			for _, l := range labels {
				c.out = leb(c.out, l)
			}
		case "func":
			c.out = leb(c.out, uint64(reference(next(), c.functions)))
		case "type": // of call_indirect: its signature
			var params, results []byte
			for len(row) > 0 && row[0].list != nil {
				for _, n := range row[0].list[1:] {
					if row[0].head() == "param" {
						params = append(params, valueType(n.atom))
					} else {
						results = append(results, valueType(n.atom))
					}
				}
				row = row[1:]
			}
			c.out = append(leb(c.out, uint64(c.typeOf(params, results))), 0)
		case "local":
			n := next()
			i := slices.Index(c.locals, n.atom)
			if i < 0 {
				i = int(n.number())
			}
			c.out = leb(c.out, uint64(i))
		case "global":
			c.out = leb(c.out, uint64(reference(next(), c.globals)))
		case "memory":
			offset := uint64(0)
			if len(row) > 0 && strings.HasPrefix(row[0].atom, "offset=") {
				offset = uint64(node{atom: strings.TrimPrefix(next().atom, "offset=")}.number())
			}
			c.out = leb(append(c.out, 0), offset)
		case "i32":
			c.out = sleb(c.out, int64(int32(next().number())))
		case "i64":
			c.out = sleb(c.out, next().number())
		case "f32":
			c.out = append(c.out, float32Bytes(next().atom)...)
		case "f64":
			c.out = append(c.out, float64Bytes(next().atom)...)
		case "number":
			number()
		case "segment":
			number()
			c.out = append(c.out, 0)
		case "reftype":
			c.out = append(c.out, valueType(next().atom))
		}
	}
}

func (c *code) blockType(row *[]node) {
	var params, results []byte
	for len(*row) > 0 && (*row)[0].list != nil {
		for _, n := range (*row)[0].list[1:] {
			if (*row)[0].head() == "param" {
				params = append(params, valueType(n.atom))
			} else {
				results = append(results, valueType(n.atom))
			}
		}
		*row = (*row)[1:]
	}
	switch {
	case len(params) == 0 && len(results) == 0:
		c.out = append(c.out, 0x40)
	case len(params) == 0 && len(results) == 1:
		c.out = append(c.out, results[0])
	default:
		c.out = sleb(c.out, int64(c.typeOf(params, results)))
	}
}

func (c *code) label(n node) uint64 {
	if !strings.HasPrefix(n.atom, "$") {
		return uint64(n.number())
	}
	for i := len(c.labels) - 1; i >= 0; i-- {
		if c.labels[i] == n.atom {
			return uint64(len(c.labels) - 1 - i)
		}
	}
	fail("no block is named %s", n.atom)
	return 0
}

// opcodes holds the code of each instruction, and what operands follow it.
var opcodes = map[string]string{
	"unreachable": "00", "nop": "01", "block": "02 block", "loop": "03 block", "if": "04 block", "else": "05", "end": "0b end",
	"br": "0c label", "br_if": "0d label", "br_table": "0e labels", "return": "0f", "call": "10 func", "call_indirect": "11 type",
	"drop": "1a", "select": "1b",
	"local.get": "20 local", "local.set": "21 local", "local.tee": "22 local", "global.get": "23 global", "global.set": "24 global",
	"table.get": "25 number", "table.set": "26 number",
	"i32.load": "28 memory", "i64.load": "29 memory", "f64.load": "2b memory", "i32.load8_u": "2d memory", "i32.load16_u": "2f memory",
	"i32.store": "36 memory", "i64.store": "37 memory", "f64.store": "39 memory", "i32.store8": "3a memory", "i32.store16": "3b memory",
	"memory.size": "3f00", "memory.grow": "4000",
	"i32.const": "41 i32", "i64.const": "42 i64", "f32.const": "43 f32", "f64.const": "44 f64",
	"i32.eqz": "45", "i32.eq": "46", "i32.ne": "47", "i32.lt_s": "48", "i32.lt_u": "49", "i32.gt_s": "4a", "i32.gt_u": "4b",
	"i32.le_s": "4c", "i32.le_u": "4d", "i32.ge_s": "4e", "i32.ge_u": "4f",
	"i64.eqz": "50", "i64.eq": "51", "i64.ne": "52", "i64.lt_s": "53", "i64.lt_u": "54", "i64.gt_u": "56",
	"i32.add": "6a", "i32.sub": "6b", "i32.mul": "6c", "i32.div_s": "6d", "i32.div_u": "6e", "i32.rem_u": "70", "i32.and": "71",
	"i32.or": "72", "i32.xor": "73", "i32.shl": "74", "i32.shr_u": "76",
	"i64.add": "7c", "i64.sub": "7d", "i64.mul": "7e", "i64.div_u": "80", "i64.rem_u": "82", "i64.and": "83", "i64.or": "84",
	"i64.xor": "85", "i64.shl": "86", "i64.shr_u": "88",
	"f64.add": "a0", "f64.mul": "a2", "f64.sqrt": "9f",
	"i32.wrap_i64": "a7", "i64.extend_i32_u": "ad", "f64.convert_i32_u": "b8", "i32.extend8_s": "c0",
	"ref.null": "d0 reftype", "ref.is_null": "d1", "ref.func": "d2 func",
	"i32.trunc_sat_f64_u": "fc03", "memory.init": "fc08 segment", "data.drop": "fc09 number", "memory.copy": "fc0a0000", "memory.fill": "fc0b00",
	"table.grow": "fc0f number", "table.copy": "fc0e00 number", "table.size": "fc10 number", "table.fill": "fc11 number",
	"i8x16.splat": "fd0f", "i32x4.extract_lane": "fd1b number", "i32x4.add": "fdae01",
}

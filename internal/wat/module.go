package wat

import "slices"

// assembler is what is known of a module.
type assembler struct {
	types     []string // encoded
	functions map[string]int
	globals   map[string]int
	count     int // functions
}

// function is one that the module defines.
type function struct {
	node   []node
	params []string // names, empty for none
	locals []string
	kinds  []byte // of the locals
	kind   int    // type
}

func (a *assembler) module(fields []node) []byte {
	var imports, functions, tables, memories, globals, exports, start, elements, code, data [][]byte
	var defined []function
	// Names first: code may use what comes later.
	for _, f := range fields {
		switch f.head() {
		case "import":
			d := f.list[3]
			if d.head() != "func" {
				fail("an import of %s", d.head())
			}
			rest := a.named(d.list[1:], a.functions, a.count)
			fn := a.signature(rest)
			entry := append(leb(nil, uint64(len(f.list[1].text))), f.list[1].text...)
			entry = append(leb(entry, uint64(len(f.list[2].text))), f.list[2].text...)
			imports = append(imports, leb(append(entry, 0), uint64(fn.kind)))
			a.count++
		case "func":
			rest := a.named(f.list[1:], a.functions, a.count)
			for len(rest) > 0 && rest[0].head() == "export" {
				exports = append(exports, export(rest[0].list[1].text, 0, a.count))
				rest = rest[1:]
			}
			fn := a.signature(rest)
			defined = append(defined, fn)
			functions = append(functions, leb(nil, uint64(fn.kind)))
			a.count++
		case "global":
			a.named(f.list[1:], a.globals, len(globals))
			globals = append(globals, nil)
		}
	}
	globals = globals[:0]
	for _, f := range fields {
		rest := f.list[1:]
		switch f.head() {
		case "import", "func":
		case "memory":
			memories = append(memories, limits(rest))
		case "table":
			tables = append(tables, append([]byte{valueType(rest[len(rest)-1].atom)}, limits(rest[:len(rest)-1])...))
		case "global":
			if rest[0].atom != "" && rest[0].atom[0] == '$' {
				rest = rest[1:]
			}
			kind := []byte{0, 0}
			if rest[0].head() == "mut" {
				kind[0], kind[1] = valueType(rest[0].list[1].atom), 1
			} else {
				kind[0] = valueType(rest[0].atom)
			}
			globals = append(globals, append(kind, a.constant(rest[1])...))
		case "export":
			kind, of := byte(0), a.functions
			if rest[1].head() == "memory" {
				kind, of = 2, nil
			}
			exports = append(exports, export(rest[0].text, kind, reference(rest[1].list[1], of)))
		case "start":
			start = [][]byte{leb(nil, uint64(reference(rest[0], a.functions)))}
		case "elem":
			entry := append([]byte{0}, a.constant(rest[0])...)
			entry = leb(entry, uint64(len(rest)-1))
			for _, n := range rest[1:] {
				entry = leb(entry, uint64(reference(n, a.functions)))
			}
			elements = append(elements, entry)
		case "data":
			entry := []byte{1}
			if rest[0].list != nil {
				entry = append([]byte{0}, a.constant(rest[0])...)
				rest = rest[1:]
			}
			var text []byte
			for _, n := range rest {
				text = append(text, n.text...)
			}
			data = append(data, append(leb(entry, uint64(len(text))), text...))
		default:
			fail("a field %q", f.head())
		}
	}
	for _, fn := range defined {
		code = append(code, a.body(fn))
	}
	types := make([][]byte, len(a.types))
	for i, t := range a.types {
		types[i] = []byte(t)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id      byte
		entries [][]byte
	}{
		{1, types},
		{2, imports},
		{3, functions},
		{4, tables},
		{5, memories},
		{6, globals},
		{7, exports},
		{8, start},
		{9, elements},
		{12, nil},
		{10, code},
		{11, data},
	} {
		if s.id == 12 && len(data) > 0 { // instructions may name segments
			n := leb(nil, uint64(len(data)))
			out = append(leb(append(out, 12), uint64(len(n))), n...)
		}
		if len(s.entries) == 0 {
			continue
		}
		var content []byte
		if s.id != 8 {
			content = leb(nil, uint64(len(s.entries)))
		}
		for _, e := range s.entries {
			content = append(content, e...)
		}
		out = append(leb(append(out, s.id), uint64(len(content))), content...)
	}
	return out
}

// named notes the name that a field may begin with, and returns the rest.
func (a *assembler) named(rest []node, names map[string]int, index int) []node {
	if len(rest) > 0 && rest[0].atom != "" && rest[0].atom[0] == '$' {
		names[rest[0].atom] = index
		return rest[1:]
	}
	return rest
}

// signature reads parameters, results and locals, and leaves the code.
func (a *assembler) signature(rest []node) (f function) {
	var params, results []byte
	for len(rest) > 0 && rest[0].list != nil {
		for i, n := range rest[0].list[1:] {
			named := n.atom[0] == '$'
			switch rest[0].head() {
			case "param":
				if named {
					f.params = append(f.params, n.atom)
					continue
				}
				if i == 0 || rest[0].list[1].atom[0] != '$' {
					f.params = append(f.params, "")
				}
				params = append(params, valueType(n.atom))
			case "result":
				results = append(results, valueType(n.atom))
			case "local":
				if named {
					f.locals = append(f.locals, n.atom)
					continue
				}
				if i == 0 || rest[0].list[1].atom[0] != '$' {
					f.locals = append(f.locals, "")
				}
				f.kinds = append(f.kinds, valueType(n.atom))
			default:
				fail("a (%s in a function: instructions stand in a row", rest[0].head())
			}
		}
		rest = rest[1:]
	}
	f.node = rest
	f.kind = a.typeOf(params, results)
	return f
}

func (a *assembler) typeOf(params, results []byte) int {
	t := append(leb([]byte{0x60}, uint64(len(params))), params...)
	t = append(leb(t, uint64(len(results))), results...)
	if i := slices.Index(a.types, string(t)); i >= 0 {
		return i
	}
	a.types = append(a.types, string(t))
	return len(a.types) - 1
}

func valueType(s string) byte {
	t, ok := map[string]byte{"i32": 0x7f, "i64": 0x7e, "f32": 0x7d, "f64": 0x7c, "v128": 0x7b, "funcref": 0x70, "externref": 0x6f}[s]
	if !ok {
		fail("a type %q", s)
	}
	return t
}

func limits(rest []node) []byte {
	if len(rest) == 1 {
		return leb([]byte{0}, uint64(rest[0].number()))
	}
	return leb(leb([]byte{1}, uint64(rest[0].number())), uint64(rest[1].number()))
}

func export(name []byte, kind byte, index int) []byte {
	return leb(append(append(leb(nil, uint64(len(name))), name...), kind), uint64(index))
}

func reference(n node, names map[string]int) int {
	if n.atom != "" && n.atom[0] == '$' {
		i, ok := names[n.atom]
		if !ok {
			fail("nothing is named %s", n.atom)
		}
		return i
	}
	return int(n.number())
}

func (a *assembler) constant(n node) []byte {
	c := code{assembler: a}
	c.instructions(n.list)
	return append(c.out, 0x0b)
}

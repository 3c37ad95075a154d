package metering

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Sections of the binary format.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sections
)

// order is that in which sections stand.
var order = [...]int{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal, sectionExport, sectionStart,
	sectionElement, sectionDataCount, sectionCode, sectionData,
}

var header = []byte("\x00asm\x01\x00\x00\x00")

// signature is a function's type.
type signature struct{ params, results []byte }

// module is one that is read and rewritten.
type module struct {
	section [sections][]byte
	present [sections]bool
	names   []byte // the name section's content, without its own name

	pages   uint32 // bound of memory
	types   []signature
	added   []signature // types that the rewritten code needs
	imports uint32      // functions
	defined []uint32    // type of each function that is not imported
	data    []uint32    // length of each data segment
	named   bool        // code names data segments

	fuel, stack uint32 // globals that are added
	yield       uint32 // index of the import that is added, after the others
	yieldType   uint32
	bulkType    uint32
}

// function is the index in the rewritten module of a function of the module.
func (m *module) function(index uint32) uint32 {
	if index >= m.imports {
		return index + 1
	}
	return index
}

// helper is the index of the function that takes the place of an instruction.
func (m *module) helper(sub uint32) uint32 {
	at := m.imports + 1 + uint32(len(m.defined))
	if sub == miscMemoryCopy {
		at++
	}
	return at
}

// Rewrite returns the module as the package comment says, for a host that gives it at most so many bytes of memory. The error says what keeps nodes from
// running it, in words for its author. The module need not have been validated: what comes of one that is invalid is invalid or an
// error.
func Rewrite(binary []byte, memory int64) ([]byte, error) {
	m := &module{pages: uint32(min(max(memory/PageSize, 1), 1<<16))}
	if err := m.split(binary); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(binary)+len(binary)/2+1024)
	out = append(out, header...)
	steps := [sections]func(*reader) ([]byte, error){
		sectionType: m.rewriteTypes, sectionImport: m.rewriteImports, sectionFunction: m.rewriteFunctions, sectionTable: m.rewriteTables,
		sectionMemory: m.rewriteMemory, sectionGlobal: m.rewriteGlobals, sectionExport: m.rewriteExports, sectionStart: m.rewriteStart,
		sectionElement: m.rewriteElements, sectionCode: m.rewriteCode, sectionData: m.rewriteData,
	}
	if err := m.readData(); err != nil {
		return nil, err
	}
	// Types are written last, since code may need more of them, and stand first; the count of data segments stands before code.
	done := [sections][]byte{}
	for _, id := range order {
		content := m.section[id]
		if step := steps[id]; step != nil && (m.present[id] || id == sectionImport || id == sectionGlobal) {
			r := &reader{b: content}
			if !m.present[id] {
				r.b = []byte{0}
			}
			var err error
			if content, err = step(r); err == nil {
				err = r.err
			}
			if err != nil {
				return nil, err
			}
			if !r.done() {
				return nil, fmt.Errorf("its section %d goes on after its end", id)
			}
			m.present[id] = true
		}
		done[id] = content
	}
	done[sectionType] = m.appendTypes()
	if m.present[sectionDataCount] {
		done[sectionDataCount] = m.section[sectionDataCount]
	}
	for _, id := range order {
		if m.present[id] {
			out = append(out, byte(id))
			out = appendU32(out, uint32(len(done[id])))
			out = append(out, done[id]...)
		}
	}
	return m.appendNames(out), nil
}

// split finds the sections.
func (m *module) split(binary []byte) error {
	if !bytes.HasPrefix(binary, header) {
		return errors.New("it is not a WebAssembly module of version 1")
	}
	r := reader{b: binary, at: len(header)}
	for !r.done() {
		id := r.byte()
		content := r.take(r.u32())
		if r.err != nil {
			return r.err
		}
		if id == sectionCustom {
			c := reader{b: content}
			if c.name() == "name" && c.err == nil {
				m.names = content[c.at:]
			}
			continue
		}
		if id >= sections {
			return fmt.Errorf("it has a section %d, which nodes do not know (WebAssembly 2.0)", id)
		}
		if m.present[id] {
			return fmt.Errorf("it has section %d twice", id)
		}
		m.section[id], m.present[id] = content, true
	}
	if !m.present[sectionType] || !m.present[sectionFunction] || !m.present[sectionCode] {
		return errors.New("it has no function, and so exports no _start")
	}
	if !m.present[sectionExport] {
		return errStart
	}
	return r.err
}

var errStart = errors.New("it exports no function _start without parameters and results")

func (m *module) rewriteTypes(r *reader) ([]byte, error) {
	for range r.count("types", MaxTypes) {
		if form := r.byte(); form != 0x60 && r.err == nil {
			return nil, errors.New("it has a type that is not of a function, which nodes do not know (WebAssembly 2.0)")
		}
		var s signature
		s.params = r.take(r.count("parameters of one function", 1000))
		s.results = r.take(r.count("results of one function", 1000))
		m.types = append(m.types, s)
	}
	m.yieldType = m.typeOf(signature{[]byte{i32}, []byte{i32}})
	m.bulkType = m.typeOf(signature{[]byte{i32, i32, i32}, nil})
	return nil, nil
}

// typeOf returns the index of a type, adding it when the module has none.
func (m *module) typeOf(s signature) uint32 {
	for i, t := range m.types {
		if bytes.Equal(t.params, s.params) && bytes.Equal(t.results, s.results) {
			return uint32(i)
		}
	}
	m.types = append(m.types, s)
	m.added = append(m.added, s)
	return uint32(len(m.types) - 1)
}

func (m *module) appendTypes() []byte {
	out := appendU32(nil, uint32(len(m.types)))
	for _, t := range m.types {
		out = append(out, 0x60)
		out = append(appendU32(out, uint32(len(t.params))), t.params...)
		out = append(appendU32(out, uint32(len(t.results))), t.results...)
	}
	return out
}

func (m *module) rewriteImports(r *reader) ([]byte, error) {
	n := r.count("imports", 1000)
	begin := r.at
	for range n {
		from, name := r.name(), r.name()
		kind := r.byte()
		if r.err != nil {
			return nil, r.err
		}
		params, errno, known := WASIParameters(name)
		if from != WASI || kind != 0 || !known {
			return nil, fmt.Errorf("it imports %s from %s, which nodes do not have", strconv.Quote(name), strconv.Quote(from))
		}
		t := r.u32()
		if r.err != nil || int(t) >= len(m.types) {
			return nil, errors.Join(r.err, errors.New("an import has a type that does not exist"))
		}
		results := 0
		if errno {
			results = 1
		}
		if s := m.types[t]; !bytes.Equal(s.params, params) || len(s.results) != results || errno && s.results[0] != i32 {
			return nil, fmt.Errorf("it imports %s with another type than WASI preview 1 gives it", strconv.Quote(name))
		}
		m.imports++
	}
	m.yield = m.imports
	out := append(appendU32(nil, n+1), r.b[begin:r.at]...)
	out = appendName(appendName(out, Module), Yield)
	return appendU32(append(out, 0), m.yieldType), r.err
}

func (m *module) rewriteFunctions(r *reader) ([]byte, error) {
	n := r.count("functions", MaxFunctions)
	out := appendU32(nil, n+2)
	for range n {
		t := r.u32()
		if int(t) >= len(m.types) {
			return nil, errors.Join(r.err, errors.New("a function has a type that does not exist"))
		}
		m.defined = append(m.defined, t)
		out = appendU32(out, t)
	}
	return appendU32(appendU32(out, m.bulkType), m.bulkType), r.err
}

func (m *module) rewriteExports(r *reader) ([]byte, error) {
	n := r.count("exports", 100_000)
	out := appendU32(nil, n)
	start := false
	for range n {
		name, kind, index := r.name(), r.byte(), r.u32()
		if kind == 0 {
			if name == "_start" {
				at := int(index) - int(m.imports)
				start = 0 <= at && at < len(m.defined) && len(m.types[m.defined[at]].params)+len(m.types[m.defined[at]].results) == 0
			}
			index = m.function(index)
		}
		out = appendU32(append(appendName(out, name), kind), index)
	}
	if !start && r.err == nil {
		return nil, errStart
	}
	return out, r.err
}

func (m *module) rewriteStart(r *reader) ([]byte, error) {
	return appendU32(nil, m.function(r.u32())), r.err
}

func (m *module) rewriteCode(r *reader) ([]byte, error) {
	n := r.count("function bodies", MaxFunctions)
	if int(n) != len(m.defined) {
		return nil, errors.Join(r.err, errors.New("it has not one body for each function"))
	}
	out := appendU32(make([]byte, 0, len(r.b)+len(r.b)/2), n+2)
	var scratch []byte
	for i := range n {
		t := m.types[m.defined[i]]
		b := body{m: m, params: len(t.params)}
		var err error
		if scratch, err = b.read(r, t, scratch[:0]); err != nil {
			return nil, fmt.Errorf("function %d: %w", m.imports+i, err)
		}
		out = append(appendU32(out, uint32(len(scratch))), scratch...)
	}
	for _, sub := range []uint32{miscMemoryFill, miscMemoryCopy} {
		code := []byte{0, opUnreachable, opEnd} // never called
		if m.present[sectionMemory] {
			code = m.bulkBody(sub)
		}
		out = append(appendU32(out, uint32(len(code))), code...)
	}
	return out, r.err
}

// read reads one entry of the code section and appends it to out, rewritten.
func (b *body) read(r *reader, t signature, out []byte) ([]byte, error) {
	entry := reader{b: r.take(r.u32())}
	groups := entry.count("groups of locals", MaxLocals)
	begin := entry.at
	for range groups {
		n := entry.u32()
		if entry.byte(); uint64(b.locals)+uint64(n) > MaxLocals {
			return nil, fmt.Errorf("it has more than %d locals", MaxLocals)
		}
		b.locals += n
	}
	if r.err != nil || entry.err != nil {
		return nil, errors.Join(r.err, entry.err)
	}
	out = append(appendU32(out, groups+1), entry.b[begin:entry.at]...)
	out = append(out, 1, i32)
	b.code = entry.b[entry.at:]
	switch len(t.results) {
	case 0:
		b.result = []byte{void}
	case 1:
		b.result = t.results
	default:
		b.result = appendI32(nil, int32(b.m.typeOf(signature{nil, t.results})))
	}
	if err := b.scan(); err != nil {
		return nil, err
	}
	return b.rewrite(out)
}

// appendNames appends the names of functions, for traces of traps.
func (m *module) appendNames(out []byte) []byte {
	r := reader{b: m.names}
	for !r.done() {
		id := r.byte()
		content := r.take(r.u32())
		if id != 1 || r.err != nil {
			continue
		}
		names := reader{b: content}
		n := names.count("names", 1<<20)
		section := appendName(nil, "name")
		var list []byte
		list = appendU32(list, n)
		for range n {
			list = appendU32(list, m.function(names.u32()))
			list = appendName(list, names.name())
		}
		if names.err != nil || !names.done() {
			return out // they are for people alone
		}
		section = append(appendU32(append(section, 1), uint32(len(list))), list...)
		return append(appendU32(append(out, sectionCustom), uint32(len(section))), section...)
	}
	return out
}

// Memory returns how many bytes of memory a rewritten module begins with and how many it may ask for, both 0 without memory.
func Memory(rewritten []byte) (least, most int64, err error) {
	var m module
	if err := m.split(rewritten); err != nil || !m.present[sectionMemory] {
		return 0, 0, err
	}
	r := reader{b: m.section[sectionMemory]}
	if r.u32() == 0 {
		return 0, 0, r.err
	}
	from, to, _, err := limits(&r)
	return int64(from) * PageSize, int64(min(to, 1<<16)) * PageSize, err
}

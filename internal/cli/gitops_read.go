package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/internal/strictyaml"
	"github.com/guardyn-edge/guardyn/zone"
)

// Bounds of a directory of zone files: maxZoneYAML of one file in bytes, maxZoneFiles of how many.
const (
	maxZoneYAML  = 64 << 20
	maxZoneFiles = 100_000
)

// fileProblem is what is wrong in one of the files.
type fileProblem struct {
	file string
	strictyaml.Problem
}

// directory reads the zone files of a directory and gathers everything that is wrong with any of them.
type directory struct {
	root     *os.Root
	path     string
	zones    []*zoneState
	files    map[zone.Name]string // by the zone they hold
	problems []fileProblem
}

// readDirectory reads every *.yaml and *.yml of a directory, one zone each. The error lists all that is wrong
// in all files.
func readDirectory(path string) ([]*zoneState, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	d := &directory{root: root, path: path, files: map[zone.Name]string{}}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	found := 0
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); ext != ".yaml" && ext != ".yml" || entry.IsDir() {
			continue
		}
		if found++; found > maxZoneFiles {
			return nil, fmt.Errorf("%s: more than %d files", path, maxZoneFiles)
		}
		d.file(entry.Name())
	}
	if found == 0 {
		return nil, hint(fmt.Errorf("%s holds no zone files (*.yaml)", path), "gdn export -o %s writes them", path)
	}
	if len(d.problems) == 0 {
		return d.zones, nil
	}
	slices.SortStableFunc(d.problems, func(a, b fileProblem) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line))
	})
	lines := make([]string, len(d.problems))
	for i, p := range d.problems {
		lines[i] = p.In(filepath.Join(path, p.file))
	}
	return nil, &lineErrors{
		summary: count(len(lines), "problem") + " in the files; nothing was changed",
		lines:   lines, hint: "correct them and sync again",
	}
}

// file reads one file.
func (d *directory) file(name string) {
	f, err := d.root.Open(name)
	if err != nil {
		d.problem(name, strictyaml.Problem{Message: err.Error()})
		return
	}
	defer f.Close()
	data, err := readAtMost(f, maxZoneYAML)
	if err != nil {
		d.problem(name, strictyaml.Problem{Message: err.Error()})
		return
	}
	y := strictyaml.Read(data)
	if len(y.Problems()) > 0 {
		for _, p := range y.Problems() {
			d.problem(name, p)
		}
		return
	}
	r := &zoneReader{d: d, file: name, y: y}
	state, ok := r.zone(y.Text())
	if !ok {
		return
	}
	if other, twice := d.files[state.name]; twice {
		r.problem("/zone", "zone %s stands in %s already", state.name, other)
		return
	}
	d.files[state.name] = name
	d.zones = append(d.zones, state)
}

func (d *directory) problem(file string, p strictyaml.Problem) {
	d.problems = append(d.problems, fileProblem{file, p})
}

// zoneReader reads one file, part by part, so that every part's mistakes are told.
type zoneReader struct {
	d     *directory
	file  string
	y     *strictyaml.Document
	state *zoneState
	seen  map[recordKey]int // the line of each record
}

// recordKey is what makes two records the same one.
type recordKey struct {
	name    zone.Name
	rrtype  zone.RRType
	content string
}

func keyOf(r zone.Record) recordKey { return recordKey{r.Name, r.Type, r.Content} }

func (r *zoneReader) problem(at jsontext.Pointer, format string, args ...any) {
	r.d.problem(r.file, strictyaml.Problem{Line: r.y.Line(at), Message: fmt.Sprintf(format, args...)})
}

// zone reads the document. It returns false when it cannot say of which zone it is.
func (r *zoneReader) zone(text jsontext.Value) (*zoneState, bool) {
	members, ok := r.mapping("", text)
	if !ok {
		return nil, false
	}
	kinds := map[string]objectKind{}
	for _, k := range objectKinds() {
		kinds[k.member] = k
	}
	r.state = &zoneState{objects: map[objectKey]object{}}
	r.seen = map[recordKey]int{}
	for _, k := range kinds {
		if k.single {
			r.state.objects[objectKey{k.member, ""}] = object{body: []byte(emptyBody)}
		}
	}
	named := false
	for _, m := range members {
		if m.name == "zone" {
			named = true
			r.name(m)
		}
	}
	if !named {
		r.problem("", "the member zone is missing: it names the zone")
	}
	known := !r.state.name.IsZero()
	for _, m := range members {
		k, isObject := kinds[m.name]
		switch {
		case m.name == "zone":
		case m.name != "records" && !isObject:
			r.problem(m.at, "unknown member %q", m.name)
		case !known: // names and contents are read in the zone
		case m.name == "records":
			r.records(m)
		case k.single:
			r.object(k, "", m)
		default:
			r.objects(k, m)
		}
	}
	sortRecords(r.state.records, r.state.name)
	return r.state, known
}

func (r *zoneReader) name(m member) {
	text, ok := r.text(m.at, m.value)
	if !ok {
		return
	}
	n, err := zone.ParseName(text)
	if err != nil {
		r.problem(m.at, "%s", err)
		return
	}
	r.state.name = n
}

// records reads name → type → records.
func (r *zoneReader) records(m member) {
	byName, _ := r.mapping(m.at, m.value)
	for _, n := range byName {
		byType, _ := r.mapping(n.at, n.value)
		for _, t := range byType {
			items, _ := r.sequence(t.at, t.value)
			for i, item := range items {
				r.record(n.name, t.name, t.at.AppendToken(fmt.Sprint(i)), item)
			}
		}
	}
}

func (r *zoneReader) record(name, rrtype string, at jsontext.Pointer, item jsontext.Value) {
	var in fileRecord
	if item.Kind() == '{' {
		if err := json.Unmarshal(item, &in, json.RejectUnknownMembers(true)); err != nil {
			r.decodeProblem(at, err)
			return
		}
	} else {
		text, ok := r.text(at, item)
		if !ok {
			return
		}
		in.Content = text
	}
	record, err := zone.ParseRecord(r.state.name, name, rrtype, in.Content, in.TTL, in.Proxied)
	if err != nil {
		for _, e := range unjoin(err) {
			r.problem(at, "record %s %s: %s", name, rrtype, e)
		}
		return
	}
	if line, twice := r.seen[keyOf(record)]; twice {
		r.problem(at, "record %s %s: it stands already on line %d", name, rrtype, line)
		return
	}
	r.seen[keyOf(record)] = r.y.Line(at)
	r.state.records = append(r.state.records, record)
}

func (r *zoneReader) objects(k objectKind, m member) {
	named, _ := r.mapping(m.at, m.value)
	for _, one := range named {
		name, err := k.parse(r.state.name, one.name)
		if err != nil {
			r.problem(one.at, "%s %s: %s", k.noun, one.name, err)
			continue
		}
		if _, twice := r.state.objects[objectKey{k.member, name}]; twice {
			r.problem(one.at, "%s %s stands already", k.noun, name)
			continue
		}
		r.object(k, name, one)
	}
}

func (r *zoneReader) object(k objectKind, name string, m member) {
	value := m.value
	if k.member == functionsMember {
		var ok bool
		if value, ok = r.joinModule(m); !ok {
			return
		}
	}
	body, err := k.normal(name, value)
	if err != nil {
		var semantic *json.SemanticError
		if errors.As(err, &semantic) {
			r.decodeProblem(m.at, err)
			return
		}
		for _, e := range unjoin(err) {
			at := m.at
			var placed *placedError
			if errors.As(e, &placed) {
				at += placed.at
			}
			r.problem(at, "%s: %s", strings.TrimSpace(k.noun+" "+name), e)
		}
		return
	}
	if len(body) > k.limit {
		r.problem(m.at, "%s: %d bytes, the most is %d", strings.TrimSpace(k.noun+" "+name), len(body), k.limit)
		return
	}
	r.state.objects[objectKey{k.member, name}] = object{body: body}
}

// joinModule reads the module that a function names by its file.
func (r *zoneReader) joinModule(m member) (jsontext.Value, bool) {
	var f fileFunction
	if err := json.Unmarshal(m.value, &f, json.RejectUnknownMembers(true)); err != nil {
		r.decodeProblem(m.at, err)
		return nil, false
	}
	if f.ModuleFile == "" {
		return m.value, true
	}
	at := m.at.AppendToken("module_file")
	if f.Module != nil {
		r.problem(at, "function %s: give module or module_file, not both", m.name)
		return nil, false
	}
	file, err := r.d.root.Open(filepath.FromSlash(f.ModuleFile))
	if err != nil {
		r.problem(at, "function %s: %s", m.name, err)
		return nil, false
	}
	defer file.Close()
	if f.Module, err = readAtMost(file, int64(zone.MaxModule)); err != nil {
		r.problem(at, "function %s: %s: %s", m.name, f.ModuleFile, err)
		return nil, false
	}
	f.ModuleFile = ""
	body, err := encodeBody(f)
	if err != nil {
		r.problem(m.at, "function %s: %s", m.name, err)
	}
	return body, err == nil
}

// decodeProblem tells at its line why a value was not taken.
func (r *zoneReader) decodeProblem(at jsontext.Pointer, err error) {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		r.problem(at, "%s", err)
		return
	}
	r.problem(at+semantic.JSONPointer, "%s", strictyaml.Explain(semantic))
}

// member is one member of a mapping with its place.
type member struct {
	name  string
	at    jsontext.Pointer
	value jsontext.Value
}

// mapping takes the members of a value apart, in their order.
func (r *zoneReader) mapping(at jsontext.Pointer, v jsontext.Value) ([]member, bool) {
	d := jsontext.NewDecoder(strings.NewReader(string(v)))
	if d.PeekKind() != '{' {
		r.problem(at, "%sa mapping belongs here, as NAME: VALUE", place(at))
		return nil, false
	}
	var out []member
	err := func() error {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return err
			}
			key := name.String()
			value, err := d.ReadValue()
			if err != nil {
				return err
			}
			out = append(out, member{key, at.AppendToken(key), value.Clone()})
		}
		return nil
	}()
	if err != nil {
		r.problem(at, "%s", err)
	}
	return out, err == nil
}

func (r *zoneReader) sequence(at jsontext.Pointer, v jsontext.Value) ([]jsontext.Value, bool) {
	var out []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &out) != nil {
		r.problem(at, "%sa sequence belongs here, each item after a dash", place(at))
		return nil, false
	}
	return out, true
}

func (r *zoneReader) text(at jsontext.Pointer, v jsontext.Value) (string, bool) {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		r.problem(at, "%stext belongs here, not a %s; write it in quotes", place(at), strictyaml.KindName(v.Kind()))
		return "", false
	}
	return s, true
}

// place names a value by its members, for the start of a message.
func place(at jsontext.Pointer) string {
	if at == "" {
		return ""
	}
	return strings.TrimPrefix(strings.ReplaceAll(string(at), "/", "."), ".") + ": "
}

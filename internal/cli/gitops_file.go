package cli

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/zone"
)

// fileRecord is a record below its name and type, when it is more than its content.
type fileRecord struct {
	Content string `json:"content"`
	TTL     uint32 `json:"ttl,omitzero"` // seconds; absent: auto
	Proxied bool   `json:"proxied,omitzero"`
}

// fileFunction is a function in a file: its module is base64, or stands in a file of its own.
type fileFunction struct {
	ModuleFile  string            `json:"module_file,omitempty"` // relative to the directory of the zone's file
	Module      []byte            `json:"module,omitempty"`
	Memory      zone.Size         `json:"memory,omitzero"`
	Timeout     zone.Duration     `json:"timeout,omitzero"`
	Output      zone.Size         `json:"output,omitzero"`
	Environment map[string]string `json:"environment,omitempty"`
}

// modulesDir holds the modules of functions, each named by its BLAKE3-256.
const modulesDir = "modules"

// formatZone prints a zone as the file that a zone is kept in, with the modules that it names by their path.
// The same zone gives the same bytes.
func formatZone(s *zoneState) (text string, modules map[string][]byte, err error) {
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out)
	w := &tokenWriter{e: e}
	w.token(jsontext.BeginObject)
	w.token(jsontext.String("zone"))
	w.token(jsontext.String(s.name.String()))
	if len(s.records) > 0 {
		w.token(jsontext.String("records"))
		w.records(s)
	}
	modules = map[string][]byte{}
	for _, k := range objectKinds() {
		all := s.objectNames(k.member)
		if k.single {
			if o, ok := s.objects[objectKey{k.member, ""}]; ok && string(o.body) != emptyBody {
				w.token(jsontext.String(k.member))
				w.value(o.body)
			}
			continue
		}
		if len(all) == 0 {
			continue
		}
		w.token(jsontext.String(k.member))
		w.token(jsontext.BeginObject)
		for _, name := range all {
			body := s.objects[objectKey{k.member, name}].body
			if k.member == functionsMember {
				if body, err = splitModule(body, modules); err != nil {
					return "", nil, fmt.Errorf("function %s of %s: %w", name, s.name, err)
				}
			}
			w.token(jsontext.String(name))
			w.value(body)
		}
		w.token(jsontext.EndObject)
	}
	w.token(jsontext.EndObject)
	if w.err != nil {
		return "", nil, fmt.Errorf("zone %s: %w", s.name, w.err)
	}
	text, err = formatYAML(out.Bytes())
	return text, modules, err
}

// splitModule replaces a function's module by the path of the file that holds it.
func splitModule(body []byte, modules map[string][]byte) ([]byte, error) {
	var f fileFunction
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, err
	}
	sum := blake3.Sum256(f.Module)
	f.ModuleFile = modulesDir + "/" + hex.EncodeToString(sum[:]) + ".wasm"
	modules[f.ModuleFile], f.Module = f.Module, nil
	return encodeBody(f)
}

// tokenWriter keeps the first error.
type tokenWriter struct {
	e   *jsontext.Encoder
	err error
}

func (w *tokenWriter) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.e.WriteToken(t)
	}
}

func (w *tokenWriter) value(v []byte) {
	if w.err == nil {
		w.err = w.e.WriteValue(v)
	}
}

// records writes name → type → records. A record with automatic TTL that is not proxied is its content alone.
func (w *tokenWriter) records(s *zoneState) {
	w.token(jsontext.BeginObject)
	for group := range groups(s.records, func(r zone.Record) zone.Name { return r.Name }) {
		w.token(jsontext.String(group[0].Name.In(s.name)))
		w.token(jsontext.BeginObject)
		for set := range groups(group, func(r zone.Record) zone.RRType { return r.Type }) {
			w.token(jsontext.String(set[0].Type.String()))
			w.token(jsontext.BeginArray)
			for _, r := range set {
				content := zone.WrittenContent(r.Type, r.Content)
				if r.TTL == 0 && !r.Proxied {
					w.token(jsontext.String(content))
					continue
				}
				text, err := encodeBody(fileRecord{Content: content, TTL: r.TTL, Proxied: r.Proxied})
				if err != nil && w.err == nil {
					w.err = err
				}
				w.value(text)
			}
			w.token(jsontext.EndArray)
		}
		w.token(jsontext.EndObject)
	}
	w.token(jsontext.EndObject)
}

// groups yields the runs of items that have one key.
func groups[T any, K comparable](items []T, key func(T) K) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(items) > 0 {
			k := key(items[0])
			n := slices.IndexFunc(items, func(v T) bool { return key(v) != k })
			if n < 0 {
				n = len(items)
			}
			if !yield(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

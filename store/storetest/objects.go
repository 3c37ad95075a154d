package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/guardyn-edge/guardyn/control"
)

var objectClauses = []clause{
	{name: "an object is read back byte for byte, whatever its kind", run: func(f *fixture) {
		z := f.zone("bytes.example")
		for _, kind := range kinds {
			body := fmt.Sprintf(`{"kind":%q,"text":"<&> é \\u0000 $1 edge.zone"}`, kind)
			revision := f.put(z, kind, "one", body)
			got, err := f.store.Object(f.ctx, f.ws, z.ID, kind, "one")
			f.ok(err)
			f.same(string(kind), got, control.ObjectRow{Kind: kind, Name: "one", Body: []byte(body), Revision: revision})
		}
		large := `"` + strings.Repeat("A", 6<<20) + `"`
		f.put(z, control.KindFunction, "large", large)
		got, err := f.store.Object(f.ctx, f.ws, z.ID, control.KindFunction, "large")
		f.ok(err)
		if !bytes.Equal(got.Body, []byte(large)) {
			f.Errorf("6 MiB came back as %d bytes", len(got.Body))
		}
	}},
	{name: "an absent object is ErrNotFound", run: func(f *fixture) {
		z := f.zone("absent.example")
		f.put(z, control.KindPool, "main", `{}`)
		for _, o := range []control.ObjectRow{{Kind: control.KindPool, Name: "other"}, {Kind: control.KindList, Name: "main"}} {
			_, err := f.store.Object(f.ctx, f.ws, z.ID, o.Kind, o.Name)
			f.fails(err, control.ErrNotFound)
			f.unchanged(z, control.ErrNotFound, func() error {
				return f.store.DeleteObject(f.ctx, f.ws, z.ID, o.Kind, o.Name, 0, f.entry("object.delete"))
			})
			f.unchanged(z, control.ErrNotFound, func() error {
				return f.store.DeleteObject(f.ctx, f.ws, z.ID, o.Kind, o.Name, 2, f.entry("object.delete"))
			})
		}
	}},
	{name: "listing is of one kind and zone, ordered by name", run: func(f *fixture) {
		z, second := f.zone("listed.example"), f.zone("listed2.example")
		for _, name := range []string{"b", "a_b", "a-b", "ab", "a0"} {
			f.put(z, control.KindList, name, `{"kind":"ip"}`)
		}
		f.put(z, control.KindPool, "pool", `{}`)
		f.put(second, control.KindList, "theirs", `{"kind":"ip"}`)
		objects, err := f.store.ListObjects(f.ctx, f.ws, z.ID, control.KindList)
		f.ok(err)
		var names []string
		for _, o := range objects {
			names = append(names, o.Name)
			if o.Kind != control.KindList || string(o.Body) != `{"kind":"ip"}` || o.Revision < 2 {
				f.Errorf("listed %+v", o)
			}
		}
		f.same("names", names, []string{"a-b", "a0", "a_b", "ab", "b"})
	}},
	{name: "revision 0 replaces whatever stands, -1 only creates, another must hold", run: func(f *fixture) {
		z := f.zone("cas.example")
		put := func(ifRevision int64, body string) (int64, error) {
			o := control.ObjectRow{Kind: control.KindPool, Name: "main", Body: []byte(body)}
			return f.store.PutObject(f.ctx, f.ws, z.ID, o, ifRevision, f.entry("object.put"))
		}
		refused := func(want error, ifRevision int64) {
			f.Helper()
			f.unchanged(z, want, func() error { _, err := put(ifRevision, `"refused"`); return err })
		}
		refused(control.ErrConflict, 7) // was there at 7 once, as the caller believes
		first, err := put(-1, `1`)
		f.ok(err)
		refused(control.ErrExists, -1)
		second, err := put(first, `2`)
		f.ok(err)
		refused(control.ErrConflict, first)
		third, err := put(0, `3`)
		f.ok(err)
		if first >= second || second >= third {
			f.Errorf("revisions %d, %d, %d do not rise", first, second, third)
		}
		got, err := f.store.Object(f.ctx, f.ws, z.ID, control.KindPool, "main")
		f.ok(err)
		f.same("object", got, control.ObjectRow{Kind: control.KindPool, Name: "main", Body: []byte(`3`), Revision: third})
	}},
	{name: "deleting at a revision that does not hold is ErrConflict", run: func(f *fixture) {
		z := f.zone("delete.example")
		first := f.put(z, control.KindPool, "main", `1`)
		second := f.put(z, control.KindPool, "main", `2`)
		f.unchanged(z, control.ErrConflict, func() error {
			return f.store.DeleteObject(f.ctx, f.ws, z.ID, control.KindPool, "main", first, f.entry("object.delete"))
		})
		f.ok(f.store.DeleteObject(f.ctx, f.ws, z.ID, control.KindPool, "main", second, f.entry("object.delete")))
		_, err := f.store.Object(f.ctx, f.ws, z.ID, control.KindPool, "main")
		f.fails(err, control.ErrNotFound)
	}},
	{name: "an object that was deleted and made anew has no revision again", run: func(f *fixture) {
		z := f.zone("aba.example")
		first := f.put(z, control.KindPool, "main", `1`)
		f.ok(f.store.DeleteObject(f.ctx, f.ws, z.ID, control.KindPool, "main", 0, f.entry("object.delete")))
		if again := f.put(z, control.KindPool, "main", `1`); again <= first {
			f.Errorf("revision %d after %d", again, first)
		}
	}},
	{name: "of many that create one object at once, one does", run: func(f *fixture) {
		z := f.zone("raced.example")
		errs := atOnce(8, func(i int) error {
			o := control.ObjectRow{Kind: control.KindPool, Name: "main", Body: []byte(fmt.Sprint(i))}
			_, err := f.store.PutObject(f.ctx, f.ws, z.ID, o, -1, f.entry("object.put"))
			return err
		})
		winner := f.winners(errs, control.ErrExists)
		got, err := f.store.Object(f.ctx, f.ws, z.ID, control.KindPool, "main")
		f.ok(err)
		if string(got.Body) != fmt.Sprint(winner) {
			f.Errorf("%d won and %s is stored", winner, got.Body)
		}
	}},
}

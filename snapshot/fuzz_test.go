package snapshot_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// FuzzParse: a document is refused with a code, or it has one printed form whose hash is its own, whatever
// was served before.
func FuzzParse(f *testing.F) {
	vectors := loadVectors(f)
	for _, v := range vectors {
		f.Add([]byte(v.doc))
	}
	prev, err := snapshot.Parse([]byte(vectors[0].doc), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := snapshot.Parse(doc, nil)
		shared, sharedErr := snapshot.Parse(doc, prev)
		if (err == nil) != (sharedErr == nil) {
			t.Fatalf("alone: %v; against another: %v", err, sharedErr)
		}
		if err != nil {
			var d *snapshot.DocumentError
			if !errors.As(err, &d) || err.Error() != sharedErr.Error() {
				t.Fatalf("alone: %v; against another: %v", err, sharedErr)
			}
			return
		}
		out := s.JSON()
		again, err := snapshot.Parse(out, s)
		if err != nil {
			t.Fatalf("what was printed does not parse: %v\n%s", err, out)
		}
		if !bytes.Equal(again.JSON(), out) || !bytes.Equal(shared.JSON(), out) || again.ContentHash() != referenceHash(t, out) {
			t.Fatalf("there is more than one form:\n%s\n%s", out, again.JSON())
		}
		if p := snapshot.Diff(s, again); p.Changes != 0 {
			t.Fatalf("it differs from itself: %s", p.Text(false))
		}
	})
}

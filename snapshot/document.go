package snapshot

import (
	"encoding/hex"
	"io"
	"strconv"
	"time"

	"github.com/zeebo/blake3"
)

// JSON returns the whole document of spec §2, canonical (RFC 8785).
func (s *Snapshot) JSON() []byte {
	b := make(appender, 0, s.Size())
	_, _ = s.WriteTo(&b) // an appender does not fail
	return b
}

// Size is the length in bytes of the document.
func (s *Snapshot) Size() int64 {
	n := len(s.head()) + len(`{}}`)
	for i := range s.content.zones {
		n += s.content.zones[i].keyed()
	}
	return int64(n + max(0, len(s.content.zones)-1))
}

// keyed is the length of the entry's member of the zones object.
func (e *entry) keyed() int { return len(`"":`) + len(e.zone.ID) + e.size }

// WriteTo writes the document to w, in pieces; what it holds in memory does not grow with the snapshot.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	c := counter{w: w}
	if _, err := c.Write(s.head()); err != nil {
		return c.n, err
	}
	if err := s.content.write(&c); err != nil {
		return c.n, err
	}
	_, err := c.Write([]byte{'}'})
	return c.n, err
}

// head is the document up to the value of zones, which is its last member in canonical order.
func (s *Snapshot) head() []byte {
	c := canonical{}
	o := c.open()
	o.member(&c, "content_hash")
	c.string(s.content.hash)
	o.member(&c, "created_at")
	c.string(s.meta.CreatedAt.Format(time.RFC3339Nano))
	o.member(&c, "created_by")
	c.string(s.meta.CreatedBy)
	o.member(&c, "format")
	c.number(Format)
	o.member(&c, "message")
	c.string(s.meta.Message)
	o.member(&c, "parent_version")
	c.b = strconv.AppendUint(c.b, s.meta.ParentVersion, 10)
	o.member(&c, "version")
	c.b = strconv.AppendUint(c.b, s.meta.Version, 10)
	o.member(&c, "zones")
	return c.b
}

// write writes the canonical bytes of the zones object.
func (c *content) write(w io.Writer) error {
	if _, err := w.Write([]byte{'{'}); err != nil {
		return err
	}
	err := ordered(len(c.zones), func(b []byte, i int) []byte {
		b, _ = appendZone(appendKey(b, i, string(c.zones[i].zone.ID)), c.zones[i].zone) // it had canonical bytes when its entry was made
		return b
	}, func(b []byte) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write([]byte{'}'})
	return err
}

// appendKey appends what stands before the value of the i-th member of the zones object.
func appendKey(b []byte, i int, id string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	c := canonical{b: b}
	c.string(id)
	return append(c.b, ':')
}

// setHash sets the hash; the entries are in order.
func (c *content) setHash() {
	h := blake3.New()
	_ = c.write(h) // a hash does not fail
	c.hash = hexSum(h)
}

func hexSum(h *blake3.Hasher) string { return hex.EncodeToString(h.Sum(nil)) }

type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

func (h *Handler) zoneRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/zones", access: forUsers, role: "viewer", query: []string{"limit", "cursor"},
			summary: "List the workspace's zones by name",
		}, func(c *call) (Page[Zone], error) {
			p, err := c.page()
			if err != nil {
				return Page[Zone]{}, err
			}
			l, err := h.svc.ListZones(c.r.Context(), c.principal, p)
			return pageOf(l, zoneOf), err
		}),
		write(route{
			method: http.MethodPost, pattern: "/v1/zones", access: forUsers, role: "editor", status: http.StatusCreated,
			summary: "Create an empty zone",
		}, func(c *call, in NewZone) (Zone, error) {
			z, err := h.svc.CreateZone(c.r.Context(), c.principal, in.Name)
			return zoneOf(z), err
		}),
		read(route{
			pattern: "/v1/zones/{zone}", access: forUsers, role: "viewer", summary: "Return a zone",
		}, func(c *call) (Zone, error) {
			z, err := h.svc.Zone(c.r.Context(), c.principal, c.param("zone"))
			if err == nil {
				c.setRevision(z.Revision)
			}
			return zoneOf(z), err
		}),
		remove(route{
			pattern: "/v1/zones/{zone}", access: forUsers, role: "editor", summary: "Delete a zone and all that is in it",
		}, func(c *call) error {
			return h.svc.DeleteZone(c.r.Context(), c.principal, c.param("zone"))
		}),
		read(route{
			pattern: "/v1/zones/{zone}/records", access: forUsers, role: "viewer",
			query: []string{"name", "type", "limit", "cursor"}, summary: "List a zone's records",
		}, h.listRecords),
		write(route{
			method: http.MethodPost, pattern: "/v1/zones/{zone}/records", access: forUsers, role: "editor",
			status: http.StatusCreated, summary: "Add a record",
		}, func(c *call, in RecordEdit) (Record, error) {
			r, err := h.svc.AddRecord(c.r.Context(), c.principal, c.param("zone"), control.RecordInput(in))
			return recordOf(r), err
		}),
		write(route{
			method: http.MethodPut, pattern: "/v1/zones/{zone}/records/{id}", access: forUsers, role: "editor",
			summary: "Replace a record",
		}, func(c *call, in RecordEdit) (Record, error) {
			r, err := h.svc.UpdateRecord(c.r.Context(), c.principal, c.param("zone"), c.param("id"), control.RecordInput(in))
			return recordOf(r), err
		}),
		remove(route{
			pattern: "/v1/zones/{zone}/records/{id}", access: forUsers, role: "editor", summary: "Delete a record",
		}, func(c *call) error {
			return h.svc.DeleteRecord(c.r.Context(), c.principal, c.param("zone"), c.param("id"))
		}),
		{
			method: http.MethodPost, pattern: "/v1/zones/{zone}/import", access: forUsers, role: "editor",
			query: []string{"replace", "dry_run"}, summary: "Import a zone file (RFC 1035 §5), all or nothing",
			inType: "text/dns", limit: maxImportBody, out: reflect.TypeFor[ImportResult](), status: http.StatusOK, conditional: true,
			serve: h.importZone,
		},
		{
			method: http.MethodGet, pattern: "/v1/zones/{zone}/export", access: forUsers, role: "viewer", slow: true,
			summary: "Export a zone file that import reads back to the same records",
			outType: "text/dns", status: http.StatusOK, serve: h.exportZone,
		},
	}
}

func (h *Handler) listRecords(c *call) (Page[Record], error) {
	p, err := c.page()
	if err != nil {
		return Page[Record]{}, err
	}
	q := control.RecordQuery{Name: c.args["name"], Type: c.args["type"]}
	l, err := h.svc.ListRecords(c.r.Context(), c.principal, c.param("zone"), q, p)
	return pageOf(l, recordOf), err
}

func (h *Handler) importZone(c *call) error {
	replace, err := c.flag("replace")
	if err != nil {
		return err
	}
	dry, err := c.flag("dry_run")
	if err != nil {
		return err
	}
	body, err := c.body(maxImportBody, "text/dns", "text/plain")
	if err != nil {
		return err
	}
	in := &keptError{r: body}
	res, err := h.svc.ImportZoneFile(c.r.Context(), c.principal, c.param("zone"), in, control.ImportOptions{
		Replace: replace, DryRun: dry, IfRevision: c.condition.revision,
	})
	if in.err != nil {
		// However the reader of zone files put it: the body was too long, or did not come whole.
		return bodyError(in.err)
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, ImportResult(res))
}

// keptError keeps the error of a reader, which who reads from it may report in its own words.
type keptError struct {
	r   io.Reader
	err error
}

func (k *keptError) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		k.err = err
	}
	return n, err
}

// exportChunk is how much of an export is held back in bytes, so that a failure in it is still a problem
// document; a file that fits is sent with its length.
const exportChunk = 256 << 10

func (h *Handler) exportZone(c *call) error {
	w := &exportWriter{c: c}
	if err := h.svc.ExportZoneFile(c.r.Context(), c.principal, c.param("zone"), w); err != nil {
		return err
	}
	return w.close()
}

// exportWriter sends text/dns, the first chunk when it is full.
type exportWriter struct {
	c    *call
	held bytes.Buffer
}

func (w *exportWriter) Write(p []byte) (int, error) {
	if w.c.status == 0 && w.held.Len()+len(p) <= exportChunk {
		return w.held.Write(p)
	}
	if w.c.status == 0 {
		hd := w.c.w.Header()
		secure(hd)
		hd.Set("Content-Type", "text/dns")
		w.c.status = http.StatusOK
		w.c.w.WriteHeader(http.StatusOK)
		if _, err := w.send(w.held.Bytes()); err != nil {
			return 0, err
		}
	}
	return w.send(p)
}

// send gives each piece its own time, so that the whole may be of any length.
func (w *exportWriter) send(p []byte) (int, error) {
	_ = http.NewResponseController(w.c.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := w.c.w.Write(p)
	w.c.bytes += int64(n)
	return n, err
}

func (w *exportWriter) close() error {
	if w.c.status == 0 {
		w.c.answer(http.StatusOK, "text/dns", w.held.Bytes())
	}
	return nil
}

func zoneOf(z control.ZoneRow) Zone {
	return Zone{
		ID: string(z.ID), Name: z.Name.String(), Revision: z.Revision, Records: z.Records, CreatedAt: z.CreatedAt.UTC(),
	}
}

func recordOf(r control.RecordRow) Record {
	ttl := r.TTL
	if ttl == 0 {
		ttl = zone.DefaultTTL
	}
	return Record{
		ID: r.ID, Name: r.Name.String(), Type: r.Type.String(), Content: r.Content, TTL: ttl, Proxied: r.Proxied,
	}
}

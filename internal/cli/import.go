package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// maxZoneFile is the largest zone file in bytes that is sent; the API takes no larger one.
const maxZoneFile = 64 << 20

func (a *app) importCommand() *cobra.Command {
	var o api.ImportOptions
	var create bool
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "import NAME FILE",
		Short: "Read a zone file (RFC 1035) into a zone",
		Long: `Read a zone file (RFC 1035) into a zone; FILE - is standard input.

Records that the file has and the zone has not are added; --replace also removes those that only the zone
has. $ORIGIN, $TTL and $GENERATE are read, $INCLUDE is refused. A file with bad lines changes nothing: all of
them are printed as FILE:LINE: message.`,
		Args: args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			file, name, size, err := a.openZoneFile(args[1])
			if err != nil {
				return err
			}
			defer file.Close()
			var source io.Reader = file
			if create {
				missing, err := isMissing(cmd, c, args[0])
				if err != nil {
					return err
				}
				if missing {
					// A file with bad lines must not leave an empty zone behind: it is read here first.
					whole, parsed, err := readWhole(file, name, args[0])
					if err != nil {
						return err
					}
					if o.DryRun {
						return a.printImport(args[0], &api.ImportResult{Added: len(parsed.Records)}, true)
					}
					if _, err := c.CreateZone(cmd.Context(), api.NewZone{Name: args[0]}); err != nil {
						return err
					}
					source = bytes.NewReader(whole)
				}
			}
			progress := a.newProgress(source, name, size)
			result, err := c.ImportZone(cmd.Context(), args[0], progress, o)
			progress.done()
			if err != nil {
				return importError(name, err)
			}
			return a.printImport(args[0], result, o.DryRun)
		},
	})
	flags := cmd.Flags()
	flags.BoolVar(&o.Replace, "replace", false, "remove records that the file does not have")
	flags.BoolVar(&o.DryRun, "dry-run", false, "only tell what would change")
	flags.BoolVar(&create, "create", false, "create the zone when it does not exist")
	return cmd
}

func (a *app) printImport(name string, r *api.ImportResult, dryRun bool) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printf("%s: %d added, %d updated, %d removed, %d unchanged\n", name, r.Added, r.Updated, r.Removed, r.Unchanged)
	if r.Settings {
		a.printf("%s: the SOA's fields change settings; gdn settings show %s\n", name, name)
	}
	if dryRun {
		a.notef("dry run: nothing was changed\n")
	}
	return nil
}

func isMissing(cmd *cobra.Command, c *api.Client, name string) (bool, error) {
	_, err := c.Zone(cmd.Context(), name)
	var problem *api.Error
	if errors.As(err, &problem) && problem.Status == http.StatusNotFound {
		return true, nil
	}
	return false, err
}

// readWhole reads a file of a zone that does not exist yet, and refuses it as the control plane would.
func readWhole(file io.Reader, name, zoneName string) ([]byte, *zone.ZoneFile, error) {
	apex, err := zone.ParseName(zoneName)
	if err != nil {
		return nil, nil, err
	}
	whole, err := io.ReadAll(io.LimitReader(file, maxZoneFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(whole) > maxZoneFile {
		return nil, nil, fmt.Errorf("%s: larger than %d MiB, the most that is read", name, maxZoneFile>>20)
	}
	parsed, err := zone.ReadZoneFile(bytes.NewReader(whole), apex)
	var bad zone.LineErrors
	if errors.As(err, &bad) {
		lines := make([]string, len(bad))
		for i, l := range bad {
			lines[i] = fmt.Sprintf("%s:%d: %s", name, l.Line, l.Message)
		}
		return nil, nil, badLines(name, lines, bad)
	}
	return whole, parsed, err
}

// openZoneFile opens a zone file; "-" is standard input, of unknown size (-1).
func (a *app) openZoneFile(path string) (file io.ReadCloser, name string, size int64, err error) {
	if path == "-" {
		return io.NopCloser(a.Stdin), "standard input", -1, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", 0, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = fmt.Errorf("%s is a directory", path)
	case info.Size() > maxZoneFile:
		err = fmt.Errorf("%s: larger than %d MiB, the most that is read", path, maxZoneFile>>20)
	default:
		if !info.Mode().IsRegular() {
			return f, path, -1, nil
		}
		return f, path, info.Size(), nil
	}
	f.Close()
	return nil, "", 0, err
}

// importError prints problems that have a line as a compiler would.
func importError(name string, err error) error {
	var problem *api.Error
	if !errors.As(err, &problem) {
		return err
	}
	var lines []string
	for _, p := range problem.Errors {
		if p.Line == 0 {
			return err
		}
		lines = append(lines, fmt.Sprintf("%s:%d: %s", name, p.Line, strings.TrimSpace(p.Message)))
	}
	if len(lines) == 0 {
		return err
	}
	return badLines(name, lines, err)
}

func badLines(name string, lines []string, cause error) error {
	return &lineErrors{
		summary: fmt.Sprintf("%s: %s; nothing was imported", name, count(len(lines), "bad line")),
		lines:   lines,
		hint:    "correct the lines and import again",
		cause:   cause,
	}
}

// progressEvery is how often progress is printed, at most.
const progressEvery = 200 * time.Millisecond

// progress passes a file on and, on a terminal, prints how far it is.
type progress struct {
	io.Reader
	w     io.Writer // nil: silent
	name  string
	size  int64 // -1: unknown
	sent  int64
	last  time.Time
	shown bool
}

func (a *app) newProgress(r io.Reader, name string, size int64) *progress {
	p := &progress{Reader: r, name: inert(name), size: size}
	if a.StderrIsTerminal {
		p.w = a.Stderr
	}
	return p
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.sent += int64(n)
	if p.w == nil {
		return n, err
	}
	if now := time.Now(); now.Sub(p.last) >= progressEvery {
		p.last, p.shown = now, true
		if p.size > 0 {
			fmt.Fprintf(p.w, "\r%s: %d%% of %d KiB sent", p.name, 100*p.sent/p.size, p.size>>10)
		} else {
			fmt.Fprintf(p.w, "\r%s: %d KiB sent", p.name, p.sent>>10)
		}
	}
	return n, err
}

// done clears the line of progress.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

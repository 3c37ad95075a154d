package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// syncFlags are the flags of gdn sync.
type syncFlags struct {
	dir       string
	prune     bool
	yesDelete bool
	dryRun    bool
}

func (a *app) syncCommand() *cobra.Command {
	var f syncFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "sync -f DIR",
		Short: "Make zones equal to the files that export writes",
		Long: `Make zones equal to the files that export writes: every *.yaml of DIR is one zone.

The edits are printed first. Nothing is changed when anything is wrong with any file, or when something would be
removed without --prune: a record that nothing takes the place of, an object, or a zone that has no file (such a
zone is left alone without --prune). What removes more than 30% of a zone's records also needs --yes-delete.

Editing publishes nothing: gdn plan shows what the next apply publishes. Each zone's records change together, and
each object by itself, only if it is as it was when the edits were printed. When a sync is interrupted, the
next one does the rest.`,
		Example: `  gdn sync -f zones --dry-run
  gdn sync -f zones --prune`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dir == "" {
				return usagef(cmd, "%s needs -f DIR", cmd.CommandPath())
			}
			wanted, err := readDirectory(f.dir)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.sync(cmd.Context(), c, wanted, f)
		},
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.dir, "file", "f", "", "the `DIR` of the zone files")
	flags.BoolVar(&f.prune, "prune", false, "remove what the files do not have")
	flags.BoolVar(&f.yesDelete, "yes-delete", false, "also when that is more than 30% of a zone's records")
	flags.BoolVar(&f.dryRun, "dry-run", false, "stop after the edits")
	return cmd
}

// syncResult is what gdn sync --json prints.
type syncResult struct {
	Zones  []*zoneEdits `json:"zones"`
	Synced bool         `json:"synced"`
}

func (a *app) sync(ctx context.Context, c *api.Client, wanted []*zoneState, f syncFlags) error {
	edits, unnamed, err := a.compareAll(ctx, c, wanted, f.prune)
	if err != nil {
		return err
	}
	if !a.json {
		for _, z := range edits {
			a.write(a.paintPlan(inertLines(z.text())))
		}
	}
	for _, name := range unnamed {
		a.notef("note: zone %s has no file and is left alone; --prune deletes it\n", name)
	}
	result := syncResult{Zones: edits}
	// A dry run ends as the sync would: what checks a change before it is merged relies on that.
	if err := refuseSync(edits, f); err != nil {
		if a.json {
			return errors.Join(err, a.printJSON(result))
		}
		return err
	}
	if len(edits) > 0 && !f.dryRun {
		if err := a.applyEdits(ctx, c, edits); err != nil {
			return err
		}
		result.Synced = true
	}
	switch {
	case a.json:
		return a.printJSON(result)
	case len(edits) == 0:
		a.printf("No edits. The zones are as their files say.\n")
	case f.dryRun:
		a.notef("dry run: nothing was changed\n")
	default:
		a.printf("\n✓ synced %s; %s\n", count(len(edits), "zone"), nextApply)
	}
	return nil
}

func (a *app) write(text string) { _, _ = io.WriteString(a.Stdout, text) }

// compareAll compares every file with its zone. unnamed are zones without a file that are left alone.
func (a *app) compareAll(ctx context.Context, c *api.Client, wanted []*zoneState, prune bool) (edits []*zoneEdits, unnamed []string, err error) {
	rows, err := collect(ctx, 0, c.Zones)
	if err != nil {
		return nil, nil, err
	}
	stands := map[string]bool{}
	for _, z := range rows {
		stands[z.Name] = true
	}
	named := map[string]bool{}
	slices.SortFunc(wanted, func(a, b *zoneState) int { return a.name.Compare(b.name) })
	for _, want := range wanted {
		name := want.name.String()
		named[name] = true
		var have *zoneState
		if stands[name] {
			if have, err = a.readZone(ctx, c, name); err != nil {
				return nil, nil, fmt.Errorf("zone %s: %w", name, err)
			}
		}
		if z := compareZones(have, want); z != nil {
			edits = append(edits, z)
		}
	}
	for _, z := range rows {
		switch {
		case named[z.Name]:
		case !prune:
			unnamed = append(unnamed, z.Name)
		default:
			have, err := a.readZone(ctx, c, z.Name)
			if err != nil {
				return nil, nil, fmt.Errorf("zone %s: %w", z.Name, err)
			}
			edits = append(edits, compareZones(have, nil))
		}
	}
	return edits, unnamed, nil
}

// refuseSync says what the edits need that was not given.
func refuseSync(edits []*zoneEdits, f syncFlags) error {
	var removes, mass []string
	for _, z := range edits {
		if z.deletes {
			removes = append(removes, z.Zone)
		}
		if z.mass() {
			mass = append(mass, fmt.Sprintf("  %s: %d of %s", z.Zone, z.Removed, count(z.Records, "record")))
		}
	}
	switch {
	case len(removes) > 0 && !f.prune:
		return hint(fmt.Errorf("the files lack what is in %s; nothing was changed", strings.Join(removes, ", ")),
			"review the lines marked -, then run gdn sync with --prune; or write what is there with gdn export")
	case len(mass) > 0 && !f.yesDelete:
		return &lineErrors{
			summary: fmt.Sprintf("this removes more than %d%% of a zone's records; nothing was changed", massRemoval),
			lines:   mass,
			hint:    "check that the files are whole, then run gdn sync with --prune --yes-delete",
		}
	}
	return nil
}

// applyEdits makes the edits. New zones come first and deletions last; within a zone records go before
// objects, of which removals come last.
func (a *app) applyEdits(ctx context.Context, c *api.Client, edits []*zoneEdits) error {
	for _, z := range edits {
		if err := checkEdits(ctx, c, z); err != nil {
			return fmt.Errorf("%s: %w; nothing was changed", z.Zone, err)
		}
	}
	var done []string
	for _, phase := range []string{signAdd, signChange, signRemove} {
		for _, z := range edits {
			if z.Sign != phase {
				continue
			}
			if err := applyZone(ctx, c, z); err != nil {
				return hint(fmt.Errorf("%s: %w", z.Zone, err), "%s", interruptedSync(done))
			}
			done = append(done, z.Zone)
		}
	}
	return nil
}

func interruptedSync(done []string) string {
	if len(done) == 0 {
		return "no zone before it was changed; gdn sync --dry-run shows what is left"
	}
	return strings.Join(done, ", ") + " are synced; gdn sync --dry-run shows what is left"
}

// checkEdits asks the control plane, before anything is changed, whether it would take the records, and whether
// they still are what the edits were printed for.
func checkEdits(ctx context.Context, c *api.Client, z *zoneEdits) error {
	if z.have == nil || z.want == nil || !z.changes.any() {
		return nil
	}
	return importRecords(ctx, c, z, true)
}

// importRecords sends all records of the file: the control plane compares and changes them in one transaction.
// Nothing is removed unless the edits removed something, and nothing is sent when they no longer fit.
func importRecords(ctx context.Context, c *api.Client, z *zoneEdits, dryRun bool) error {
	text, err := recordText(z.want)
	if err != nil {
		return err
	}
	o := api.ImportOptions{Replace: z.changes.removed > 0, DryRun: dryRun}
	if !dryRun && z.have != nil {
		o.IfRevision = z.have.revision
	}
	got, err := c.ImportZone(ctx, z.Zone, bytes.NewReader(text), o)
	var problem *api.Error
	if errors.As(err, &problem) && problem.Status == http.StatusPreconditionFailed {
		return hint(errors.New("the zone was edited meanwhile"), "run gdn sync again; it prints the edits anew")
	}
	if err != nil {
		return err
	}
	if dryRun && (recordChanges{got.Added, got.Updated, got.Removed}) != z.changes {
		return hint(errors.New("the records were edited meanwhile"), "run gdn sync again; it prints the edits anew")
	}
	return nil
}

// recordText prints the records as a zone file without SOA: that is the settings' own.
func recordText(s *zoneState) ([]byte, error) {
	var out bytes.Buffer
	if err := zone.WriteZoneFile(&out, &zone.Zone{Name: s.name, Records: s.records}); err != nil {
		return nil, err
	}
	lines := bytes.SplitAfterN(out.Bytes(), []byte("\n"), 4)
	kept := lines[:0]
	for i, line := range lines {
		if i < 3 && bytes.Contains(line, []byte("\tSOA\t")) {
			continue
		}
		kept = append(kept, line)
	}
	return bytes.Join(kept, nil), nil
}

func applyZone(ctx context.Context, c *api.Client, z *zoneEdits) error {
	if z.want == nil {
		return c.DeleteZone(ctx, z.Zone)
	}
	have := z.have
	if have == nil {
		if _, err := c.CreateZone(ctx, api.NewZone{Name: z.Zone}); err != nil {
			return err
		}
		have = &zoneState{name: z.want.name}
	} else if err := checkEdits(ctx, c, z); err != nil {
		return err
	}
	if z.changes.any() {
		if err := importRecords(ctx, c, z, false); err != nil {
			return err
		}
	}
	kinds := objectKinds()
	for _, k := range kinds {
		for _, name := range z.want.objectNames(k.member) {
			if err := putObject(ctx, c, k, z.Zone, name, have, z.want); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(k.noun+" "+name), err)
			}
		}
	}
	for _, k := range slices.Backward(kinds) {
		for _, name := range have.objectNames(k.member) {
			key := objectKey{k.member, name}
			if _, stays := z.want.objects[key]; stays {
				continue
			}
			err := k.remove(ctx, c, z.Zone, name, api.WriteOptions{IfRevision: have.objects[key].revision})
			var problem *api.Error
			if err != nil && !(errors.As(err, &problem) && problem.Status == http.StatusNotFound) {
				return fmt.Errorf("%s %s: %w", k.noun, name, err)
			}
		}
	}
	return nil
}

// putObject writes an object unless it is right already, and only onto what the edits were printed for.
func putObject(ctx context.Context, c *api.Client, k objectKind, zoneName, name string, have, want *zoneState) error {
	key := objectKey{k.member, name}
	old, stands := have.objects[key]
	body := want.objects[key].body
	if stands && bytes.Equal(old.body, body) || !stands && k.single && string(body) == emptyBody {
		return nil
	}
	o := api.WriteOptions{IfRevision: old.revision}
	if old.revision == 0 {
		o = api.WriteOptions{IfAbsent: true}
	}
	return k.put(ctx, c, zoneName, name, body, o)
}

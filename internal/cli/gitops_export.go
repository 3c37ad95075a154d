package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) exportAllCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "export [ZONE...] -o DIR",
		Short: "Write zones as files that sync reads back, one YAML file each",
		Long: `Write zones as files that sync reads back, one YAML file each: all zones of the workspace, or the named ones.

A file holds the zone's records, rulesets, lists, pools, load balancers, cache policy, TLS hosts, functions and
settings. The modules of functions stand in DIR/modules, named by their BLAKE3-256. The same zones give the same
bytes; a file whose zone did not change is not written.`,
		Example: `  gdn export -o zones
  gdn export amthalgroup.com -o zones`,
		Args: args(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usagef(cmd, "%s needs -o DIR", cmd.CommandPath())
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.exportZones(cmd.Context(), c, args, dir)
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "write to this `DIR`, which is made when it does not exist")
	return cmd
}

// exportZones reads every zone before it writes the first file.
func (a *app) exportZones(ctx context.Context, c *api.Client, zones []string, dir string) error {
	if len(zones) == 0 {
		all, err := collect(ctx, 0, c.Zones)
		if err != nil {
			return err
		}
		for _, z := range all {
			zones = append(zones, z.Name)
		}
	}
	files := map[string][]byte{}
	var order []string
	for _, name := range zones {
		state, err := a.readZone(ctx, c, name)
		if err != nil {
			return fmt.Errorf("zone %s: %w", name, err)
		}
		text, modules, err := formatZone(state)
		if err != nil {
			return err
		}
		path := zoneFileName(state.name.String())
		if _, twice := files[path]; twice {
			continue
		}
		files[path] = []byte(text)
		for module, data := range modules {
			if _, there := files[module]; !there {
				files[module] = data
				order = append(order, module)
			}
		}
		// A zone's file goes after the modules that it names.
		order = append(order, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	written := 0
	for _, path := range order {
		changed, err := writeChanged(filepath.Join(dir, path), files[path])
		if err != nil {
			return err
		}
		if changed {
			written++
		}
	}
	a.printf("%s in %s, %s written\n", count(len(zones), "zone"), dir, count(written, "file"))
	return a.noteStrangers(dir, files)
}

// noteStrangers tells of zone files that this export did not write: a sync would make their zones anew.
func (a *app) noteStrangers(dir string, files map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" || entry.IsDir() {
			continue
		}
		if _, mine := files[name]; !mine {
			a.notef("note: %s is not of this export; a sync of the directory reads it too\n", filepath.Join(dir, name))
		}
	}
	return nil
}

// zoneFileName is the file of a zone; the slash that labels may hold (RFC 2317) is written as a tilde, which
// none may.
func zoneFileName(zone string) string { return strings.ReplaceAll(zone, "/", "~") + ".yaml" }

// writeChanged writes a file whole or not at all, unless it holds data already.
func writeChanged(path string, data []byte) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".gdn-export-*")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err != nil {
		return false, err
	}
	return true, os.Rename(f.Name(), path)
}

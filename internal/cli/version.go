package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/snapshot"
)

func (a *app) versionCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use:   "version",
		Short: "Print the version of this build",
		Args:  args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version        string `json:"version"`
				Revision       string `json:"revision,omitempty"`
				Go             string `json:"go"`
				Platform       string `json:"platform"`
				SnapshotFormat int    `json:"snapshot_format"`
			}{"(devel)", "", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, snapshot.Format}
			if info, ok := debug.ReadBuildInfo(); ok {
				if info.Main.Version != "" {
					v.Version = info.Main.Version
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			if a.json {
				return a.printJSON(v)
			}
			a.printf("gdn %s (%s, %s, snapshot format %d)\n", v.Version, v.Go, v.Platform, v.SnapshotFormat)
			return nil
		},
	})
}

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

func (a *app) settingsCommand() *cobra.Command {
	var file string
	set := a.jsonFlag(&cobra.Command{
		Use:   "set ZONE {KEY=VALUE... | --file FILE}",
		Short: "Change settings of a zone; an empty value restores the default",
		Example: `  gdn settings set amthalgroup.com trace_sampling=100%
  gdn settings set amthalgroup.com soa.refresh=7200 always_https=true`,
		Args: func(cmd *cobra.Command, names []string) error {
			if file != "" {
				return args(1, 1)(cmd, names)
			}
			return args(2, -1)(cmd, names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := a.settingsWrite(cmd, args, file)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			now, err := write(c)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(now)
			}
			a.printf("%s: settings changed; %s\n", args[0], nextApply)
			return nil
		},
	})
	set.Flags().StringVar(&file, "file", "", "replace all settings by a YAML `FILE`, as show prints it")
	show := a.jsonFlag(&cobra.Command{
		Use:   "show ZONE",
		Short: "Print the settings that differ from the default, as YAML",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			s, _, err := c.Settings(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printObject(s)
		},
	})
	return group("settings", "Settings of a zone", set, show)
}

// settingsWrite reads what a command line or its file asks for, before anything is sent.
func (a *app) settingsWrite(cmd *cobra.Command, args []string, file string) (func(*api.Client) (*zone.Settings, error), error) {
	ctx, name := cmd.Context(), args[0]
	if file != "" {
		var s zone.Settings
		if err := a.readYAML(file, &s); err != nil {
			return nil, err
		}
		return func(c *api.Client) (*zone.Settings, error) {
			now, _, err := c.PutSettings(ctx, name, s, api.WriteOptions{})
			return now, err
		}, nil
	}
	patch := api.SettingsPatch{Set: map[string]string{}}
	for _, kv := range args[1:] {
		key, value, ok := strings.Cut(kv, "=")
		if _, twice := patch.Set[key]; !ok || key == "" || twice {
			return nil, usagef(cmd, "%q: want KEY=VALUE, each key once", kv)
		}
		patch.Set[key] = value
	}
	return func(c *api.Client) (*zone.Settings, error) {
		now, _, err := c.PatchSettings(ctx, name, patch, api.WriteOptions{})
		return now, err
	}, nil
}

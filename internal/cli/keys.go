package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/seal"
)

func (a *app) keysCommand() *cobra.Command {
	generate := &cobra.Command{
		Use:   "generate",
		Short: "Make a configuration signing keypair and print it once",
		Args:  args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			key, err := seal.GenerateSigningKey()
			if err != nil {
				return fmt.Errorf("generate a signing key: %w", err)
			}
			a.printf("A new configuration signing keypair.\n\n"+
				"  key id      %s\n"+
				"  public      %s\n"+
				"  secret      %s\n\n"+
				"The secret is shown once and is not stored.\n"+
				"  Control plane:   GUARDYN_CONFIG_SIGNING_KEY=%s\n"+
				"  Every edge node: GUARDYN_CONFIG_PUBLIC_KEYS=%s\n",
				string(key.ID()), key.Public().String(), key.SecretHex(), key.SecretHex(), key.Public().String())
			return nil
		},
	}
	show := a.jsonFlag(&cobra.Command{
		Use:   "show",
		Short: "Print the public half of the configured signing key",
		Args:  args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			text := a.Getenv(envSigningKey)
			if text == "" {
				return hint(errors.New("no configuration signing key is configured"),
					"set %s to the secret that gdn keys generate printed", envSigningKey)
			}
			key, err := seal.ParseSigningKey(text)
			if err != nil {
				return fmt.Errorf("%s: %w", envSigningKey, err)
			}
			if a.json {
				return a.printJSON(struct {
					KeyID  string `json:"key_id"`
					Public string `json:"public"`
				}{string(key.ID()), key.Public().String()})
			}
			a.printf("  key id      %s\n  public      %s\n", string(key.ID()), key.Public().String())
			return nil
		},
	})
	return group("keys", "Configuration signing keys, and the identity that private keys are sealed to", generate, show, a.keysCheckCommand(), a.keysIdentityCommand())
}

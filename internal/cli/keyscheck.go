package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/seal"
)

func (a *app) keysCheckCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use:   "check [KEY]",
		Short: "Tell which nodes do not trust the control plane's signing key yet (operators)",
		Long: `Tell which nodes do not trust the control plane's signing key yet, as they last said when they polled. KEY, a key id or
a public key, asks for another one: the next, before the control plane signs with it.

It exits 1 when a node does not trust the key, or never said.`,
		Example: `  gdn keys check
  gdn keys check 8f2c1ab30d4e57f9`,
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var id seal.KeyID
			if len(args) == 1 {
				var err error
				if id, err = keyID(args[0]); err != nil {
					return usagef(cmd, "%s", err)
				}
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			r, err := c.Keys(cmd.Context())
			if err != nil {
				return err
			}
			if id != "" && id != r.KeyID {
				askFor(r, id)
			}
			return a.printKeys(r)
		},
	})
}

// keyID reads a key id, or derives that of a public key.
func keyID(text string) (seal.KeyID, error) {
	if len(text) == 16 && strings.Trim(text, "0123456789abcdef") == "" {
		return seal.KeyID(text), nil
	}
	keys, err := seal.ParseTrustedKeys(text)
	if err != nil || len(keys.IDs()) != 1 {
		return "", fmt.Errorf("%q is neither a key id (16 hex digits) nor a public key (64)", text)
	}
	return keys.IDs()[0], nil
}

// askFor turns a report into that of another key.
func askFor(r *api.KeysReport, id seal.KeyID) {
	r.KeyID, r.Public, r.Missing = id, "", 0
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Trusts = slices.Contains(n.TrustedKeys, id)
		if !n.Trusts {
			r.Missing++
		}
	}
}

func (a *app) printKeys(r *api.KeysReport) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		live := "nothing is published yet"
		switch {
		case r.LiveKeyID == r.KeyID:
			live = "what is live is sealed with it"
		case r.LiveKeyID != "":
			live = "what is live is sealed with " + string(r.LiveKeyID)
		}
		a.printf("key %s; %s\n\n", string(r.KeyID), live)
		t := &table{head: []string{"NODE", "TRUSTS IT", "KEYS", "SAID"}}
		for _, n := range r.Nodes {
			trusts, keys := "no", make([]string, len(n.TrustedKeys))
			if n.Trusts {
				trusts = "yes"
			}
			for i, k := range n.TrustedKeys {
				keys[i] = string(k)
			}
			t.row(n.Name, trusts, strings.Join(keys, ","), moment(n.ReportedAt))
		}
		if err := a.printTable(t, nil); err != nil {
			return err
		}
	}
	if r.Missing > 0 {
		verb := "do"
		if r.Missing == 1 {
			verb = "does"
		}
		return hint(fmt.Errorf("%d of %s %s not trust key %s", r.Missing, count(len(r.Nodes), "node"), verb, r.KeyID),
			"add its public key to %s of each and restart it; what is signed with the key would be refused there", envPublicKeys)
	}
	return nil
}

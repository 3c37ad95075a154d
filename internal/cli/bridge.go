package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/bridge/admin"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
)

// defaultBridgeURL is where a bridge's control surface listens by default.
const defaultBridgeURL = "http://127.0.0.1:9190"

func (a *app) bridgeCommand() *cobra.Command {
	cmd := a.bridgeRunCommand()
	cmd.AddCommand(a.bridgeValidateCommand(), a.bridgePlanCommand(), a.bridgePutCommand(), a.bridgeStatusCommand(), a.bridgeMigrateCommand())
	return cmd
}

// readDocument reads a bridge's document; the error lists all that is wrong with it by its lines.
func (a *app) readDocument(path string, parse func([]byte) (*document.Document, error)) ([]byte, *document.Document, error) {
	data, name, err := a.readFile(path, document.MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	d, err := parse(data)
	return data, d, documentError(name, err)
}

// documentError is of a document's problems, by the lines of its file.
func documentError(name string, err error) error {
	invalid, ok := errors.AsType[*document.Error](err)
	if !ok {
		return err
	}
	lines := make([]string, len(invalid.Problems))
	for i, p := range invalid.Problems {
		if lines[i] = fmt.Sprintf("%s:%d: %s", name, p.Line, p.Message); p.Line == 0 {
			lines[i] = name + ": " + p.Message
		}
	}
	return &lineErrors{summary: fmt.Sprintf("%s: %s", name, count(len(lines), "problem")), lines: lines}
}

func (a *app) bridgeValidateCommand() *cobra.Command {
	var p document.Process
	var member, rolloutStore, leaseStore string
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "validate FILE",
		Short: "Check a bridge's document, and print its digest",
		Long: `Check a bridge's document, and print its digest. All problems are told together.

The digest is of the content: saving again, moving things about, writing defaults out and another version leave it
as it is. --baseline-digest of gdn bridge takes it. With --member-id, and with the stores that the member would have,
it is checked whether that member could run the document.`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			parse := document.Parse
			if p = (document.Process{MemberID: member, RolloutStore: rolloutStore != "", LeaseStore: leaseStore != ""}); p != (document.Process{}) {
				parse = func(b []byte) (*document.Document, error) { return document.ParseFor(b, p) }
			}
			_, d, err := a.readDocument(args[0], parse)
			if err != nil {
				return err
			}
			rung := host.RungOf(d)
			if a.json {
				return a.printJSON(struct {
					Version  uint64          `json:"version"`
					Digest   document.Digest `json:"digest"`
					Rung     host.Rung       `json:"rung"`
					Sessions int             `json:"sessions"`
					Routes   int             `json:"routes"`
				}{d.Version, d.Digest(), rung, len(d.Sessions), len(d.Routes)})
			}
			a.printf("version %d, %s: %s, %s\n%s\n", int64(d.Version), string(rung), count(len(d.Sessions), "session"), count(len(d.Routes), "route"), string(d.Digest()))
			return nil
		},
	})
	cmd.Flags().StringVar(&member, "member-id", "", "the `ID` of the member that is to run it")
	cmd.Flags().StringVar(&rolloutStore, "rollout-store", "", "the `URL` of the rollout store that it would have")
	cmd.Flags().StringVar(&leaseStore, "lease-store", "", "the `URL` of the store of leases that it would have")
	return cmd
}

// bridgeClient is of the member that a command asks.
func (a *app) bridgeClient(url string) (*admin.Client, error) {
	token := a.Getenv(envBridgeToken)
	if a.tokenFile != "" {
		var err error
		if token, err = a.fileToken(); err != nil {
			return nil, err
		}
	}
	return admin.NewClient(a.setting(url, envBridgeURL, defaultBridgeURL), token, nil)
}

// bridgeURLFlag gives cmd the flag --url.
func bridgeURLFlag(cmd *cobra.Command, url *string) *cobra.Command {
	cmd.Flags().StringVar(url, "url", "", "`URL` of a member's control surface (default $"+envBridgeURL+", else "+defaultBridgeURL+")")
	return cmd
}

func (a *app) bridgePlanCommand() *cobra.Command {
	var url, against string
	cmd := bridgeURLFlag(a.jsonFlag(&cobra.Command{
		Use:   "plan FILE [--against FILE]",
		Short: "Show the class of a change and what it would restart",
		Long: `Show the class of a change and what it would restart, and change nothing. FILE is compared with what a running member runs, or
with the document in another file.`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, next, err := a.readDocument(args[0], document.Parse)
			if err != nil {
				return err
			}
			var p host.Plan
			if against != "" {
				_, old, err := a.readDocument(against, document.Parse)
				if err != nil {
					return err
				}
				p = host.PlanChange(old, next)
			} else {
				c, err := a.bridgeClient(url)
				if err != nil {
					return err
				}
				if p, err = c.Plan(cmd.Context(), data); err != nil {
					return bridgeError(err)
				}
			}
			if a.json {
				return a.printJSON(p)
			}
			a.printBridgePlan(p)
			return nil
		},
	}), &url)
	cmd.Flags().StringVar(&against, "against", "", "compare with the document in `FILE` rather than with what runs")
	return cmd
}

func (a *app) printBridgePlan(p host.Plan) {
	for _, f := range p.Change.Fields {
		mark := "~"
		switch {
		case f.Class == document.Replacement:
			mark = "!"
		case f.From == nil:
			mark = "+"
		case f.To == nil:
			mark = "-"
		}
		a.printf("  %s %s", mark, f.Path)
		if f.From != nil && f.To != nil {
			a.printf("  %s → %s", string(f.From), string(f.To))
		}
		a.printf("\n")
		if f.Why != "" {
			a.printf("      %s\n", f.Why)
		}
	}
	if len(p.Change.Fields) > 0 {
		a.printf("\n")
	}
	for _, u := range []struct {
		name string
		of   document.Units
	}{{"sessions", p.Change.Sessions}, {"routes", p.Change.Routes}} {
		var parts []string
		for _, x := range []struct {
			verb string
			ids  []string
		}{{"start", u.of.Start}, {"stop", u.of.Stop}, {"restart", u.of.Restart}} {
			if len(x.ids) > 0 {
				parts = append(parts, x.verb+" "+strings.Join(x.ids, ", "))
			}
		}
		if u.of.Keep > 0 {
			parts = append(parts, fmt.Sprintf("%d go on", u.of.Keep))
		}
		if len(parts) > 0 {
			a.printf("%-9s  %s\n", u.name, strings.Join(parts, "; "))
		}
	}
	a.printf("%-9s  %s\n", "class", string(p.Change.Class))
	a.printf("%-9s  %s\n", "then", p.How)
}

func (a *app) bridgePutCommand() *cobra.Command {
	var url, match string
	var create, replacement bool
	cmd := bridgeURLFlag(a.jsonFlag(&cobra.Command{
		Use:   "put FILE",
		Short: "Save a document in the source of a running member",
		Long: `Save a document in the source of a running member, which takes it over or puts it to its cohort. Nothing is saved
that is not valid, that this bridge does not take over while it runs, or that the member cannot build.

The document's version says which one it replaces, so that what somebody else has saved meanwhile is not lost; the one
that is saved has the next. --for-replacement saves what only another cohort can run: see gdn bridge plan.`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, d, err := a.readDocument(args[0], document.Parse)
			if err != nil {
				return err
			}
			c, err := a.bridgeClient(url)
			if err != nil {
				return err
			}
			switch {
			case create && match != "":
				return usagef(cmd, "--create is for where there is no document, and --if-match for where there is one: give one of them")
			case match == "" && !create:
				match = fmt.Sprintf("%q", fmt.Sprint(d.Version))
			}
			out, err := c.Put(cmd.Context(), data, match, replacement)
			if err != nil {
				return bridgeError(err)
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printf("saved version %d: %s", int64(out.Version), out.Verb)
			if out.Reason != "" {
				a.printf(": %s", out.Reason)
			}
			a.printf("\n")
			return nil
		},
	}), &url)
	cmd.Flags().StringVar(&match, "if-match", "", "replace the document with this `ETAG`, or * for whichever stands (default: the file's version)")
	cmd.Flags().BoolVar(&create, "create", false, "save it where there is no document, at version 1")
	cmd.Flags().BoolVar(&replacement, "for-replacement", false, "save it for the processes that will replace this cohort")
	return cmd
}

// bridgeError says what to do next after a member's answer.
func bridgeError(err error) error {
	p, ok := errors.AsType[*admin.Problem](err)
	if !ok {
		return hint(err, "is a bridge running there? Start one with gdn bridge, or set %s or --url", envBridgeURL)
	}
	switch p.Code {
	case "unauthorized", "no_token":
		return hint(err, "set %s or --token-file to the token that the bridge was started with", envBridgeToken)
	case "version_changed":
		return hint(err, "somebody else saved version %d meanwhile; look at it, and put yours on top", *p.Version)
	case "missing":
		return hint(err, "gdn bridge put --create saves the first one")
	case "rollout_open":
		return hint(err, "gdn bridge status shows how it goes; try again when it is over")
	}
	return err
}

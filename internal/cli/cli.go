// Package cli is the command line: it turns arguments, environment and files into calls of the control
// plane's HTTP API, and into the processes that gdn can be.
package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Env is the world that a command runs in.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ holds the variables as KEY=VALUE.
	Environ []string
	// StdoutIsTerminal turns colours on, StderrIsTerminal progress.
	StdoutIsTerminal, StderrIsTerminal bool
	// TerminalSize is how large the terminal is at the moment, 0 when that is not known; may be nil.
	TerminalSize func() (columns, rows int)
}

// Getenv returns the last value of a variable, "" when it is not set.
func (e Env) Getenv(name string) string {
	value, _ := e.lookup(name)
	return value
}

func (e Env) lookup(name string) (value string, ok bool) {
	for _, kv := range e.Environ {
		if k, v, found := strings.Cut(kv, "="); found && k == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// Exit codes beside 0, and beside those of what waits for a rollout.
const (
	exitError = 1
	// exitUsage is for a command line that means nothing, and for gdn plan --detailed-exitcode when
	// there are changes.
	exitUsage = 2
)

// Run runs one command line (without the program's name) and returns its exit code: 0, 1 for an error, 2
// for a usage error, 3 to 5 for a rollout that did not come to its good end. It returns once everything it started has stopped; cancelling ctx asks for that.
func Run(ctx context.Context, args []string, env Env) int {
	a := &app{Env: env, args: args}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	return a.report(root.ExecuteContext(ctx))
}

// app is one run of the program: its environment and the flags that every command has.
type app struct {
	Env
	args      []string // as they were given
	apiURL    string
	tokenFile string
	json      bool
}

func (a *app) root() *cobra.Command {
	root := group("gdn", "Configuration plane of an edge fleet, and the fleet's node",
		a.serveCommand(), a.edgeCommand(), a.devCommand(), a.migrateCommand(), a.backupCommand(), a.restoreCommand(), a.keysCommand(),
		a.zoneCommand(), a.recordCommand(), a.rulesCommand(), a.listCommand(), a.poolCommand(),
		a.balancerCommand(), a.cacheCommand(), a.purgeCommand(), a.tlsCommand(), a.functionCommand(), a.settingsCommand(),
		a.exportAllCommand(), a.syncCommand(),
		a.planCommand(), a.applyCommand(), a.rollbackCommand(), a.recoverCommand(), a.historyCommand(), a.statusCommand(),
		a.rolloutCommand(), a.clusterCommand(),
		a.bridgeCommand(),
		a.nodeCommand(), a.workspaceCommand(), a.userCommand(), a.tokenCommand(), a.auditCommand(),
		a.versionCommand(),
	)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]{{end}}",
		"{{if and .HasAvailableSubCommands (not .Annotations."+onlyGroups+")}}\n  {{.CommandPath}} COMMAND{{end}}", 1))
	flags := root.PersistentFlags()
	flags.StringVar(&a.apiURL, "api-url", "", "control plane's `URL` (default $GUARDYN_API_URL, else "+defaultAPIURL+")")
	flags.StringVar(&a.tokenFile, "token-file", "", "`FILE` that holds the token (default: the token in $GUARDYN_TOKEN)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Name() == "completion" || cmd.Name() == "help" || cmd.HasParent() && cmd.Parent().Name() == "completion" || strings.HasPrefix(cmd.Name(), "__") {
			return nil
		}
		return a.checkEnviron()
	}
	return root
}

// onlyGroups marks a command whose one line of usage says that it needs another.
const onlyGroups = "onlyGroups"

// group returns a command that only holds others. Called by itself, or with a name that it does not hold,
// it is a usage error.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   use + " COMMAND",
		Short:                 short,
		Args:                  cobra.ArbitraryArgs,
		Annotations:           map[string]string{onlyGroups: "yes"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				cmd.SetOut(cmd.ErrOrStderr())
				_ = cmd.Help()
				return usagef(cmd, "%s needs a command", cmd.CommandPath())
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(commands...)
	return cmd
}

func unknownCommand(cmd *cobra.Command, name string) error {
	err := usagef(cmd, "unknown command %q for %s", name, cmd.CommandPath())
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		err.hint = "did you mean " + cmd.CommandPath() + " " + near[0] + "?"
	}
	return err
}

// helpCommand prints the help of a command; of one that does not exist it is a usage error, as the command is.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "help [COMMAND]...",
		Short:                 "Print the help of a command, as its --help does",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usagef(cmd, "%s", err)
			}
			if len(rest) > 0 {
				return unknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// flagError says what is wrong with a flag's value in the words of the command line.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef(cmd, "%s", err)
	}
	what := invalid.Unwrap().Error()
	switch invalid.GetFlag().Value.Type() {
	case "duration":
		what = "write a number with its unit, as in 90s or 1h30m"
	case "int":
		what = "write a whole number"
	}
	return usagef(cmd, "--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), what)
}

// args returns an argument check of between least and most arguments whose failure is a usage error; most
// below 0 is no limit.
func args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef(cmd, "%s: missing argument", cmd.CommandPath())
		case most >= 0 && len(args) > most:
			return usagef(cmd, "%s: unexpected argument %q", cmd.CommandPath(), args[most])
		}
		return nil
	}
}

// jsonFlag gives cmd the flag --json.
func (a *app) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, errors too")
	return cmd
}

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WriteReference writes the reference of every command as Markdown.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Commands\n\nWritten by `make docs` from the commands themselves. Flags that every command has stand first.\n")
	root := (&app{}).root()
	writeFlags(&b, root.PersistentFlags())
	writeCommands(&b, root)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if cmd.HasSubCommands() && cmd.Long == "" {
			fmt.Fprintf(b, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
			writeCommands(b, cmd)
			continue
		}
		level := "###"
		if cmd.Parent() == cmd.Root() {
			level = "##"
		}
		fmt.Fprintf(b, "\n%s %s\n\n", level, cmd.CommandPath())
		if cmd.Long == "" {
			fmt.Fprintf(b, "%s.\n", cmd.Short)
		} else {
			writeLong(b, cmd.Long)
		}
		fmt.Fprintf(b, "\n    %s\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		if cmd.Example != "" {
			fmt.Fprintf(b, "\nFor example:\n\n%s\n", indent(cmd.Example, "  "))
		}
		writeFlags(b, cmd.NonInheritedFlags())
		writeCommands(b, cmd) // of those that do something by themselves too
	}
}

// writeLong writes help text; its indented lines become code.
func writeLong(b *strings.Builder, text string) {
	for line := range strings.Lines(text + "\n") {
		if strings.HasPrefix(line, "  ") {
			line = "  " + line
		}
		b.WriteString(line)
	}
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	if usages := flags.FlagUsages(); usages != "" {
		fmt.Fprintf(b, "\n%s", indent(strings.TrimRight(usages, "\n"), "  "))
		b.WriteString("\n")
	}
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}

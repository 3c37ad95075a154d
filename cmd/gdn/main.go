// Command gdn is Guardyn: command line, control plane, edge node and development fleet in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/guardyn-edge/guardyn/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once: after the first, its default is restored.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, os.Args[1:], cli.Env{
		Stdin:            os.Stdin,
		Stdout:           os.Stdout,
		Stderr:           os.Stderr,
		Environ:          os.Environ(),
		StdoutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		TerminalSize:     terminalSize,
	})
	stop()
	os.Exit(code)
}

func terminalSize() (columns, rows int) {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}

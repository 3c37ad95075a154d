// Command with-dynamo runs a command with a private DynamoDB Local, which tests find by
// GUARDYN_TEST_DYNAMO_URL, and ends with the command's exit code.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: with-dynamo [--] COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-dynamo:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	// An interrupt reaches the command too; this process stays to clean up after it.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	if os.Getenv(testdynamo.EnvURL) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), testdynamo.StartTimeout)
		server, failed := testdynamo.Start(ctx)
		cancel()
		if failed != nil {
			return 1, failed
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		if err := os.Setenv(testdynamo.EnvURL, server.URL()); err != nil {
			return 1, err
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt { // which the terminal sends to the whole group
				_ = cmd.Process.Signal(s) // it may have ended already
			}
		case err := <-done:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
					return 128 + int(status.Signal()), nil
				}
				return exit.ExitCode(), nil
			}
			return 0, err
		}
	}
}

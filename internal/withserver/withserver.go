// Package withserver runs a command beside a server that its tests need: the body of with-postgres and with-dynamo.
package withserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Server is how to start what a command needs.
type Server struct {
	Name    string        // of the program, for its messages
	Env     string        // the variable that names the server; when it is set already, nothing is started
	Timeout time.Duration // of the start
	Start   func(ctx context.Context) (url string, stop func() error, err error)
}

// Main runs the command of os.Args with the server and ends with the command's exit code.
func Main(s Server) {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintf(os.Stderr, "usage: %s [--] COMMAND [ARGUMENT…]\n", s.Name)
		os.Exit(2)
	}
	code, err := run(s, args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(s Server, args []string) (code int, err error) {
	// An interrupt reaches the command too; this process stays to clean up after it.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	if os.Getenv(s.Env) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
		url, stop, failed := s.Start(ctx)
		cancel()
		if failed != nil {
			return 1, failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		if err := os.Setenv(s.Env, url); err != nil {
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
		case got := <-signals:
			if got != os.Interrupt { // which the terminal sends to the whole group
				_ = cmd.Process.Signal(got) // it may have ended already
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

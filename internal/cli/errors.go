package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

// usageError is a command line that means nothing.
type usageError struct {
	message string
	hint    string
}

func (e *usageError) Error() string { return e.message }

func usagef(cmd *cobra.Command, format string, args ...any) *usageError {
	return &usageError{
		message: fmt.Sprintf(format, args...),
		hint:    "usage: " + cmd.UseLine() + "; " + cmd.CommandPath() + " --help tells more",
	}
}

// hinted is an error with what to do next.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

func hint(err error, format string, args ...any) error {
	return &hinted{error: err, hint: fmt.Sprintf(format, args...)}
}

// exitCode ends the run with a code and no message: what there was to say is said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// lineErrors are the bad lines of one file, each printed on a line of its own.
type lineErrors struct {
	summary string
	lines   []string
	hint    string
	cause   error // what they were found as; nil: lines are all there is
}

func (e *lineErrors) Error() string { return e.summary }

func (e *lineErrors) Unwrap() error { return e.cause }

// report prints err with its hint, for --json as one line of JSON, and returns the exit code that it means.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	message := err.Error()
	text, next := a.explain(err)
	if text != "" {
		message = text
	}
	exit := exitError
	var usage *usageError
	if errors.As(err, &usage) {
		exit = exitUsage
	}
	var ended *endedError
	if errors.As(err, &ended) {
		exit = ended.exit
	}
	if a.wantsJSON(err) {
		a.printJSONError(err, message, next, exit)
		return exit
	}
	var lines *lineErrors
	if errors.As(err, &lines) {
		for _, line := range lines.lines {
			fmt.Fprintln(a.Stderr, inert(line))
		}
	}
	fmt.Fprintln(a.Stderr, "error: "+inertLines(message))
	if next != "" {
		fmt.Fprintln(a.Stderr, "hint: "+inertLines(next))
	}
	return exit
}

// explain finds the hint of an error and, where its own words are not for people, better ones.
func (a *app) explain(err error) (message, next string) {
	var usage *usageError
	var withHint *hinted
	var lines *lineErrors
	var ended *endedError
	var served *servedError
	var network *url.Error
	var op *net.OpError
	var database *sqlconn.ConnectError
	var address *net.AddrError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &usage):
		return "", usage.hint
	case errors.As(err, &withHint):
		return "", withHint.hint
	case errors.As(err, &lines):
		return "", lines.hint
	case errors.As(err, &ended):
		return "", ended.hint()
	case errors.As(err, &served):
		return "", served.hint
	case errors.Is(err, context.Canceled):
		return "interrupted", ""
	}
	if message, next := explainAPI(err); message != "" || next != "" {
		return message, next
	}
	switch {
	case errors.As(err, &database):
		return "", "is PostgreSQL running there, and the URL right? " + envDatabaseURL + " is the control plane's"
	case errors.As(err, &op) && op.Op == "listen" && errors.As(err, &address):
		return "", "write HOST:PORT, or :PORT for every address of this machine"
	case errors.As(err, &op) && op.Op == "listen":
		return "", "another process has this address, or this machine does not: choose another"
	case errors.As(err, &authority):
		return "", "the environment variable SSL_CERT_FILE names a PEM file of the authorities that count, where the system's do not"
	case errors.As(err, &name):
		return "", "write the URL with a name that the certificate has"
	}
	if errors.As(err, &network) || errors.As(err, &op) {
		return "", "is the control plane running there? Start one with gdn serve (or gdn dev), or set GUARDYN_API_URL"
	}
	return "", ""
}

//go:build !linux

package dns

import (
	"errors"
	"syscall"
)

const (
	sharesPort  = false
	controlSize = 0
)

func udpControl(_, _ string, _ syscall.RawConn) error { return nil }

func sourceControl([]byte) []byte { return nil }

func isInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

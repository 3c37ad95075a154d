//go:build !linux

package testdynamo

import "syscall"

// endWithParent: elsewhere the kernel offers nothing of the kind.
func endWithParent(*syscall.SysProcAttr) {}

package testdynamo

import "syscall"

// endWithParent asks the kernel to end the server when the thread that starts it ends.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

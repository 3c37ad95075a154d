package testpg

import "syscall"

// endWithParent asks the kernel to shut the server down when the thread that starts it ends.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }

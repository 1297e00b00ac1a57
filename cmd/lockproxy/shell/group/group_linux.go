package group

import "syscall"

// dieWithParent has the kernel kill the command when this process is killed: nobody would watch its lock then.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

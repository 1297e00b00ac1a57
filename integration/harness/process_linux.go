package harness

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// dieWithParent asks the kernel to kill the child when the thread that started it ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

var (
	starterOnce sync.Once
	starterJobs = make(chan func())
)

// onStarterThread runs start on one thread that lives as long as this program. Pdeathsig follows the thread, not the
// process, and the Go runtime may end any other thread.
func onStarterThread(start func() error) error {
	starterOnce.Do(func() {
		go func() {
			runtime.LockOSThread()
			for job := range starterJobs {
				job()
			}
		}()
	})
	result := make(chan error, 1)
	starterJobs <- func() { result <- start() }
	return <-result
}

//go:build unix

package group

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownsTerminal says whether standard input is a terminal that this process's group has, and returns the group.
func ownsTerminal() (own int, has bool) {
	own = syscall.Getpgrp()
	front, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return own, err == nil && front == own
}

// giveTerminal gives the terminal to a group. SIGTTOU is ignored, because the signal stops a background process that does so.
func giveTerminal(group int) {
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, group)
}

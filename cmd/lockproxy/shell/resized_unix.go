//go:build unix

package shell

import (
	"os"
	"os/signal"
	"syscall"
)

func notifyResized(c chan os.Signal) { signal.Notify(c, syscall.SIGWINCH) }

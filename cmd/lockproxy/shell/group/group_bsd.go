//go:build unix && !linux

package group

import "syscall"

// dieWithParent does nothing: only Linux knows this.
func dieWithParent(*syscall.SysProcAttr) {}

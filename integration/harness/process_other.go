//go:build !linux

package harness

import "os/exec"

// dieWithParent does nothing here: children of a killed test run have to be ended by hand.
func dieWithParent(*exec.Cmd) {}

func onStarterThread(start func() error) error { return start() }

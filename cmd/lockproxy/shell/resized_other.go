//go:build !unix

package shell

import "os"

// notifyResized does nothing: the size is looked at with each draw.
func notifyResized(chan os.Signal) {}

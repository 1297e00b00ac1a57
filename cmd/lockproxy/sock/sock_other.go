//go:build !linux || 386 || s390x

package sock

import "net"

// Wrap returns c unchanged.
func Wrap(c net.Conn) net.Conn { return c }

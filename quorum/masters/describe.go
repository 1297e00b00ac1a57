package masters

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Describe puts an error of a connection into few words that name no local address: why a master has no vote, or is not heard.
func Describe(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "is silent"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "connection lost"
	case errors.As(err, &op):
		return op.Op + " failed: " + op.Err.Error()
	}
	return err.Error()
}

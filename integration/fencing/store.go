package fencing

import (
	"context"
	"errors"
)

// ErrStale is the answer to a request whose fence is smaller than the newest: the lock has passed to another holder.
var ErrStale = errors.New("the lock has passed to another holder")

// A Store holds a value for each name. Every request carries the fence of the lock under which the request is made.
type Store interface {
	// Read returns the value, "" if there is none. It returns ErrStale to a former holder.
	Read(ctx context.Context, name string, fence int64) (string, error)
	// Write replaces the value. It returns ErrStale to a former holder, and changes nothing then.
	Write(ctx context.Context, name, value string, fence int64) error
}

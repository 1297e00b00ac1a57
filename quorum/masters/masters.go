// Package masters speaks to Redis masters. The package knows connections and commands, and knows nothing of locks.
package masters

import (
	"context"
	"time"
)

// A Master is one independent Redis or Valkey server.
type Master interface {
	// Addr names the master in logs, errors and metrics, without any secret.
	Addr() string
	// Dial opens a connection to database db, authenticated and ready for commands. The context bounds the dial only.
	Dial(ctx context.Context, db int) (Conn, error)
}

// A Conn is one connection. Commands run in the order of their Send, and within a Send in the order given. One goroutine
// may send while another receives; only one at a time may do either. Close may be called at any time.
type Conn interface {
	// Send writes all calls in one write, and waits for no reply. After an error the connection is of no more use.
	Send(calls []*Call) error
	// Receive reads the replies to the calls of the earliest Send that has not been received. Receive sets Answered, and
	// Reply or Err, of each answered call. After an error the connection is of no more use. Then a call that is not
	// Answered may have run, may run later while the master still holds its bytes, or may never run. Receive waits until
	// Close for a master that does not answer.
	Receive(calls []*Call) error
	// Exec sends all calls and receives their replies. No earlier Send may be without its Receive.
	Exec(calls []*Call) error
	// Close ends the connection, and a running Send or Receive. A command already sent may still run on the master.
	Close() error
}

// With calls f with a connection to database 0 of a master, and closes the connection afterwards, or when the context ends.
func With(ctx context.Context, m Master, f func(Conn) error) error {
	conn, err := m.Dial(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	return f(conn)
}

// Pause waits before the next dial, after so many failures: 10 ms, doubling to 250 ms, so that a master that is back is found in a second.
// spread chooses a part of the pause, less than most, so that not all connections meet a returned master at once.
func Pause(ctx context.Context, failures int, spread func(most time.Duration) time.Duration) {
	most := min(10*time.Millisecond<<min(failures-1, 10), 250*time.Millisecond)
	timer := time.NewTimer(most/2 + spread(most/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A Call is one command and, after Receive, its reply.
type Call struct {
	Args []any // strings, int64s and pointers to them; Send only reads Args, so calls may share them

	Answered bool
	Reply    any   // nil, int64, string or []any
	Err      error // the master's error reply, or the first inside an array
}

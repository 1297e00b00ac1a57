// Package masters speaks to Redis masters. The package knows connections and commands, and knows nothing of locks.
package masters

import "context"

// A Master is one independent Redis or Valkey server.
type Master interface {
	// Addr names the master in logs, errors and metrics, without any secret.
	Addr() string
	// Dial opens a connection to database db, authenticated and ready for commands. The context bounds the dial only.
	Dial(ctx context.Context, db int) (Conn, error)
}

// A Conn is one connection. Commands run in the order of their Exec, and within an Exec in the order given. Only one
// goroutine at a time may use a Conn, except for Close.
type Conn interface {
	// Exec sends all calls in one write and reads all replies. Exec sets Answered, and Reply or Err, of each answered
	// call. After an error the connection is of no more use. Then a call that is not Answered may have run, may run
	// later while the master still holds its bytes, or may never run. Exec waits until Close for a master that does not
	// answer.
	Exec(calls []*Call) error
	// Close ends the connection and a running Exec. A command already sent may still run on the master.
	Close() error
}

// A Call is one command and, after Exec, its reply.
type Call struct {
	Args []any // strings, int64s and pointers to them; Exec only reads Args, so calls may share them

	Answered bool
	Reply    any   // nil, int64, string or []any
	Err      error // the master's error reply, or the first inside an array
}

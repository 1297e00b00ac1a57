package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// A connection is a connection of a lane, and the facts that its handshake learnt.
type connection struct {
	conn     masters.Conn
	flight   flight // the batches under way
	unwatch  func() // ends the watch over the engine's context
	clientID int64  // 0 if the master does not tell
	info     masters.Info
	silent   atomic.Bool     // the connection was closed because the master did not answer
	programs map[string]bool // by SHA-1: the scripts that the master has

	early         bool  // the master is to be assessed again when others have been heard; see heardOthers
	marks         marks // as the assessment found them
	epoch         int64 // of the canary
	durable       bool  // the canary says that the master forgets nothing
	restraintArgs []any // ask for the setting that keeps the master from evicting; nil if the master does not tell
}

// connect makes the next connection. Before requests go over it, the connection before is killed on the master, so that no command
// that is still buffered there can run later (rule 3).
func (l *lane) connect(ctx context.Context) bool {
	next, err := l.dialer.dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.setDown(masters.Describe(err))
		}
		return false
	}
	l.connection, l.dialer.last = next, nil
	l.queue.connected(next) // first, so that a release is either sent, or finds the entries that are forgotten next
	l.ledger.forgetBroken()
	l.master.connected(&next.info)
	if l.told.Found() {
		l.log(slog.LevelInfo, "connected")
	}
	return true
}

// A dialer makes the connections of a lane, one after the other. A dialer belongs to the lane's loop.
type dialer struct {
	target
	clock    *laneClock
	assessor *assessor
	last     *connection // the connection before; nil while the lane is connected
	loose    bool        // a former connection could not be killed: its commands may run at any later time
}

// dial opens and prepares a connection. Closing the engine closes the connection, and so ends every wait there. A master that does not
// answer in time loses the connection, too.
func (d *dialer) dial(ctx context.Context) (*connection, error) {
	patient, cancel := context.WithTimeout(ctx, d.engine.cfg.MasterDeadAfter)
	defer cancel()
	conn, err := d.master.Dial(patient, d.db)
	if err != nil && patient.Err() != nil {
		err = patient.Err() // the cause of err
	}
	if err != nil {
		return nil, err
	}
	next := &connection{conn: conn, flight: flight{engine: d.engine, conn: conn}}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	next.unwatch = func() {
		d.engine.servers.forget(next)
		unwatch()
	}
	stop := context.AfterFunc(patient, func() { _ = conn.Close() })
	err = d.handshake(next)
	if !stop() || err != nil && patient.Err() != nil {
		err = patient.Err() // as above
	}
	if err != nil {
		next.close()
		return nil, err
	}
	return next, nil
}

// killLast ends the former connection on the master, so that commands which the master still has of that connection can be undone.
// If another process answers by now, there is nothing left to kill, and the client id may be another client's. So without run ids to
// compare, nothing is killed, and undos are repeated.
func (d *dialer) killLast(next *connection) error {
	last := d.last
	if last == nil {
		return nil
	}
	was, is := last.info.RunID, next.info.RunID
	over := was != "" && is != "" && was != is        // nothing of the former connection can run any more
	if was != "" && was == is && last.clientID != 0 { // 0 would be all clients, before Redis 7
		//mutant: closing counts as cancel
		kill := &masters.Call{Args: []any{"CLIENT", "KILL", "ID", last.clientID}}
		if err := next.conn.Exec([]*masters.Call{kill}); err != nil {
			return err
		}
		over = kill.Err == nil
	}
	if !over && !d.loose {
		d.loose = true
		d.log(slog.LevelWarn, "the former connection could not be killed: what it sets late is undone late")
	}
	return nil
}

// handshake learns who answers, ends the connection before, and finds out whether the master remembers its locks. handshake goes on without
// the answers to forbidden questions.
func (d *dialer) handshake(k *connection) error {
	id := &masters.Call{Args: []any{"CLIENT", "ID"}}
	if err := k.conn.Exec([]*masters.Call{id}); err != nil {
		return err
	}
	k.clientID, _ = id.Reply.(int64)
	assess := func(k *connection) error { return d.assessor.assess(k, d.last) }
	for _, step := range []func(*connection) error{d.assessor.inquire, (*connection).loadScripts, d.killLast, d.clock.meet, assess} {
		if err := step(k); err != nil {
			return err
		}
	}
	return nil
}

func (k *connection) loadScripts() error {
	calls := make([]*masters.Call, len(loadedScripts))
	for i, s := range loadedScripts {
		calls[i] = &masters.Call{Args: []any{"SCRIPT", "LOAD", s.text}}
	}
	if err := k.conn.Exec(calls); err != nil {
		return err
	}
	for i, c := range calls {
		if c.Err != nil {
			return fmt.Errorf("does not take our scripts: %w", c.Err)
		}
		k.has(loadedScripts[i])
	}
	return nil
}

func (k *connection) close() {
	k.unwatch()
	_ = k.conn.Close()
	k.flight.end()
}

// disconnect gives up the connection. Requests that wait fail at once; undos wait for the next connection.
func (l *lane) disconnect(cause string) {
	l.connection.close()
	l.dialer.last, l.connection = l.connection, nil
	l.setDown(cause)
	l.master.disconnected()
}

// setDown notes why there is no connection.
func (l *lane) setDown(cause string) {
	failed := l.queue.disconnected(cause)
	news, all := l.told.Lost(cause, time.Now())
	if news && l.engine.ctx.Err() == nil { // else Close has closed the connection
		l.log(slog.LevelWarn, "no connection", "cause", cause, "all_so_far", all)
	}
	drop(failed, cause)
}

// reassess repeats the assessment of the handshake, on the same connection.
func (l *lane) reassess(k *connection) error {
	if err := l.assessor.inquire(k); err != nil {
		return err
	}
	if err := l.assessor.assess(k, nil); err != nil {
		return err
	}
	l.master.describe(&k.info)
	return nil
}

// spread returns a part of most, different between proxies, lanes and failures. The part is not random: a simulation can repeat it.
func (d *dialer) spread(most time.Duration, failures int) time.Duration {
	name := fmt.Sprint(d.engine.started.UnixNano(), d.master.Addr(), d.db, failures)
	return time.Duration(int64(most) * int64(hash(name)) >> 32)
}

// Servers are the connections that have been made, or are being made, by the run id of the server at their other end.
type servers struct {
	mu          sync.Mutex
	connections map[*connection]server
}

type server struct {
	master *master
	runID  string
}

// claim notes that k leads to a server, and returns "". If a connection to another address leads to the same server, claim notes
// nothing, and returns the other address (rule 10).
func (s *servers) claim(k *connection, m *master, runID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.connections {
		if other.master != m && runID != "" && other.runID == runID {
			return other.master.Addr()
		}
	}
	if s.connections == nil {
		s.connections = make(map[*connection]server)
	}
	s.connections[k] = server{m, runID}
	return ""
}

func (s *servers) forget(k *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, k)
}

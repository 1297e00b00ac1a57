package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// A link is one connection of a lane, and what its handshake learnt.
type link struct {
	conn     masters.Conn
	unwatch  func() // ends the watch over the engine's context
	clientID int64  // 0 if the master does not tell
	info     masters.Info
	silent   atomic.Bool     // it was closed for not answering
	programs map[string]bool // by SHA-1: the scripts that the master has
	clock    int64           // the master's latest TIME, ms
	clockAt  instant         // when we got it

	early         bool  // it is to be assessed again when others have been heard; see heardOthers
	marks         marks // as the assessment found them
	epoch         int64 // of the canary
	durable       bool  // the canary says so
	horizon       int64 // the horizon lasts until then, ms of the master's clock
	restraintArgs []any // ask for what keeps the master from evicting; nil if it does not tell
}

// connect makes the next connection. Before requests go over it, the one before is killed on the master, so that nothing
// still buffered there can run later (rule 3).
func (l *lane) connect(ctx context.Context) bool {
	next, err := l.dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.setDown(masters.Describe(err))
		}
		return false
	}
	l.link, l.last = next, nil
	l.queue.connected(next) // first, so that a release is either sent, or finds what is forgotten next
	l.ledger.forgetBroken()
	l.master.connected(&next.info)
	if l.told.Found() {
		l.log(slog.LevelInfo, "connected")
	}
	return true
}

// dial opens and prepares a connection. Closing the engine closes it, which ends whatever waits on it; so does a master
// that does not answer in time.
func (l *lane) dial(ctx context.Context) (*link, error) {
	patient, cancel := context.WithTimeout(ctx, l.engine.cfg.MasterDeadAfter)
	defer cancel()
	conn, err := l.master.Dial(patient, l.db)
	if err != nil && patient.Err() != nil {
		err = patient.Err() // the cause of err
	}
	if err != nil {
		return nil, err
	}
	next := &link{conn: conn}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	next.unwatch = func() {
		l.engine.servers.forget(next)
		unwatch()
	}
	stop := context.AfterFunc(patient, func() { _ = conn.Close() })
	err = l.handshake(next)
	if !stop() || err != nil && patient.Err() != nil {
		err = patient.Err() // as above
	}
	if err != nil {
		next.close()
		return nil, err
	}
	return next, nil
}

// killLast ends the former connection on the master, so that what that connection still held there can be undone. If another
// process answers by now, there is nothing left to kill, and the client id may be another client's. So without run ids to compare,
// nothing is killed, and undos are repeated.
func (l *lane) killLast(next *link) error {
	last := l.last
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
	if !over && !l.loose {
		l.loose = true
		l.log(slog.LevelWarn, "the former connection could not be killed: what it sets late is undone late")
	}
	return nil
}

// handshake learns who answers, ends the connection before, and finds out what the master remembers. It goes on without the
// answers that the master does not permit us to ask for.
func (l *lane) handshake(k *link) error {
	id := &masters.Call{Args: []any{"CLIENT", "ID"}}
	if err := k.conn.Exec([]*masters.Call{id}); err != nil {
		return err
	}
	k.clientID, _ = id.Reply.(int64)
	steps := []func(*link) error{l.inquire, (*link).loadScripts, l.killLast, l.readClock, l.assess}
	for _, step := range steps {
		if err := step(k); err != nil {
			return err
		}
	}
	return nil
}

// readClock asks for the time: the first batch needs it, and it shows how far the clock was set since the connection before.
func (l *lane) readClock(k *link) error {
	for range 1 + narrowings {
		doubt, err := l.askClock(k)
		if _, known := l.master.watch.early(0, 0); err != nil || doubt == "" && known {
			return err
		}
		if doubt != askedAsleep && doubt != "" {
			l.engine.warden.alarm()
			break
		}
	}
	return nil
}

// askClock returns why the clock is not to be trusted, or "".
func (l *lane) askClock(k *link) (doubt string, err error) {
	clock, sent := &masters.Call{Args: clockArgs}, l.engine.now()
	if err := k.conn.Exec([]*masters.Call{clock}); err != nil {
		return "", err
	}
	k.clock, _ = millis(clock)
	k.clockAt = l.engine.catchUp()
	if shown, ok := micros(clock); ok {
		doubt = l.master.watch.observe(sent, k.clockAt, shown, shown)
	}
	return doubt, nil
}

func (k *link) loadScripts() error {
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

func (k *link) close() {
	k.unwatch()
	_ = k.conn.Close()
}

// disconnect gives up the connection. What waits fails at once; undos wait for the next connection.
func (l *lane) disconnect(cause string) {
	l.link.close()
	l.last, l.link = l.link, nil
	l.setDown(cause)
	l.master.disconnected()
}

// setDown notes why there is no connection.
func (l *lane) setDown(cause string) {
	failed := l.queue.disconnected(cause)
	news, all := l.told.Lost(cause, time.Now())
	if news && l.engine.ctx.Err() == nil { // else it was Close that closed it
		l.log(slog.LevelWarn, "no connection", "cause", cause, "all_so_far", all)
	}
	drop(failed, cause)
}

// log writes a line about the lane; where no client uses the database, one for debugging.
func (l *lane) log(level slog.Level, text string, more ...any) {
	if !l.engine.databases[l.db].used.Load() {
		level = slog.LevelDebug
	}
	l.engine.cfg.Logger.Log(l.engine.ctx, level, text, append([]any{"master", l.master.Addr(), "db", l.db}, more...)...)
}

// pause waits before the next dial: 10 ms, doubling to 250 ms, so that a master that is back is found in a second.
func (l *lane) pause(ctx context.Context, failures int) {
	d := min(10*time.Millisecond<<min(failures-1, 10), 250*time.Millisecond)
	d = d/2 + l.spread(d/2, failures)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// spread returns a part of most that differs between proxies, lanes and failures, so that a master that is back is not
// met by all at once. It is not random: a simulation can repeat it.
func (l *lane) spread(most time.Duration, failures int) time.Duration {
	name := fmt.Sprint(l.engine.started.UnixNano(), l.master.Addr(), l.db, failures)
	return time.Duration(int64(most) * int64(hash(name)) >> 32)
}

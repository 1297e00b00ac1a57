package upstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"time"
)

// The upstream is asked once in watchEvery, and has answerMax to answer, because one Redis may be busy with one command
// for a while.
const (
	watchEvery = time.Second
	answerMax  = 5 * time.Second
	toldEvery  = time.Minute // between two lines about broken connections, at least
)

// A watcher asks the upstream for a sign of life, over a connection of its own. So the log has one line when the
// upstream goes and one when it is back, whether many clients use the upstream then or none.
type watcher struct {
	upstream *Redis
	log      *slog.Logger
	end      context.CancelFunc
	done     chan struct{}

	line   *line     // nil: none
	tried  time.Time // when a new connection was tried last
	since  time.Time // since when the upstream cannot be used
	broken uint64    // how often the upstream broke its connections, and was there again
	told   time.Time // when the log was told so last
}

// Watch begins to watch the upstream, and logs when the upstream goes and when it is back. Watch may be called once;
// Close ends the watch.
func (u *Redis) Watch(log *slog.Logger) { u.watch(log, watchEvery) }

func (u *Redis) watch(log *slog.Logger, every time.Duration) {
	ctx, end := context.WithCancel(context.Background())
	u.watcher = &watcher{upstream: u, log: log, end: end, done: make(chan struct{})}
	go u.watcher.run(ctx, every)
}

// Cause says why the upstream cannot be used, as far as Watch knows; empty if it can be used.
func (u *Redis) Cause() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cause
}

func (w *watcher) run(ctx context.Context, every time.Duration) {
	defer close(w.done)
	defer func() { w.line.close() }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	w.look(ctx)
	for {
		select {
		case <-tick.C:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look asks once. If the connection is broken, look makes another: its error tells more than the end of the old
// connection.
func (w *watcher) look(ctx context.Context) {
	had := w.line != nil
	lost := w.ask(ctx)
	if lost != nil {
		w.upstream.another.Store(true)
	}
	err := lost
	if lost != nil && had {
		err = w.ask(ctx)
	}
	if err == nil {
		err = w.tryNew(ctx)
	}
	switch {
	case ctx.Err() != nil: // we have ended it
	case err != nil:
		w.note(Innermost(err).Error())
	case lost != nil:
		w.noteBroken(lost)
		w.note("")
	default:
		w.note("")
	}
}

// noteBroken logs that the upstream broke its connections, but not each time: some device may do so every second.
func (w *watcher) noteBroken(lost error) {
	w.broken++
	if w.broken > 1 && time.Since(w.told) < toldEvery {
		return
	}
	w.told = time.Now()
	w.log.Warn("the upstream broke its connections, and is there again", "upstream", w.upstream.opt.Addr,
		"cause", Innermost(lost), "all_so_far", w.broken)
}

// note keeps the cause, and logs a new cause.
func (w *watcher) note(cause string) {
	u := w.upstream
	u.mu.Lock()
	was := u.cause
	u.cause = cause
	u.mu.Unlock()
	switch {
	case was == cause:
	case cause == "":
		w.log.Info("the upstream can be used again", "upstream", u.opt.Addr, "after", time.Since(w.since).Round(time.Millisecond))
	default:
		if was == "" {
			w.since = time.Now()
		}
		w.log.Warn("the upstream cannot be used: its commands get an error, or wait; locks go on", "upstream", u.opt.Addr, "cause", cause)
	}
}

// ask returns why the upstream cannot be used. After an error there is no connection.
func (w *watcher) ask(ctx context.Context) error {
	var err error
	if w.line == nil {
		err = w.begin(ctx)
	}
	if err == nil {
		err = w.question(ctx)
	}
	if err != nil {
		w.line.close()
		w.line = nil
	}
	return err
}

// begin makes the connection, and looks where it leads. A server may hang up upon this question, which clients do not
// ask, or because the server is about to end. So begin asks twice. Then begin makes another connection without the
// question, only to see whether the server is there.
func (w *watcher) begin(ctx context.Context) error {
	for range 2 {
		if err := w.connect(ctx); err != nil {
			return err
		}
		err := w.lookForLoop(ctx)
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) || w.upstream.isBarred() {
			return err
		}
	}
	return w.connect(ctx)
}

func (w *watcher) connect(ctx context.Context) error {
	conn, err := w.upstream.dial(ctx, Greeting{Name: "lockproxy"})
	if err == nil {
		w.line = newLine(conn)
	}
	return err
}

// question asks over the connection.
func (w *watcher) question(ctx context.Context) error {
	reply, err := w.line.ask(ctx, answerMax, "PING")
	if refused, ok := reply.(ReplyError); ok && !strings.HasPrefix(string(refused), "NOPERM") { // PING is not permitted for this user
		err = refused
	}
	return err
}

// errLoop says that upstream has the address that clients use, or the address of another lockproxy. Then each lockproxy
// would send a command on to the next, over a new connection, until there are max_clients.
var errLoop = errors.New("a lockproxy answers there, perhaps this one: upstream must lead to the Redis that has the data")

// lookForLoop returns errLoop if the new connection leads to a lockproxy, which alone has such a section. Then
// connections for clients are barred, until a connection leads elsewhere.
func (w *watcher) lookForLoop(ctx context.Context) error {
	reply, err := w.line.ask(ctx, answerMax, "INFO", "lockproxy")
	if err != nil {
		return err
	}
	if text, _ := reply.(string); strings.HasPrefix(text, "# Lockproxy") {
		err = errLoop
	}
	w.upstream.bar(err)
	return err
}

// tryNew returns an error if the server wants a login and lockproxy has none. A server that is given a password goes on
// serving existing connections, such as the watcher's. So if a client has connected since the last try, tryNew tries a
// new connection.
func (w *watcher) tryNew(ctx context.Context) error {
	u := w.upstream
	if u.opt.Username != "" || u.opt.Password() != "" || !u.reachedSince(w.tried) && !ReplyError(u.Cause()).WantsLogin() {
		return nil
	}
	w.tried = time.Now()
	conn, err := u.dial(ctx, Greeting{Name: "lockproxy"})
	if refused, ok := errors.AsType[ReplyError](err); ok && refused.WantsLogin() {
		return refused
	}
	if err == nil {
		_ = conn.Close()
	}
	return nil // any other error is for the watcher's own connection to find out
}

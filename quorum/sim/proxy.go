package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/pubsub"
)

// A proxy is an address at which clients find an engine, from time to time a new engine.
type proxy struct {
	world *World
	id    int
	lives int
	life  *life        // nil while the proxy is down
	wall  atomic.Int64 // the lead of its machine's wall clock, ns
}

// A life is one process of a proxy.
type life struct {
	proxy   *proxy
	number  int
	name    string
	engine  *quorum.Engine // nil when the life has ended
	conns   []*conn
	dead    bool
	pending []*question

	foretold map[place]bool // masters, by address and database: others have told how long their quarantines last

	front    Front // nil: clients call the engine
	hub      *pubsub.Hub
	entrance *entrance
	wires    []*wire
}

// A question is a request whose answer a client awaits.
type question struct {
	over bool
	lost func()
}

// boot starts a process. Either the world's mu is held, or nothing runs yet.
func (p *proxy) boot() {
	w := p.world
	p.lives++
	l := &life{proxy: p, number: p.lives, name: fmt.Sprintf("p%d.%d", p.id+1, p.lives), foretold: make(map[place]bool)}
	var ms []masters.Master
	var sources []masters.Source
	for i := range w.servers {
		e := &endpoint{life: l, id: i}
		ms, sources = append(ms, e), append(sources, e)
	}
	cfg := *w.plan.of(p.id)
	if cfg.Slept = func(time.Time) time.Duration { return w.asleep() }; w.plan.Paused {
		cfg.Slept = func(time.Time) time.Duration { return 0 }
	}
	cfg.Wall, cfg.Pause, cfg.Logger = p.wallClock, l.pauses(), slog.New(&traceHandler{life: l})
	e, err := quorum.New(cfg, ms)
	if err != nil {
		panic(err)
	}
	l.engine, p.life = e, l
	l.openDoor(sources, cfg.Logger)
	w.logf(l.name, "is up")
}

// kill is kill -9: no further byte leaves the process, and its clients are told that their connections broke.
func (p *proxy) kill() {
	l := p.life
	if l == nil {
		return
	}
	p.world.logf(l.name, "is killed")
	l.dead, p.life = true, nil
	for _, c := range l.conns {
		c.hangUp(net0)
	}
	for _, c := range l.wires {
		c.sever()
	}
	l.loseClients()
	p.end(l)
}

// stop is an orderly end: the engine is closed, and only then its clients are left.
func (p *proxy) stop() {
	l := p.life
	if l == nil {
		return
	}
	p.world.logf(l.name, "is told to stop")
	p.life = nil
	p.end(l)
}

func (p *proxy) end(l *life) {
	p.world.closing.Go(func() {
		l.shutDown()
		l.engine.Close()
		p.world.mu.Lock()
		l.loseClients()
		l.dead = true
		l.engine, l.front, l.hub = nil, nil, nil // megabytes; the world remembers the life
		p.world.mu.Unlock()
	})
}

func (l *life) loseClients() {
	for _, q := range l.pending {
		if !q.over {
			q.over = true
			q.lost()
		}
	}
	l.pending = nil
}

// ask puts a question to the engine of a proxy, and returns the answer; false if the connection to the proxy broke.
// heard gets the answer at the instant of the answer, with the world's mu held.
func ask[T any](p *proxy, heard func(l *life, answer T), start func(e *quorum.Engine, done func(T))) (T, bool) {
	w := p.world
	c := make(chan T, 1)
	w.mu.Lock()
	l := p.life
	if l == nil {
		w.mu.Unlock()
		var none T
		return none, false
	}
	e, q := l.engine, &question{lost: func() { close(c) }}
	l.pending = append(l.pending, q)
	if len(l.pending) > 32 {
		l.prune()
	}
	w.mu.Unlock()
	start(e, func(answer T) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if q.over {
			return
		}
		q.over = true
		heard(l, answer)
		c <- answer
	})
	answer, ok := <-c
	return answer, ok
}

// prune forgets the answered questions.
func (l *life) prune() {
	kept := l.pending[:0]
	for _, q := range l.pending {
		if !q.over {
			kept = append(kept, q)
		}
	}
	clear(l.pending[len(kept):])
	l.pending = kept
}

// A traceHandler puts the engine's log into the trace, and tells the world facts that only the log has.
type traceHandler struct{ life *life }

// Enabled says that every line is wanted.
func (h *traceHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes one line. An engine logs without the world's mu.
func (h *traceHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("log: " + r.Message)
	var of place
	r.Attrs(func(a slog.Attr) bool {
		switch b.WriteString(" " + a.String()); a.Key {
		case "master":
			of.key = a.Value.String()
		case "db":
			of.db = int(a.Value.Int64())
		}
		return true
	})
	w := h.life.proxy.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case strings.HasPrefix(r.Message, "a fence rests on the clock"):
		w.checker.unfounded()
	case strings.HasPrefix(r.Message, "quarantined:"):
		delete(h.life.foretold, of)
	case strings.HasPrefix(r.Message, "quarantine: the other masters have said"):
		h.life.foretold[of] = true
	}
	w.logf(h.life.name, "%s", b.String())
	return nil
}

// WithAttrs is not used by the engine.
func (h *traceHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup is not used by the engine.
func (h *traceHandler) WithGroup(string) slog.Handler { return h }

// pauses returns the function that chooses a process's pauses after split votes.
func (l *life) pauses() func(most time.Duration) time.Duration {
	w := l.proxy.world
	r := w.random("pauses", l.proxy.id, l.number)
	return func(most time.Duration) time.Duration {
		w.mu.Lock()
		defer w.mu.Unlock()
		return between(r, 0, most-1)
	}
}

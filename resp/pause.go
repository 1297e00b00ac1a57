package resp

import (
	"sync"
	"sync/atomic"
	"time"
)

// A pause is CLIENT PAUSE: until it is over, this proxy's clients wait with commands that may change something, or with all.
// Clients of other proxies go on, and so do those that speak to the upstream without a proxy.
type pause struct {
	on atomic.Bool

	mu      sync.Mutex // guards what follows
	until   time.Time
	kind    pauseKind
	timer   *time.Timer
	waiting map[*session]struct{}
}

// A pauseKind is what clients wait with. A stricter one is greater.
type pauseKind uint8

const (
	pauseWrites pauseKind = iota
	pauseAll
)

// begin starts a pause, or makes the one there is longer and stricter, as Redis does.
func (p *pause) begin(d time.Duration, kind pauseKind) {
	until := time.Now().Add(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on.Load() {
		p.until, p.kind = until, kind
		p.timer = time.AfterFunc(d, p.over)
		p.on.Store(true)
		return
	}
	p.kind = max(p.kind, kind)
	if until.After(p.until) {
		p.until = until
		p.timer.Reset(d)
	}
}

// over is called when the time may be up.
func (p *pause) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.until); left > 0 {
		p.timer.Reset(left)
		return
	}
	p.finish()
}

// end lets all go on.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

// finish is end where p.mu is held, so that a pause which begins meanwhile does not end with the one before it.
func (p *pause) finish() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.on.Store(false)
	for s := range p.waiting {
		s.Kick()
	}
	p.waiting = nil
}

// holds says whether the command has to wait. Its reader is kicked when the pause is over.
func (p *pause) holds(c *call, cmd *command) bool {
	if !p.on.Load() {
		return false
	}
	changes := c.mayChange(cmd)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on.Load() || p.kind == pauseWrites && !changes {
		return false
	}
	if p.waiting == nil {
		p.waiting = map[*session]struct{}{}
	}
	p.waiting[c.session] = struct{}{}
	return true
}

// keeps says whether the session waits with its command until the pause is over.
func (p *pause) keeps(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waits := p.waiting[s]
	return waits
}

// leave is for a session that ends.
func (p *pause) leave(s *session) {
	p.mu.Lock()
	delete(p.waiting, s)
	p.mu.Unlock()
}

// mayChange says whether the command may change something that others see. cmd is its row, or nil if there is none. A command that
// the proxy does not know may change something at the upstream; where there is none, it is answered at once, as by Redis.
func (c *call) mayChange(cmd *command) bool {
	cmd = cmd.row(c.args)
	switch {
	case cmd == nil:
		return c.server.cfg.Upstream != nil && c.server.commandsThere().MayChange(c.args)
	case cmd.name == "exec":
		return c.transaction.changes
	}
	return cmd.flags&write != 0 || cmd.name == "publish" || cmd.name == "spublish" ||
		cmd.group == "scripting" && !cmd.keys.none() && cmd.flags&readOnly == 0
}

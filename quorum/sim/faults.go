package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A faultKind is a way to break something, and to mend it again.
type faultKind struct {
	name      string
	forgets   bool // a master forgets data, or a clock jumps
	endsProxy bool
	setsClock bool
	strike    func(w *World, r *rand.Rand) (mend func())
}

var faultKinds = []faultKind{
	{name: "link cut towards the master", strike: cut(up)},
	{name: "link cut towards the proxy", strike: cut(down)},
	{name: "link cut", strike: cut(up, down)},
	{name: "link slow", strike: slowLink},
	{name: "proxy cut off", strike: cutOff},
	{name: "connection reset for the proxy", strike: reset(true, false)},
	{name: "connection reset for the master", strike: reset(false, true)},
	{name: "connection reset", strike: reset(true, true)},
	{name: "master stopped", strike: stopMaster},
	{name: "master slow", strike: slowMaster},
	{name: "master far away", strike: farMaster},
	{name: "master busy", strike: busyMaster},
	{name: "scripts flushed", strike: flushScripts},
	{name: "master killed, nothing lost", strike: killMaster(false)},
	{name: "machine lost, nothing else", strike: killMaster(true)},
	{name: "proxy killed", endsProxy: true, strike: endProxy((*proxy).kill)},
	{name: "proxy restarted", endsProxy: true, strike: endProxy((*proxy).stop)},
}

// kindOf finds a fault by its name.
func kindOf(name string) faultKind {
	kinds := slices.Concat(faultKinds, forgetKinds, refusalKinds, operatorKinds, stirKinds, farKinds)
	return kinds[slices.IndexFunc(kinds, func(f faultKind) bool { return f.name == name })]
}

// startFaults begins to break things, until the world is quiet.
func (w *World) startFaults() {
	r := w.random("faults")
	if w.plan.Rolls {
		w.after(w.rest(), func() { w.roll(r, 0, w.now()) })
	}
	if len(w.plan.Faults) == 0 {
		return
	}
	if w.plan.Shifts {
		w.shift(w.random("shifts"))
	}
	var next func()
	next = func() {
		if w.quiet {
			return
		}
		name := pick(r, w.plan.Faults...)
		kind := kindOf(name)
		if kind.forgets && !w.plan.Blunt && w.victim(r) == nil { // the fault waits for its moment
			w.after(w.toBeat(between(r, time.Millisecond, 20*time.Millisecond), r), next)
			return
		}
		if mend := kind.strike(w, r); mend != nil {
			w.faults[name]++
			lasts := duration(r)
			if w.plan.Brief > 0 {
				lasts = min(lasts, w.plan.Brief)
			}
			w.after(lasts, func() {
				if !w.quiet {
					mend()
				}
			})
		}
		w.after(w.toBeat(time.Duration(r.ExpFloat64()*float64(w.plan.Gap)), r), next)
	}
	w.after(w.toBeat(time.Duration(r.ExpFloat64()*float64(w.plan.Gap)), r), next)
}

// duration is the length of a fault: from 1 ms to 2 s, each order of magnitude equally likely.
func duration(r *rand.Rand) time.Duration {
	return time.Duration(float64(time.Millisecond) * math.Pow(2000, r.Float64()))
}

// mendAll ends every fault.
func (w *World) mendAll() {
	w.quiet = true
	w.logf("world", "the faults are over")
	for _, links := range w.links {
		for _, l := range links {
			l.heal()
		}
	}
	slices.SortFunc(w.servers, func(a, b *server) int { return a.id - b.id })
	for len(w.former) > 0 {
		w.retire(w.former[0])
	}
	for _, s := range w.servers {
		if s.down {
			s.boot()
		}
		s.resume()
		if s.replica { // a promotion to master changes the lineage
			s.descend()
		}
		s.slow, s.hogged, s.refuses, s.replica = 0, false, "", false
		w.after(time.Second, func() { s.policy = "" }) // by then proxies have seen the policy
		s.clock.run(w.now(), s.rate)
	}
	for i, p := range w.proxies {
		w.after(time.Duration(i)*time.Microsecond, func() { // timers of two engines would come due together
			if p.life == nil {
				p.boot()
			}
		})
	}
}

func (w *World) anyLink(r *rand.Rand) (*link, string) {
	p, s := w.anyProxy(r), w.anyServer(r)
	return w.links[p.id][s.id], s.addr
}

func cut(ways ...int) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		l, name := w.anyLink(r)
		w.logf("fault", "a link to %s is cut (%v)", name, ways)
		for _, way := range ways {
			l.block(way)
		}
		return l.heal
	}
}

func slowLink(w *World, r *rand.Rand) func() {
	l, name := w.anyLink(r)
	l.slow = between(r, time.Millisecond, 60*time.Millisecond)
	w.logf("fault", "a link to %s is slow", name)
	return func() { l.slow = 0 }
}

func cutOff(w *World, r *rand.Rand) func() {
	p := w.anyProxy(r).id
	w.logf("fault", "p%d is cut off", p+1)
	for _, l := range w.links[p] {
		l.block(up)
		l.block(down)
	}
	return func() {
		for _, l := range w.links[p] {
			l.heal()
		}
	}
}

// reset breaks the connections over one link: at one end, unnoticed by the other end, or at both.
func reset(proxyEnd, masterEnd bool) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		p, s := w.anyProxy(r), w.anyServer(r)
		if p.life == nil {
			return nil
		}
		w.logf("fault", "connections from %s to %s break", p.life.name, s.addr)
		for _, c := range p.life.conns {
			if c.server != s || c.gone || c.session == nil {
				continue
			}
			if masterEnd && !c.killed {
				s.drop(c)
			}
			if proxyEnd {
				c.hangUp(net0)
			}
		}
		return func() {}
	}
}

func stopMaster(w *World, r *rand.Rand) func() {
	s := w.anyServer(r)
	if s.down || s.stopped {
		return nil
	}
	s.stopped = true
	w.logf("fault", "%s is stopped", s.addr)
	return s.resume
}

func (s *server) resume() {
	if s.stopped {
		s.stopped = false
		s.logf("goes on")
		s.work()
	}
}

func slowMaster(w *World, r *rand.Rand) func() {
	s := w.anyServer(r)
	s.slow = between(r, 100*time.Microsecond, 20*time.Millisecond)
	w.logf("fault", "%s is slow", s.addr)
	return func() { s.slow = 0 }
}

// farMaster makes the ways between one master and all proxies long.
func farMaster(w *World, r *rand.Rand) func() {
	s := w.anyServer(r)
	w.keepAway(s, between(r, time.Millisecond, 60*time.Millisecond))
	return func() { w.keepAway(s, 0) }
}

func (w *World) keepAway(s *server, by time.Duration) {
	w.logf("fault", "%s is %v away", s.addr, by)
	for _, links := range w.links {
		links[s.id].slow = by
	}
}

// busyMaster lets a script of somebody else run for long: meanwhile every command is answered with an error.
func busyMaster(w *World, r *rand.Rand) func() {
	s := w.anyServer(r)
	s.hogged = true
	w.logf("fault", "%s is busy", s.addr)
	return func() { s.hogged = false }
}

func flushScripts(w *World, r *rand.Rand) func() {
	clear(w.anyServer(r).scripts)
	return func() {}
}

// killMaster kills a master that writes every command to its append-only file before it answers.
func killMaster(silent bool) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := w.anyServer(r)
		if s.down || s.append != "always" {
			return nil
		}
		w.logf("fault", "%s is killed", s.addr)
		s.crash(silent)
		return s.restart
	}
}

func (s *server) restart() {
	if s.down {
		s.boot()
		s.logf("is back")
	}
}

func endProxy(how func(*proxy)) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		p := w.anyProxy(r)
		if p.life == nil {
			return nil
		}
		how(p)
		return func() {
			if p.life == nil {
				p.boot()
			}
		}
	}
}

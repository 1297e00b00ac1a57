package sim

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum"
)

// Fences: in worlds of the class Fenced, clients also take locks with a fence, and ask for the newest fence. The wall
// clocks of the proxies show any time, and jump, so that clocks alone would not make fences grow. All random draws for
// this are from streams of their own.

func (p *Plan) fences(r *rand.Rand) {
	p.Fences = pick(r, 0.3, 0.9, 1)
	p.Walls = pick(r, 20*time.Millisecond, 200*time.Millisecond, 2*time.Second)
	if chance(r, 0.5) {
		p.aimAt(aim{"fences", aimFences}, r)
	}
}

// aimFences has short locks, one after the other, on no spare master, and masters that forget, and soon count again. So
// a fence is kept exactly where needed, or is lost.
func aimFences(p *Plan, r *rand.Rand) {
	p.Blunt, p.Transactions = false, 0
	p.Clients, p.Resources = 2+r.IntN(2), 1
	p.Masters = pick(r, 3, 3, 3, 4, 5)
	p.Config.InstanceTimeout, p.Config.Grace = pick(r, 10*time.Millisecond, 30*time.Millisecond), 20*time.Millisecond
	p.Config.TTLMax = pick(r, 150*time.Millisecond, 150*time.Millisecond, 400*time.Millisecond)
	p.TTLLeast, p.TTLMost, p.Hold = 60*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond
	p.Think, p.Attempts = pick(r, 30*time.Millisecond, 300*time.Millisecond, time.Second), 50+r.IntN(100)
	p.Append = pick(r, "", "everysec")
	p.Faults = []string{"all data flushed", pick(r, "master restarted empty", "master restarted from a snapshot", "databases swapped")}
	if chance(r, 0.5) {
		p.Faults = append(p.Faults, "proxy killed")
	}
	if chance(r, 0.5) {
		p.Faults = append(p.Faults, pick(r, "link cut", "master slow", "connection reset", "master far away"))
	}
	p.Gap = pick(r, 50*time.Millisecond, 200*time.Millisecond, time.Second)
}

// startWalls lets the proxies' wall clocks jump.
func (w *World) startWalls() {
	if w.plan.Fences == 0 {
		return
	}
	r := w.random("walls")
	for _, p := range w.proxies {
		p.wall.Store(int64(between(r, -time.Hour, time.Hour)))
	}
	ahead := time.Hour
	var next func()
	next = func() {
		if w.quiet {
			return
		}
		// One clock is ahead of all times seen so far. The other proxies may have learnt of that time, or not.
		p := pick(r, w.proxies...)
		if chance(r, 0.5) {
			ahead += between(r, 0, time.Hour)
			p.wall.Store(int64(ahead))
		} else {
			p.wall.Store(int64(between(r, -2*time.Hour, ahead)))
		}
		w.after(time.Duration(r.ExpFloat64()*float64(w.plan.Walls)), next)
	}
	w.after(time.Duration(r.ExpFloat64()*float64(w.plan.Walls)), next)
}

// wallClock is the wall clock of a proxy's machine.
func (p *proxy) wallClock() time.Time { return time.Now().Add(time.Duration(p.wall.Load())) }

// fences says whether the next attempt asks for a fence.
func (c *client) fences(req *quorum.AcquireRequest) bool {
	return c.world.plan.Fences > 0 && !req.Reentrant && !req.WantHolder && chance(c.fencing, c.world.plan.Fences)
}

// A fenceBook is the checker's knowledge of fences.
type fenceBook struct {
	newest int64            // the largest fence given out since the last unfounded one
	of     map[string]int64 // the same, by resource
	given  map[string][]int64
	resets int // the number of unfounded fences: earlier fences do not bind
}

// A fenceMark has the fences given out before some moment.
type fenceMark struct {
	newest, of int64
	resets     int
}

func (k *checker) fenceMark(resource string) fenceMark {
	if k.world.plan.Databases { // each has fences of its own
		return fenceMark{k.fences.of[resource], k.fences.of[resource], k.fences.resets}
	}
	return fenceMark{k.fences.newest, k.fences.of[resource], k.fences.resets}
}

// fenceGiven takes the fence told to a client.
func (k *checker) fenceGiven(resource string, a *quorum.Acquired, before fenceMark) {
	b := &k.fences
	switch {
	case a.Fence <= 0 || a.Fence >= 1<<53:
		k.report(noFence, "%s: %d", resource, a.Fence)
	case b.resets == before.resets && a.Fence <= before.newest:
		k.report(oldFence, "%s: %d, after %d had been given out", resource, a.Fence, before.newest)
	}
	k.counts.Fenced++
	if a.Unfounded {
		k.counts.Unfounded++
	}
	b.newest = max(b.newest, a.Fence)
	b.of[resource] = max(b.of[resource], a.Fence)
	b.given[resource] = append(b.given[resource], a.Fence)
}

// unfounded notes that a proxy is about to have masters keep a fence that rests on the clock, whether its attempt wins
// or not.
func (k *checker) unfounded() {
	k.fences.resets++
	k.fences.newest = 0
	clear(k.fences.of)
}

// fenceTold takes the newest fence of a resource as told to a client, which holds p or nothing.
func (k *checker) fenceTold(resource string, v quorum.FenceView, before fenceMark, p *promise) {
	switch {
	case v.Err != nil || before.resets != k.fences.resets:
	case v.Fence != 0 && v.Fence < before.of:
		k.report(staleFence, "%s: %d, after %d had been given out", resource, v.Fence, before.of)
	case p != nil && p.extended && v.Fence == 0 && k.records(resource) <= len(k.world.servers)/2: // not promised (docs/safety.md)
	case p != nil && p.fence != 0 && v.Fence != p.fence && k.stands(p) && !k.world.plan.Forgets:
		k.report(staleFence, "%s: %d, while %d holds the lock", resource, v.Fence, p.fence)
	}
}

// records is how many masters have kept a fence beside the resource.
func (k *checker) records(resource string) (n int) {
	for _, s := range k.world.servers {
		if _, ok := s.store.get(s.world.plan.key(resource).DB, "lockproxy:fence:"+resource, s.clock.millis(s.now())); ok {
			n++
		}
	}
	return n
}

// keepers returns the masters that know the newest fence, if none of these is spare.
func (k *checker) keepers() []*server {
	var found []*server
	for _, s := range k.world.servers {
		it, _ := s.store.get(0, "lockproxy:fence", 0)
		text, _, _ := strings.Cut(it.text, " ")
		if fence, err := strconv.ParseInt(text, 10, 64); err == nil && fence >= k.fences.newest && !s.down {
			found = append(found, s)
		}
	}
	if len(found) > len(k.world.servers)/2+1 {
		return nil
	}
	return found
}

// asks says whether a speaking client next asks for the newest fence.
func (s *speaker) asks(l *wanted) bool {
	return s.world.plan.Fences > 0 && l.fenced && chance(s.fencing, 0.5)
}

// askFence asks whether the fence of a lock, which may be over, is the newest.
func (s *speaker) askFence(l *wanted) bool {
	w, k := s.world, &s.world.checker
	q := &request{words: []string{"FENCE", l.resource, strconv.FormatInt(l.fence, 10)}, most: 4}
	var before fenceMark
	var held promise
	w.do(func() { before, held = k.fenceMark(l.resource), *l.promise })
	q.on = func() {
		n, is := q.reply.(int64)
		held.doubtful, held.over = l.promise.doubtful, l.promise.over
		if is && !q.held {
			k.fenceTold(l.resource, quorum.FenceView{Fence: n * l.fence}, before, &held)
		}
	}
	_, ok := s.await(q)
	return ok
}

// askFence asks for the newest fence of a resource that the client holds by p.
func (c *client) askFence(p *promise) {
	w := c.world
	var before fenceMark
	var held promise
	w.do(func() { before, held = w.checker.fenceMark(p.resource), *p })
	began := w.now()
	_, _ = ask(c.proxy, func(l *life, v quorum.FenceView) {
		w.logf(c.name, "via %s: the newest fence of %s is %d, %v", l.name, p.resource, v.Fence, v.Err)
		w.checker.ended(w.now()-began, "a question of "+c.name)
		held.doubtful = held.doubtful || p.doubtful
		w.checker.fenceTold(p.resource, v, before, &held)
	}, func(e *quorum.Engine, done func(quorum.FenceView)) { e.Fence(c.world.plan.key(p.resource), done) })
}

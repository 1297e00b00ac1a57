package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Faults that make masters forget data, or make their clocks jump. The proof of every batch, the quarantine and the
// horizon protect against them.
var forgetKinds = []faultKind{
	{name: "master restarted empty", forgets: true, strike: restart(func(s *server, _ *rand.Rand) { s.store = newStore() })},
	{name: "master restarted, last second lost", forgets: true, strike: restart(func(s *server, r *rand.Rand) {
		if s.append != "always" {
			s.store.rewind(s.now() - between(r, 0, time.Second))
		}
	})},
	{name: "master restarted from a snapshot", forgets: true, strike: restart(func(s *server, r *rand.Rand) {
		if s.append == "" {
			s.store.rewind(between(r, 0, s.now()))
		}
	})},
	{name: staleReplica, forgets: true, strike: failover},
	{name: allRestarted, forgets: true, strike: restartAll},
	{name: "all data flushed", forgets: true, strike: wipe("FLUSHALL")},
	{name: "a database flushed", forgets: true, strike: wipe("FLUSHDB")},
	{name: "databases swapped", forgets: true, strike: swapDatabases},
	{name: "keys evicted", forgets: true, strike: evict},
	{name: "clock stepped forwards", forgets: true, setsClock: true, strike: stepClock(1)},
	{name: "clock stepped backwards", forgets: true, setsClock: true, strike: stepClock(-1)},
	{name: "clock stepped far away", forgets: true, setsClock: true, strike: stepFarClock},
	{name: "clock frozen", forgets: true, setsClock: true, strike: runClock(0, 0)},
	{name: "clock much too fast", forgets: true, setsClock: true, strike: runClock(1.2, 4)},
	{name: suspended, forgets: true, setsClock: true, strike: suspendProxies},
}

// staleReplica is a fault of masters with replicas that say so.
const staleReplica = "failover to a stale replica"

// allRestarted is a fault after which no master tells how long locks may be.
const allRestarted = "all masters restarted empty"

// suspended is a fault after which the order of simultaneous timers matters (doc.go).
const suspended = "proxies suspended"

// restart kills a master, makes the master forget, and starts it again later.
func restart(forget func(*server, *rand.Rand)) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := w.victim(r)
		if s.down {
			return nil
		}
		w.logf("fault", "%s is killed and forgets", s.addr)
		s.crash(chance(r, 0.3))
		forget(s, r)
		return s.restart
	}
}

// failover puts a replica that was behind into a master's place. The replica was there all the time, or joins now. The
// old master may be a replica itself until then, with its connections cut, as Sentinel does. Or the master is only a
// replica for a while, of a copy that is behind, and then a master again.
func failover(w *World, r *rand.Rand) func() {
	s := w.victim(r)
	if s.down || s.replica || s.replicas > 0 != w.plan.Standing {
		return nil
	}
	joined := s.now()
	if w.plan.Standing {
		joined = 0
	}
	promote := func() {
		s.crash(false)
		s.boot()
		s.fallBehind(r, joined)
		s.replicas = w.replicas()
		if !w.plan.Standing || chance(r, 0.5) { // otherwise it was started as a master, and does not know its past
			s.descend()
		}
		s.logf("is another server")
	}
	switch how := r.Float64(); {
	case !w.plan.Standing:
		w.logf("fault", "a replica of %s joins", s.addr)
		s.replicas = 1
		w.await(r, s, joined+400*time.Millisecond, promote)
		return func() {}
	case how < 0.4:
		w.logf("fault", "%s is a replica", s.addr)
		s.replica = true
		return promote
	case how < 0.7:
		w.logf("fault", "%s is a replica for a while", s.addr)
		s.cutConnections(false)
		s.replica = true
		s.fallBehind(r, joined)
		return func() {
			s.replica = false
			s.descend()
		}
	}
	w.logf("fault", "%s fails over", s.addr)
	promote()
	return func() {}
}

// await lets f happen when the server's vote is needed and no master is away, or at a true time.
func (w *World) await(r *rand.Rand, s *server, until time.Duration, f func()) {
	w.after(between(r, time.Millisecond, 40*time.Millisecond), func() {
		switch {
		case w.quiet:
		case w.now() >= until, slices.Contains(w.checker.needed(), s) && !slices.ContainsFunc(w.servers, (*server).away):
			f()
		default:
			w.await(r, s, until, f)
		}
	})
}

// away says that the server does not answer.
func (s *server) away() bool { return s.stopped || s.down }

// fallBehind gives the server the data of a copy that has not heard the latest changes, since the copy joined.
func (s *server) fallBehind(r *rand.Rand, joined time.Duration) {
	s.store.rewind(max(joined, s.now()-between(r, 0, 300*time.Millisecond)))
}

// descend notes that the server was promoted.
func (s *server) descend() {
	s.promotions++
	s.lineage = fmt.Sprintf("%036d%02d%02d", 1, s.promotions, s.id)
}

// replicas is how many each master has when nothing is wrong.
func (w *World) replicas() int {
	if w.plan.Standing {
		return 1
	}
	return 0
}

func restartAll(w *World, r *rand.Rand) func() {
	w.logf("fault", "all masters are killed and forget")
	for _, s := range w.servers {
		if !s.down {
			s.crash(false)
		}
		s.store = newStore()
	}
	return func() {
		for _, s := range w.servers {
			s.restart()
		}
	}
}

func wipe(command string) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := w.victim(r)
		if s.down {
			return nil
		}
		w.logf("fault", "%s: %s", s.addr, command)
		c := &session{}
		if w.plan.Databases {
			c.db = r.IntN(databases)
		}
		s.do(c, []string{command})
		return func() {}
	}
}

func swapDatabases(w *World, r *rand.Rand) func() {
	s := w.victim(r)
	if s.down {
		return nil
	}
	w.logf("fault", "%s: SWAPDB 0 1", s.addr)
	s.store.do(mutation{at: s.now(), kind: swapped})
	return func() {}
}

// evict tells a master to throw keys away, which happens at once: the proxies have not seen the setting yet. Evictions
// may go on until there is enough memory. By then the proxies have seen it.
func evict(w *World, r *rand.Rand) func() {
	s := w.victim(r)
	if s.policy != "" {
		return nil
	}
	s.policy = pick(r, "allkeys-lru", "volatile-lru")
	w.logf("fault", "%s is told to evict (%s)", s.addr, s.policy)
	s.evictSome(r)
	return func() { w.after(2*time.Second, func() { s.evictAgain(r, r.IntN(4)) }) }
}

// evictAgain throws keys away, some times more.
func (s *server) evictAgain(r *rand.Rand, times int) {
	if s.world.quiet {
		return
	}
	if times == 0 {
		s.policy = ""
		return
	}
	s.evictSome(r)
	pause := between(r, 0, 300*time.Millisecond)
	if times == 1 {
		pause = 0
	}
	s.world.after(pause, func() { s.evictAgain(r, times-1) })
}

// evictSome throws away half of the keys that the policy lets go: locks, or marks as well.
func (s *server) evictSome(r *rand.Rand) {
	for db := range s.world.plan.used() {
		for _, key := range s.keys(db) {
			mayGo := s.policy == "allkeys-lru" || s.store.dbs[db][key].expires != 0
			if mayGo && chance(r, 0.5) {
				s.logf("evicts %s", key)
				s.store.do(mutation{at: s.now(), db: db, kind: removed, key: key})
				s.evicted++
			}
		}
	}
}

// keys returns the keys of a database in order.
func (s *server) keys(db int) []string {
	var list []string
	for key := range s.store.dbs[db] {
		list = append(list, key)
	}
	slices.SortFunc(list, strings.Compare)
	return list
}

func stepClock(way time.Duration) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := w.victim(r)
		w.setClock(s, way*duration(r)*pick[time.Duration](r, 1, 1, 10))
		return func() {}
	}
}

// stepFarClock sets a clock forwards while answers take so long that nobody sees the step.
func stepFarClock(w *World, r *rand.Rand) func() {
	s := w.victim(r)
	away := between(r, 60*time.Millisecond, 140*time.Millisecond)
	by := time.Duration((0.4 + 0.6*r.Float64()) * float64(away))
	w.keepAway(s, away)
	w.await(r, s, w.now()+600*time.Millisecond, func() {
		w.setClock(s, by)
	})
	return func() { w.after(time.Second, func() { w.keepAway(s, 0) }) }
}

// runClock lets a clock stand still, or run too fast, for a while.
func runClock(least, most float64) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := w.victim(r)
		rate := least + (most-least)*r.Float64()
		w.logf("fault", "the clock of %s runs at %.2f", s.addr, rate)
		if rate > 1 {
			s.goesAhead()
		}
		s.clock.run(w.now(), rate)
		return func() { s.clock.run(w.now(), s.rate) }
	}
}

// suspendProxies lets the machine of all proxies sleep: their monotonic clock stands still, and all other clocks go on.
// The simulation's time is the proxies' time, so the other clocks jump.
func suspendProxies(w *World, r *rand.Rand) func() {
	by := duration(r)
	w.logf("fault", "the proxies sleep for %v", by)
	w.slept.Add(int64(by))
	for _, s := range slices.Concat(w.servers, w.former) {
		s.clock.goOn(w.now(), by)
	}
	w.checker.slept(by)
	return func() {}
}

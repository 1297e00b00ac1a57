package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// What makes masters forget what they were told, or their clocks jump: against it stand the proof with every batch,
// the quarantine and the horizon.
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
	{name: "all masters restarted empty", forgets: true, strike: restartAll},
	{name: "all data flushed", forgets: true, strike: wipe("FLUSHALL")},
	{name: "a database flushed", forgets: true, strike: wipe("FLUSHDB")},
	{name: "databases swapped", forgets: true, strike: swapDatabases},
	{name: "keys evicted", forgets: true, strike: evict},
	{name: "clock stepped forwards", forgets: true, strike: stepClock(1)},
	{name: "clock stepped backwards", forgets: true, strike: stepClock(-1)},
	{name: "clock frozen", forgets: true, strike: runClock(0, 0)},
	{name: "clock much too fast", forgets: true, strike: runClock(1.2, 4)},
	{name: "proxies suspended", forgets: true, strike: suspendProxies},
}

// staleReplica is a fault of masters that have replicas, and say so.
const staleReplica = "failover to a stale replica"

// restart kills a master, lets it forget, and starts it again later.
func restart(forget func(*server, *rand.Rand)) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := pick(r, w.servers...)
		if s.down {
			return nil
		}
		w.logf("fault", "%s is killed and forgets", s.addr)
		s.crash(chance(r, 0.3))
		forget(s, r)
		return s.restart
	}
}

// failover puts a replica that was behind into a master's place; sometimes the old master, a replica by now, answers
// until then.
func failover(w *World, r *rand.Rand) func() {
	s := pick(r, w.servers...)
	if s.down || s.replica {
		return nil
	}
	promote := func() {
		s.crash(false)
		s.boot()
		s.store.rewind(s.now() - between(r, 0, 300*time.Millisecond))
		s.lineage = fmt.Sprintf("%039d%d", s.lives, s.id)
		s.logf("is another server")
	}
	if chance(r, 0.5) {
		w.logf("fault", "%s is a replica", s.addr)
		s.replica = true
		return promote
	}
	w.logf("fault", "%s fails over", s.addr)
	promote()
	return func() {}
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
		s := pick(r, w.servers...)
		if s.down {
			return nil
		}
		w.logf("fault", "%s: %s", s.addr, command)
		s.do(&session{}, []string{command})
		return func() {}
	}
}

func swapDatabases(w *World, r *rand.Rand) func() {
	s := pick(r, w.servers...)
	if s.down {
		return nil
	}
	w.logf("fault", "%s: SWAPDB 0 1", s.addr)
	s.store.do(mutation{at: s.now(), kind: swapped})
	return func() {}
}

// evict lets a master run out of memory some time after it was told to throw keys away then. The proxies have had the
// time to see that.
func evict(w *World, r *rand.Rand) func() {
	s := pick(r, w.servers...)
	if s.policy != "" {
		return nil
	}
	s.policy = "allkeys-lru"
	w.logf("fault", "%s may evict keys", s.addr)
	return func() {
		w.after(2*time.Second, func() {
			if w.quiet {
				return
			}
			for _, key := range s.keys() {
				if chance(r, 0.5) {
					s.logf("evicts %s", key)
					s.store.do(mutation{at: s.now(), kind: removed, key: key})
					s.evicted++
				}
			}
			s.policy = ""
		})
	}
}

// keys returns the keys of the first database in order.
func (s *server) keys() []string {
	var list []string
	for key := range s.store.dbs[0] {
		list = append(list, key)
	}
	slices.SortFunc(list, strings.Compare)
	return list
}

func stepClock(way time.Duration) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := pick(r, w.servers...)
		by := way * duration(r) * pick[time.Duration](r, 1, 1, 10)
		w.logf("fault", "the clock of %s is set by %v", s.addr, by)
		s.clock.step(w.now(), by)
		return func() {}
	}
}

// runClock lets a clock stand still, or run too fast, for a while.
func runClock(least, most float64) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := pick(r, w.servers...)
		rate := least + (most-least)*r.Float64()
		w.logf("fault", "the clock of %s runs at %.2f", s.addr, rate)
		s.clock.run(w.now(), rate)
		return func() { s.clock.run(w.now(), s.rate) }
	}
}

// suspendProxies is the machine of all proxies asleep: their monotonic clock stands still, and everybody else's goes
// on. Time here is theirs, so it is the others that jump. It does not fall asleep again before the proxies have found
// out: a second sleep within the time in which they judge the first is not noticed.
func suspendProxies(w *World, r *rand.Rand) func() {
	if w.now() < w.sleepAgain {
		return nil
	}
	w.sleepAgain = w.now() + 500*time.Millisecond
	by := duration(r)
	w.logf("fault", "the proxies sleep for %v", by)
	w.slept += by
	for _, s := range w.servers {
		s.clock.step(w.now(), time.Duration(float64(by)*s.clock.rate))
	}
	w.checker.slept(by)
	return func() {}
}

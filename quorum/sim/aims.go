package sim

import (
	"math/rand/v2"
	"time"
)

// An aim is a class of worlds made to hurt: one rule alone stands between two holders. Masters take turns in being
// away, so that locks have only the needed votes. Clients hold locks for the whole promised time. Faults that make
// masters forget wait for a lock, and strike a master of the lock.
type aim struct {
	name string
	set  func(p *Plan, r *rand.Rand)
}

var aims = []aim{
	{"restarts", aimRestarts},
	{"replicas", aimReplicas},
	{"clocks", aimClocks},
	{"far clocks", aimFarClocks},
	{"horizons", aimHorizons},
	{"extensions", aimExtensions},
	{"evictions", aimEvictions},
	{"late commands", aimLate},
	{"suspends", aimSuspends},
}

// aimAt makes a plan one of an aim.
func (p *Plan) aimAt(a aim, r *rand.Rand) {
	p.Aim, p.Forgets, p.Shifts, p.Faults = a.name, true, true, nil
	p.Masters, p.Proxies = pick(r, 3, 3, 3, 5), pick(r, 2, 2, 3)
	p.Clients, p.Resources, p.Attempts = 4+r.IntN(3), pick(r, 1, 1, 2), 60+r.IntN(100)
	p.Constant, p.Denied, p.Takeovers, p.Transactions = false, nil, 0, pick(r, 0.0, 0, 0.2)
	p.Lossy, p.Split = 0, 0
	p.Offset, p.Old = pick(r, 0, time.Hour), pick(r, 0.0, 0, 1)
	p.Config.TTLMax, p.Longs = 2*time.Second, 0
	p.Config.InstanceTimeout = pick(r, 10*time.Millisecond, 30*time.Millisecond)
	p.Config.MasterDeadAfter = pick(r, 200*time.Millisecond, time.Second)
	p.TTLLeast = pick(r, 200*time.Millisecond, 500*time.Millisecond)
	p.TTLMost = 2 * p.TTLLeast
	p.Think = pick(r, 10*time.Millisecond, 50*time.Millisecond)
	p.Gap = pick(r, 100*time.Millisecond, 500*time.Millisecond, 1500*time.Millisecond)
	p.Hold = 10 * time.Second
	a.set(p, r)
}

func aimRestarts(p *Plan, r *rand.Rand) {
	p.Append = pick(r, "", "everysec", "everysec", "always")
	p.Faults = []string{pick(r, "master restarted empty", "master restarted, last second lost", "master restarted from a snapshot",
		"all data flushed", "a database flushed", "databases swapped")}
	if p.Append == "everysec" {
		p.Faults = append(p.Faults, "master restarted, last second lost")
	}
}

func aimReplicas(p *Plan, r *rand.Rand) {
	p.Append = pick(r, "everysec", "always", "always", "always")
	p.Faults = []string{staleReplica}
	p.Standing, p.Writable = chance(r, 0.5), chance(r, 0.5)
}

func aimClocks(p *Plan, r *rand.Rand) {
	p.Faults = []string{"clock stepped forwards", "clock stepped forwards", pick(r, "clock much too fast", "clock frozen", "clock stepped backwards")}
	p.Think = pick(r, 2*time.Millisecond, 10*time.Millisecond)
}

// aimFarClocks lets clocks step while their answers are slow.
func aimFarClocks(p *Plan, r *rand.Rand) {
	p.Config.InstanceTimeout = 300 * time.Millisecond
	p.Config.Grace = 20 * time.Millisecond
	p.Faults = []string{"clock stepped far away"}
	p.Gap = pick(r, 100*time.Millisecond, 500*time.Millisecond)
	p.Think, p.Attempts = 20*time.Millisecond, 2*p.Attempts
}

// aimHorizons mixes lasting locks with many short ones, which do not lengthen the horizon on other masters.
func aimHorizons(p *Plan, r *rand.Rand) {
	p.Config.TTLMax, p.Longs = 5*time.Second, pick(r, 0.1, 0.3)
	p.TTLLeast, p.TTLMost = 30*time.Millisecond, 60*time.Millisecond
	p.Think = pick(r, 50*time.Millisecond, 200*time.Millisecond)
	p.Faults = []string{"all data flushed", pick(r, "master restarted empty", "all data flushed"), pick(r, "link cut", "proxy cut off", "all data flushed")}
	p.Gap = pick(r, 200*time.Millisecond, time.Second, 3*time.Second)
}

// aimExtensions has locks that last only because of extensions.
func aimExtensions(p *Plan, r *rand.Rand) {
	p.Config.TTLMax, p.Touches, p.Stretches = 5*time.Second, 0.7, 0.8
	p.TTLLeast, p.TTLMost = 50*time.Millisecond, 200*time.Millisecond
	p.Think = pick(r, 50*time.Millisecond, 200*time.Millisecond)
	p.Faults = []string{"all data flushed", "master restarted empty"}
	p.Gap = pick(r, time.Second, 3*time.Second)
}

func aimEvictions(p *Plan, r *rand.Rand) {
	p.Config.TTLMax, p.Longs = 5*time.Second, pick(r, 0.3, 0.7)
	p.Think = pick(r, 50*time.Millisecond, 200*time.Millisecond)
	p.Faults = []string{"keys evicted"}
	p.Gap = pick(r, 500*time.Millisecond, 2*time.Second)
}

// aimLate breaks connections while commands are on their way.
func aimLate(p *Plan, r *rand.Rand) {
	p.Forgets, p.Shifts, p.Append = false, false, "always"
	p.Config.TTLMax = 10 * time.Second
	p.TTLLeast, p.TTLMost, p.Hold = 8*time.Second, 10*time.Second, 30*time.Millisecond
	p.Lossy, p.LateMost = pick(r, 0.05, 0.2), pick(r, 20*time.Millisecond, 200*time.Millisecond)
	p.Faults = []string{"connection reset for the proxy", "connection reset for the proxy", pick(r, "link slow", "master slow")}
	p.Gap = pick(r, 5*time.Millisecond, 20*time.Millisecond)
}

// aimSuspends lets the proxies' machine sleep again and again, perhaps before the proxies know of the former sleep.
func aimSuspends(p *Plan, r *rand.Rand) {
	p.Blunt = true
	p.Faults = []string{suspended, pick(r, "link slow", "link cut", suspended)}
	p.Gap = pick(r, 20*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond)
	p.Think, p.Attempts, p.Hold = 10*time.Millisecond, p.Attempts/2, time.Second
}

// shift lets as many masters be away as may be, and then others.
func (w *World) shift(r *rand.Rand) {
	if w.quiet {
		return
	}
	n := len(w.servers)
	away := r.Perm(n)[:n-(n/2+1)]
	for _, i := range away {
		w.logf("fault", "%s is away", w.servers[i].addr)
		w.servers[i].stopped = true
	}
	w.after(between(r, 20*time.Millisecond, 600*time.Millisecond), func() {
		for _, i := range away {
			w.servers[i].resume()
		}
		w.after(between(r, 100*time.Millisecond, time.Second), func() { w.shift(r) })
	})
}

// victim picks a master for a fault: in an aimed world a master whose vote is needed, or nil if there is none now.
func (w *World) victim(r *rand.Rand) *server {
	needed := w.checker.needed
	switch {
	case w.plan.Aim == "" || w.plan.Blunt:
		return w.anyServer(r)
	case w.plan.Aim == "fences":
		needed = w.checker.keepers
	}
	if found := needed(); len(found) > 0 {
		return pick(r, found...)
	}
	return nil
}

// needed returns the masters that hold a lock which no spare master holds.
func (k *checker) needed() []*server {
	var found []*server
	for i := range k.world.plan.Resources {
		resource := resourceName(i)
		holders := make(map[string][]*server)
		for _, s := range k.world.servers {
			if it, ok := s.lock(resource); ok && !s.down {
				holders[it.holder()] = append(holders[it.holder()], s)
			}
		}
		for _, p := range k.promises[resource] {
			if on := holders[p.token]; k.stands(p) && len(on) <= len(k.world.servers)/2+1 {
				found = append(found, on...)
			}
		}
	}
	return found
}

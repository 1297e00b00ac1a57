package sim

import (
	"math/rand/v2"
	"time"
)

// In worlds of the class Far, masters are as far away as in other cities. Each proxy and master is at a distance of its
// own, so that one proxy is near a master which is far from another. Ways get longer and shorter, and answers are late
// now and then. Clocks step forwards and backwards by less than a round trip, so that a far proxy cannot see the steps.
// The locks of another proxy must not lose time by that.

func (p *Plan) far(r *rand.Rand) {
	p.aimAt(aim{"far masters", aimFarMasters}, r)
}

// pipe says which masters are far enough away that a lane writes batches behind batches under way: in worlds of the class Far those
// that are; in worlds of the class Piped all, and some more commands come while others are on their way; in others none.
func (p *Plan) pipe() {
	from := time.Hour
	switch {
	case p.Seed.In(Far):
		from = 0 // the engine's default
	case p.Seed.In(Piped):
		from = time.Nanosecond
		p.Latency, p.Think = time.Millisecond, min(p.Think, 2*time.Millisecond)
	}
	for i := range p.Own {
		p.Own[i].FarAway = from
		p.Own[i].InstanceTimeout = max(p.Own[i].InstanceTimeout, p.leastTimeout())
	}
	p.Config.FarAway = from
	p.Config.InstanceTimeout = max(p.Config.InstanceTimeout, p.leastTimeout())
}

// leastTimeout is enough for a command in a world of the class Piped, where ways are the longest of near masters.
func (p *Plan) leastTimeout() time.Duration {
	if p.Seed.In(Piped) {
		return 30 * time.Millisecond
	}
	return 0
}

func aimFarMasters(p *Plan, r *rand.Rand) {
	p.Away = pick(r, 10*time.Millisecond, 40*time.Millisecond, 80*time.Millisecond)
	p.Config.InstanceTimeout = 50*time.Millisecond + 3*p.farthest()
	p.Config.Grace = pick(r, 20*time.Millisecond, 50*time.Millisecond)
	p.Config.MasterDeadAfter = 2 * time.Second
	p.Config.TTLMax, p.TTLLeast = 5*time.Second, pick(r, 400*time.Millisecond, 1500*time.Millisecond)
	p.TTLMost = 2 * p.TTLLeast
	p.Own = nil
	p.Lossy, p.LateMost = pick(r, 0, 0.01, 0.1), pick(r, 30*time.Millisecond, 100*time.Millisecond)
	p.Faults = []string{steppedALittle, steppedALittle, pick(r, "link slow", "master far away", "master slow", steppedALittle)}
	p.Gap = pick(r, 100*time.Millisecond, 500*time.Millisecond)
	p.Think = pick(r, 5*time.Millisecond, 20*time.Millisecond)
}

const steppedALittle = "clock stepped a little"

var farKinds = []faultKind{
	{name: steppedALittle, forgets: true, setsClock: true, strike: stepClockALittle},
}

// stepClockALittle sets a clock by less than the longest round trip and, half of the time, back again after some
// seconds. It does not set the clock back sooner: nobody sees a step that is undone between two looks (docs/safety.md,
// assumption 1).
func stepClockALittle(w *World, r *rand.Rand) func() {
	s := w.victim(r)
	by := between(r, time.Millisecond, 2*w.plan.Away)
	if chance(r, 0.5) {
		by = -by
	}
	w.setClock(s, by)
	if chance(r, 0.5) {
		w.after(between(r, 2500*time.Millisecond, 6*time.Second), func() {
			if !w.quiet {
				w.setClock(s, -by)
			}
		})
	}
	return func() {}
}

// settleFar puts masters at their distances.
func (w *World) settleFar() {
	if w.plan.Away == 0 {
		return
	}
	r := w.random("far")
	for _, links := range w.links {
		for _, l := range links {
			l.away = between(r, 0, w.plan.Away)
		}
	}
}

// farthest is the longest round trip by the plan's distances.
func (p *Plan) farthest() time.Duration { return 2 * p.Away }

package sim

import (
	"slices"
	"time"
)

// Steps are the steps of a master's clock, and the proxies' knowledge of them. A quorum of masters must not step alike
// at once (docs/safety.md, assumption 3): to a proxy this looks like its own standstill.
//
// Nor may a proxy meet a clock that has just gone ahead, while another proxy, which knew the clock, is about to mark
// the master (assumption 2).
type steps struct {
	list  []step
	asked map[*life]time.Duration // when the latest question that was answered with the time was sent

	ahead  time.Duration // when the clock last went ahead; 0 if never
	canary string        // the master's then
}

type step struct {
	at, by time.Duration
	seen   map[*life]time.Duration // when its first answer came
}

// steppedLately is how long a step may await its judgement, where few masters can be reached.
const steppedLately = 2 * time.Second

// heard notes that a proxy has been told the time.
func (s *steps) heard(l *life, b *batch, now time.Duration) {
	if s.asked == nil {
		s.asked = make(map[*life]time.Duration)
	}
	s.asked[l] = max(s.asked[l], b.sent)
	for i := range s.list {
		if st := &s.list[i]; st.at <= b.timed && st.seen[l] == 0 {
			st.seen[l] = now
		}
	}
}

// setClock sets a clock, by a little more if otherwise a quorum of clocks would have been set alike at once.
func (w *World) setClock(s *server, by time.Duration) {
	for more := max(by, -by) / by; w.quorumSteps(s, by); {
		by += more * (w.alike(by) + 1)
	}
	w.logf("fault", "the clock of %s is set by %v", s.addr, by)
	if by > w.tolerated() {
		s.goesAhead()
	}
	s.clock.step(w.now(), by)
	s.steps.list = append(s.steps.list, step{w.now(), by, make(map[*life]time.Duration)})
}

// aheadMarked is how long it may take until a master is marked after its clock went ahead: a heartbeat, and the answers
// of the others.
const aheadMarked = time.Second

// goesAhead notes that the clock goes ahead now.
func (s *server) goesAhead() {
	canary, _ := s.store.get(0, "lockproxy:canary", 0)
	s.steps.ahead, s.steps.canary = s.now(), canary.text
}

// meetsTooEarly says that a proxy must not be told the time yet. If the proxy is told though nobody has marked the
// master, or will, earlier promises to others do not bind any more.
func (s *server) meetsTooEarly(l *life) bool {
	if l == nil || s.steps.ahead == 0 || s.steps.asked[l] != 0 {
		return false
	}
	if canary, _ := s.store.get(0, "lockproxy:canary", 0); canary.text != s.steps.canary {
		return false
	}
	if s.now()-s.steps.ahead < aheadMarked && slices.ContainsFunc(s.world.proxies, s.knownTo) {
		return true
	}
	s.logf("its clock is met by %s, which cannot know that it went ahead", l.name)
	for i := range s.world.plan.Resources {
		s.world.checker.doubt(resourceName(i), s.now())
	}
	return false
}

// knownTo says that a proxy knows the clock.
func (s *server) knownTo(p *proxy) bool { return p.life != nil && s.steps.asked[p.life] != 0 }

// tolerated is the largest step that an engine ignores.
func (w *World) tolerated() time.Duration { return (w.plan.strictest().Grace + 2*time.Millisecond) / 5 }

// alike is how near two steps must be for an engine to take both for its own standstill: the tolerance, the uncertainty
// of its observations, and the drift of clocks meanwhile.
func (w *World) alike(by time.Duration) time.Duration {
	c := w.plan.loosest()
	return 2*(c.Grace+2*time.Millisecond) + 2*w.plan.farthest() + time.Duration(2*c.DriftFactor*float64(by.Abs()))
}

// quorumSteps says whether a step of s, with the recent steps, would make a quorum of masters step alike at once.
func (w *World) quorumSteps(s *server, by time.Duration) bool {
	sums, n := []time.Duration{by}, 1
	for _, st := range s.steps.lately(w.now()) {
		by += st.by
		sums = append(sums, by)
	}
	for _, o := range w.servers {
		if o != s && w.stepsWith(o, s, sums) {
			n++
		}
	}
	return n > len(w.servers)/2
}

// stepsWith says that o lately stepped by about one of the sums, and a proxy may confuse that step with a step of s
// now.
func (w *World) stepsWith(o, s *server, sums []time.Duration) bool {
	by := time.Duration(0)
	for _, st := range o.steps.lately(w.now()) {
		by += st.by
		for _, sum := range sums {
			if (sum-by).Abs() <= w.alike(max(sum.Abs(), by.Abs())) && w.atOnce(st, s) {
				return true
			}
		}
	}
	return false
}

// atOnce says that some proxy has not seen the step, or has had no answer from s since. If s steps now, this proxy
// finds both steps between two answers of each master.
func (w *World) atOnce(st step, s *server) bool {
	for _, p := range w.proxies {
		if l := p.life; l != nil && (st.seen[l] == 0 || s.steps.asked[l] < st.seen[l]) {
			return true
		}
	}
	return false
}

// lately returns the steps that may await judgement, the latest first.
func (s *steps) lately(now time.Duration) []step {
	var list []step
	for i := len(s.list) - 1; i >= 0 && now-s.list[i].at < steppedLately; i-- {
		list = append(list, s.list[i])
	}
	return list
}

package vouch

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A model is a clock whose offset from ours is known, and a Clock that is told only what messages tell.
type model struct {
	Clock
	rng    *rand.Rand
	at     time.Duration // our clock
	offset time.Duration // of the master's
	path   time.Duration // the longest that a message takes
}

const (
	modelRate      = 0.005
	modelTolerance = 20 * time.Millisecond
)

func newModel(seed uint64) *model {
	m := &model{Clock: Clock{Rate: modelRate, Tolerance: modelTolerance}, rng: rand.New(rand.NewPCG(seed, 1))}
	m.at, m.path = time.Hour, time.Duration(1+m.rng.IntN(10_000))*time.Microsecond
	m.offset = time.Duration(m.rng.Int64N(int64(time.Hour))) - time.Hour/2
	return m
}

// pass lets time go by, in which the clock drifts by part of the rate, -1 to 1.
func (m *model) pass(d time.Duration, part float64) {
	m.at += d
	m.offset += time.Duration(part * modelRate * float64(d))
}

// some returns a random time below most. Both ends of the range are likely: they are where bounds are tight.
func (m *model) some(most time.Duration) time.Duration {
	switch m.rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return most
	}
	return time.Duration(m.rng.Int64N(int64(most) + 1))
}

func (m *model) part() float64 { return float64(m.rng.IntN(5)-2) / 2 }

// ask makes one observation; between happens while the master is at work. It returns how wide it is at most.
func (m *model) ask(between func()) (jump, width time.Duration) {
	sent := m.at
	m.pass(m.some(m.path), m.part())
	first := m.at + m.offset
	m.pass(m.some(50*time.Millisecond), m.part())
	between()
	last := m.at + m.offset
	back := m.some(m.path)
	m.pass(back, m.part())
	return m.Observe(sent, m.at, first, last), m.path + back + time.Millisecond
}

func nothing() {}

func TestAClockThatKeepsItsRateIsNeverAccused(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(seed)
		for range 300 {
			m.pass(m.some(10*time.Second), m.part())
			if jump, _ := m.ask(nothing); jump != 0 || m.ahead != 0 || m.behind != 0 {
				t.Fatalf("seed %d: accused of %v, of %v and %v", seed, jump, m.ahead, m.behind)
			}
			if o := m.offset; o < m.Clock.offset.Lo || o > m.Clock.offset.Hi {
				t.Fatalf("seed %d: the offset %v is not in %v", seed, o, m.Clock.offset)
			}
		}
	}
}

func TestStepsWithinTheToleranceAreNotAccused(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(seed)
		for _, left := 0, [2]time.Duration{modelTolerance, modelTolerance}; left[0]+left[1] > 0; {
			m.pass(m.some(time.Second), m.part())
			way := m.rng.IntN(2)
			step := m.some(left[way])
			left[way] -= step
			step *= time.Duration(1 - 2*way)
			between := m.rng.IntN(2) == 0
			if !between {
				m.offset += step
			}
			jump, _ := m.ask(func() {
				if between {
					m.offset += step
				}
			})
			if jump != 0 {
				t.Fatalf("seed %d: accused of %v, after steps of which %v are left", seed, jump, left)
			}
		}
	}
}

func TestAStepThatNoToleranceAllowsIsAccused(t *testing.T) {
	for seed := range uint64(1000) {
		m := newModel(seed)
		for range 20 {
			m.pass(m.some(time.Second), m.part())
			m.ask(nothing)
		}
		_, before := m.ask(nothing)
		sign := time.Duration(1 - 2*m.rng.IntN(2))
		passed := m.some(time.Second)
		step := modelTolerance + before + 2*m.path + time.Duration(2*modelRate*float64(passed)) + 2*time.Millisecond
		step += m.some(time.Minute)
		m.pass(passed, m.part())
		m.offset += sign * step
		if jump, _ := m.ask(nothing); jump*sign <= 0 || jump*sign > step {
			t.Fatalf("seed %d: a step of %v was taken for %v", seed, sign*step, jump)
		}
	}
}

func TestWhatAClockShowsIsWithinItsBounds(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(seed)
		for range 30 {
			m.ask(nothing)
			passed := m.some(10 * time.Second)
			m.pass(passed, float64(1-2*m.rng.IntN(2)))
			shows, earliest, latest := m.at+m.offset, m.Earliest(m.at), m.Latest(m.at)
			if apart := m.Width() + time.Duration(2*modelRate*float64(passed)); shows < earliest-1 || shows > latest+1 || latest-earliest > apart+2 {
				t.Fatalf("seed %d: it shows %v, not %v to %v", seed, shows, earliest, latest)
			}
		}
		m.ask(nothing)
		if by := m.offset - m.Offset(); by < -m.Width()/2-1 || by > m.Width()/2+1 {
			t.Fatalf("seed %d: the offset is %v, not %v, known to within %v", seed, m.offset, m.Offset(), m.Width())
		}
	}
}

// Proxies may have other settings: all follow a clock as the strictest of them does.
func TestAClockIsFollowedByTheStrictestBounds(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	at := func(c *Clock, now, offset time.Duration) time.Duration {
		return c.Observe(now, now, now+offset, now+offset)
	}
	for _, c := range []struct {
		name                 string
		rate, stricter       float64
		tolerance, tolerates time.Duration
	}{
		{"the other tolerates less", 0.01, 0.01, 100 * ms, 10 * ms},
		{"the other allows for less drift", 0.1, 0.001, 10 * ms, 10 * ms},
		{"the other is laxer", 0.01, 0.5, 10 * ms, time.Hour},
	} {
		k := Clock{Rate: c.rate, Tolerance: c.tolerance}
		at(&k, 0, 0)
		k.Restrict(c.stricter, c.tolerates)
		if jump := at(&k, s, 50*ms); jump <= 0 {
			t.Errorf("%s: a step of 50 ms was taken for %v", c.name, jump)
		}
		k = Clock{Rate: c.rate, Tolerance: c.tolerance}
		at(&k, 0, 0)
		at(&k, s, s) // as if we had stood still for 1 s
		k.Restrict(c.stricter, c.tolerates)
		k.Clear(s, 0)
		if jump := at(&k, s+ms, s+50*ms); jump <= 0 {
			t.Errorf("%s: after a standstill, a step of 50 ms was taken for %v", c.name, jump)
		}
	}
	k := Clock{Rate: 0.01, Tolerance: 100 * ms}
	at(&k, 0, 0)
	at(&k, ms, 50*ms)
	k.Restrict(0.01, 10*ms)
	if jump := at(&k, s, 65*ms); jump != 0 { // 10 ms of it may be drift
		t.Errorf("what was tolerated before counts for more than the tolerance: a step of 5 ms was taken for %v", jump)
	}
}

func TestAStepAfterAJumpBackwardsIsTolerated(t *testing.T) {
	m := newModel(1)
	m.path = 0
	m.ask(nothing)
	m.offset -= time.Minute
	if jump, _ := m.ask(nothing); jump >= 0 {
		t.Fatalf("a minute backwards was taken for %v", jump)
	}
	m.offset -= modelTolerance / 4
	if jump, _ := m.ask(nothing); jump != 0 {
		t.Errorf("accused of %v after that", jump)
	}
}

// Steps backwards do not make up for steps forwards, and many small steps do not hide in the widths.
func TestWhatMovesForwardsUnnoticedIsBounded(t *testing.T) {
	worst := time.Duration(0)
	for seed := range uint64(2000) {
		m := newModel(seed)
		_, width := m.ask(nothing)
		began, forwards, backwards := m.at, time.Duration(0), m.rng.IntN(2) == 0
		for range 60 {
			step := m.some(modelTolerance / time.Duration(1+m.rng.IntN(20)))
			if backwards && m.rng.IntN(3) == 0 {
				m.offset -= 2 * step // what it moves backwards is no gain
			} else {
				m.offset += step
				forwards += step
			}
			m.pass(m.some(200*time.Millisecond), m.part())
			jump, last := m.ask(nothing)
			if jump > 0 {
				break
			}
			if backwards {
				continue
			}
			passed := float64(m.at - began)
			bound := modelTolerance + width + last + time.Duration(2*modelRate*passed) + time.Millisecond
			moved := forwards - time.Duration(modelRate*passed) // if it drifted backwards all the time
			if moved > bound {
				t.Fatalf("seed %d: %v forwards in %v were not noticed, at most %v can be", seed, forwards, m.at-began, bound)
			}
			worst = max(worst, moved)
		}
	}
	if worst < modelTolerance {
		t.Errorf("the model does not come near the bound: %v", worst)
	}
}

func TestStepsToAndFroAreAccused(t *testing.T) {
	for _, back := range []time.Duration{6 * time.Millisecond, 22 * time.Millisecond} {
		m := newModel(1)
		m.path = 0
		m.ask(nothing)
		accused := false
		for range 10 {
			m.offset += 12 * time.Millisecond
			jump, _ := m.ask(nothing)
			accused = accused || jump > 0
			m.offset -= back
			m.ask(nothing)
		}
		if !accused {
			t.Errorf("ten steps of 12 ms forwards, each with one of %v backwards, were not noticed", back)
		}
	}
}

func TestAClockThatIsSetBackWhileAskedIsAccused(t *testing.T) {
	m := newModel(1)
	m.ask(nothing)
	if jump, _ := m.ask(func() { m.offset -= time.Hour }); jump >= 0 {
		t.Errorf("an hour backwards was taken for %v", jump)
	}
	m.offset += time.Hour
	if jump, _ := m.ask(nothing); jump <= 0 {
		t.Errorf("an hour forwards was taken for %v", jump)
	}
}

// A step that hides in an answer that took long to come back is not seen, but it is known that one may be there.
func TestASlowAnswerLeavesRoomForAStep(t *testing.T) {
	const ms = time.Millisecond
	c := Clock{Rate: 0.01, Tolerance: 10 * ms}
	c.Observe(0, ms, 0, 0)
	if by := c.Observe(100*ms, 150*ms, 140*ms, 140*ms); by != 0 { // 40 ms ahead, asked at once, answered after 49 ms
		t.Fatalf("it can have been the way back: %v", by)
	}
	if c.Reach() < 40*ms {
		t.Errorf("a step of 40 ms went unnoticed, of at most %v", c.Reach())
	}
	c = Clock{Rate: 0.01, Tolerance: 10 * ms}
	c.Observe(0, ms, 0, 0)
	if by := c.Observe(100*ms, 150*ms, 140*ms, 135*ms); by != 0 || c.Reach() < 40*ms { // what expired then is gone
		t.Errorf("a step of 40 ms, of which 5 were taken back while it was asked, went unnoticed, of at most %v: %v", c.Reach(), by)
	}
	c = Clock{Rate: 0.01, Tolerance: 10 * ms}
	c.Observe(0, ms, 0, 0)
	c.Observe(100*ms, 150*ms, 101*ms, 101*ms)
	if c.Reach() > 5*ms {
		t.Errorf("the same without a step may hide %v", c.Reach())
	}
}

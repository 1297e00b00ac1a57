package vouch

import (
	"slices"
	"testing"
	"time"
)

// Every combination of what up to five masters may seem to have done, against a count of all pairs.
func TestStandstill(t *testing.T) {
	const slack, rate, ms = 50 * time.Millisecond, 0.0001, time.Millisecond
	allowed := slack + time.Duration(2*rate*float64(time.Hour)) // to the ms below
	hour := func(lo, hi time.Duration) *Span { return &Span{time.Hour + lo, time.Hour + hi} }
	moves := []*Span{nil, {}, {-ms, ms}, {-time.Hour - ms, -time.Hour}, hour(0, 0), hour(-9*ms, ms), hour(allowed-ms, allowed-ms), hour(allowed+2*ms, allowed+2*ms), {-2 * time.Hour, 2 * time.Hour}}
	for n := 1; n <= 5; n++ {
		each(n, len(moves), func(pick []int) {
			jumps := make([]*Span, n)
			for i, p := range pick {
				jumps[i] = moves[p]
			}
			heard, alike, signs := 0, true, map[bool]int{}
			var los, his []time.Duration
			for _, a := range jumps {
				if a == nil {
					continue
				}
				heard++
				los, his = append(los, a.Lo), append(his, a.Hi)
				if a.Lo > 0 || a.Hi < 0 {
					signs[a.Lo > 0]++
				}
				for _, b := range jumps {
					alike = alike && (b == nil || a.Lo-b.Hi <= allowed)
				}
			}
			least := time.Duration(0) // that all can have been; or else as near to that as the smallest can have been
			if heard > 0 {
				least = min(slices.Max(los), slices.Min(his))
			}
			quorum := n/2 + 1
			alike = alike && len(signs) == 1
			wantOwn := alike && signs[true]+signs[false] >= max(quorum, 2)
			wantSure := heard >= quorum || heard > 0 && !alike
			by, own, sure := Standstill(jumps, rate, slack)
			if own != wantOwn || sure != wantSure || own && by != least {
				t.Errorf("%v of %d: %v %v %v, want %v %v %v", pick, n, by, own, sure, least, wantOwn, wantSure)
			}
		})
	}
}

// each calls f with all ways to pick n times one of so many.
func each(n, many int, f func(pick []int)) {
	pick := make([]int, n)
	for {
		f(pick)
		i := 0
		for ; i < n && pick[i] == many-1; i++ {
			pick[i] = 0
		}
		if i == n {
			return
		}
		pick[i]++
	}
}

// standStill lets our clock stand still for so long, while the other drifts by part of the rate.
func (m *model) standStill(d time.Duration, part float64) {
	m.offset += d + time.Duration(part*modelRate*float64(d))
}

// An observer asks a clock that jumps, for whatever reason, until its jump is known.
func (m *model) jumped(t *testing.T) Span {
	t.Helper()
	for range 5 {
		m.pass(m.some(time.Second), m.part())
		m.ask(nothing)
	}
	by, ok := m.Jumped()
	if !ok {
		t.Fatal("the jump was not noticed")
	}
	return by
}

func TestAStandstillIsKnownAndLeavesClocksAsTheyWere(t *testing.T) {
	for seed := range uint64(1000) {
		m := newModel(seed)
		m.ask(nothing)
		stood := 200*time.Millisecond + m.some(time.Minute)
		if m.rng.IntN(2) == 0 {
			m.standStill(stood, m.part())
		} else {
			m.ask(func() { m.standStill(stood, m.part()) })
		}
		by := m.jumped(t)
		drift := time.Duration(modelRate*float64(stood)) + time.Microsecond
		if stood < by.Lo-drift || stood > by.Hi+drift {
			t.Fatalf("seed %d: it stood still for %v, not %v", seed, stood, by)
		}
		put := stood - m.some(time.Second) // roughly
		if rest := m.Clear(max(by.Lo, stood-drift/2), put); rest != 0 {
			t.Fatalf("seed %d: accused of %v besides", seed, rest)
		}
		m.at += put
		m.offset -= put
		for range 20 {
			m.pass(m.some(time.Second), m.part())
			if jump, _ := m.ask(nothing); jump != 0 {
				t.Fatalf("seed %d: accused of %v afterwards", seed, jump)
			}
			if o := m.offset; o < m.Clock.offset.Lo || o > m.Clock.offset.Hi {
				t.Fatalf("seed %d: the offset %v is not in %v", seed, o, m.Clock.offset)
			}
		}
	}
}

// A clock may step while we stand still, before it is asked again, and after that while nobody has judged.
func TestAStandstillHidesNoStep(t *testing.T) {
	for seed := range uint64(1000) {
		m := newModel(seed)
		_, before := m.ask(nothing)
		stood := 200*time.Millisecond + m.some(time.Second)
		m.standStill(stood, m.part())
		step := modelTolerance + before + 2*m.path + 2*time.Duration(modelRate*float64(6*time.Second+stood)) + 2*time.Millisecond
		heard := m.rng.IntN(4) > 0
		early := m.rng.IntN(2) == 0
		if early {
			m.offset += step
		}
		if heard {
			m.jumped(t)
		}
		if !early {
			m.offset += step
		}
		reach := m.Reach()
		rest := m.Clear(stood, stood)
		if heard && (early && rest <= 0 || m.Reach() != reach) { // it may have been set back since: what expired is gone
			t.Fatalf("seed %d: a step of %v was heard and forgotten: %v, %v and then %v may hide", seed, step, rest, reach, m.Reach())
		}
		m.at += stood
		m.offset -= stood
		later, _ := m.ask(nothing)
		if rest <= 0 && later <= 0 || rest > step || later > step {
			t.Fatalf("seed %d: a step of %v (heard %v, early %v) was taken for %v and %v", seed, step, heard, early, rest, later)
		}
	}
}

// Of a clock that was not known before, only what one observation showed is known.
func TestAJumpInTheFirstObservationMayHaveBeenLarger(t *testing.T) {
	m := newModel(1)
	stood := time.Second
	m.ask(func() { m.standStill(stood, 0) })
	by, ok := m.Jumped()
	if !ok || by.Lo <= 0 || by.Lo > stood || by.Hi < time.Hour {
		t.Fatalf("jumped by %v, %v", by, ok)
	}
	if _, own, sure := Standstill([]*Span{&by, {stood, stood}}, modelRate, 0); !own || !sure {
		t.Errorf("no standstill: %v", by)
	}
	if rest := m.Clear(stood, 0); rest != 0 {
		t.Errorf("accused of %v besides", rest)
	}
}

// Clocks may have drifted apart by more than the jump until enough masters have been heard.
func TestAJumpThatNobodyJudgesForLongIsStillOne(t *testing.T) {
	for _, sign := range []time.Duration{1, -1} {
		m := newModel(1)
		m.path = 0
		m.ask(nothing)
		m.offset += sign * 2 * modelTolerance
		for range 60 {
			m.ask(nothing)
			m.pass(time.Second, 0)
		}
		if by, ok := m.Jumped(); !ok || by.Lo <= 0 && by.Hi >= 0 {
			t.Errorf("%v after a minute: %v, %v", sign*2*modelTolerance, by, ok)
		}
	}
}

// One that was convicted is no more asked about what it did before.
func TestAJumpThatWasJudgedIsOver(t *testing.T) {
	m := newModel(1)
	m.ask(nothing)
	m.offset += time.Minute
	m.jumped(t)
	m.Confirm()
	if by, ok := m.Jumped(); ok {
		t.Errorf("jumped by %v", by)
	}
	m.offset += time.Second
	m.ask(nothing)
	if by, ok := m.Jumped(); !ok || by.Lo > time.Second || by.Hi < time.Second {
		t.Errorf("jumped by %v, %v", by, ok)
	}
}

// If it was our clock that ran ahead, no time has passed in which others drift.
func TestAClockThatRanAheadLeavesNoRoomForAStep(t *testing.T) {
	m := newModel(1)
	m.ask(nothing)
	m.Clear(-3*time.Hour, 0)
	m.offset += time.Second - 3*time.Hour
	if jump, _ := m.ask(nothing); jump <= 0 {
		t.Errorf("a step of 1 s was taken for %v", jump)
	}
}

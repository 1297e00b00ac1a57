package admission

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAsManyMayBeUnderWayAsAreAnsweredInTheWindow(t *testing.T) {
	for _, c := range []struct {
		answered     int64
		took, window time.Duration
		want         int64
	}{
		{0, 40 * time.Millisecond, 40 * time.Millisecond, Least},
		{100, 40 * time.Millisecond, 40 * time.Millisecond, Least},
		{4000, 40 * time.Millisecond, 40 * time.Millisecond, 4000},
		{4000, 80 * time.Millisecond, 40 * time.Millisecond, 2000}, // the process stood still for half of it
		{1 << 40, time.Nanosecond, 1 << 40, 1 << 62},               // no overflow
		{100_000, time.Hour, 40 * time.Millisecond, Least},
	} {
		got := limit(c.answered, c.took, c.window)
		if c.want == 1<<62 {
			if got <= 0 {
				t.Errorf("limit of %+v is %d", c, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("limit of %+v is %d", c, got)
		}
	}
}

func TestTheLimitFollowsWhatWasAnsweredLately(t *testing.T) {
	c := New(100 * time.Millisecond)
	now := time.Duration(0)
	answer := func(n int, took time.Duration) int {
		for i := range n {
			c.Begin(1)
			c.Answered(1, now+took*time.Duration(i+1)/time.Duration(n))
		}
		now += took
		_, limit := c.Rounds()
		return limit
	}
	for i, step := range []struct {
		n    int
		took time.Duration
		want int
	}{
		{3000, c.window, Least}, // one window may be a burst
		{2000, c.window, 2000},
		{2500, c.window, 2000},
		{2600, c.window, 2500},
		{10, 10 * c.window, Least}, // a quiet time
		{2000, c.window, Least},
		{4000, 2 * c.window, 2000},
	} {
		if got := answer(step.n, step.took); got != step.want {
			t.Errorf("step %d: the limit is %d, want %d", i, got, step.want)
		}
	}
}

func TestRoundsThatFailDoNotRaiseTheLimit(t *testing.T) {
	c := New(100 * time.Millisecond)
	for range 10_000 {
		c.Begin(1)
		c.Failed(1)
	}
	c.Begin(1)
	c.Answered(1, c.window)
	if running, limit := c.Rounds(); running != 0 || limit != Least {
		t.Errorf("%d run, the limit is %d", running, limit)
	}
}

func TestWhoWaitsGoesOnInTheOrderOfArrival(t *testing.T) {
	c := New(100 * time.Millisecond)
	for range Least {
		c.Begin(1)
	}
	var woken []int
	var places []*Place
	for i := range 2 * Least {
		p := c.Place(func() { woken = append(woken, i) })
		if p.Admit(1) {
			t.Fatalf("client %d is admitted", i)
		}
		places = append(places, p)
	}
	if c.Waiting() != 2*Least {
		t.Fatalf("%d wait", c.Waiting())
	}
	places[1].Leave()
	for range Least/4 + 10 { // those 10 make no room that is worth waking anybody for: the first have not begun yet
		c.Failed(1)
	}
	want := []int{0}
	for i := 2; len(want) < Least/4; i++ {
		want = append(want, i)
	}
	if !slices.Equal(woken, want) {
		t.Fatalf("woken: %v", woken)
	}
	if c.Place(func() {}).Admit(1) {
		t.Error("somebody who has just come is admitted before those who wait")
	}
	if !places[0].Admit(1) || places[0].Admit(1) {
		t.Error("who was woken may begin one operation, and then waits again")
	}
}

func TestWhoComesLetsThoseGoOnWhoWereMissed(t *testing.T) {
	c := New(100 * time.Millisecond)
	c.running.Store(Least)
	woken := false
	missed := c.Place(func() { woken = true })
	missed.Admit(1)
	c.running.Store(0) // all have ended and looked, just before it was in line
	if !c.Place(func() {}).Admit(1) || !woken {
		t.Error("there is room, and somebody waits")
	}
}

func TestWhoEndsInLineLetsOthersGoOn(t *testing.T) {
	for _, ends := range []struct {
		how string
		end func(*Place)
	}{
		{"leaves", (*Place).Leave},
		{"begins nothing", func(p *Place) { p.Admit(1); p.Yield() }},
	} {
		c := New(100 * time.Millisecond)
		for range Least {
			c.Begin(1)
		}
		woken := map[*Place]bool{}
		var line []*Place
		for range 3 * Least {
			var p *Place
			p = c.Place(func() { woken[p] = true })
			p.Admit(1)
			line = append(line, p)
		}
		for range Least {
			c.Failed(1)
		}
		for i, p := range line {
			if !woken[p] {
				t.Fatalf("where each client %s, client %d is not woken", ends.how, i)
			}
			ends.end(p)
		}
		if c.Waiting() != 0 || c.granted.Load() != 0 {
			t.Errorf("where each client %s, %d wait, %d are granted", ends.how, c.Waiting(), c.granted.Load())
		}
	}
}

// It may be held up by something else, and would not use its turn.
func TestWhoDoesNotAskAgainLeavesTheLine(t *testing.T) {
	c := New(100 * time.Millisecond)
	for range Least {
		c.Begin(1)
	}
	p := c.Place(func() {})
	p.Admit(1)
	p.Yield()
	if c.Waiting() != 1 {
		t.Errorf("%d wait", c.Waiting())
	}
	p.Yield()
	if c.Waiting() != 0 {
		t.Errorf("%d wait, and nobody has asked again", c.Waiting())
	}
}

func TestFewInLineAllGoOnAtOnce(t *testing.T) {
	c := New(100 * time.Millisecond)
	c.running.Store(Least)
	woken, few := 0, Least*2/3 // more than half, so that there is room left, and not for two operations each
	for range few {
		c.Place(func() { woken++ }).Admit(1)
	}
	c.running.Store(1)
	c.Failed(1)
	if woken != few || c.Waiting() != 0 {
		t.Errorf("%d of %d are woken, %d wait", woken, few, c.Waiting())
	}
}

// Clients that ask for many keys are let on one after the other, and nobody beside them while masters are busy with one.
func TestARoundCountsForEachOfItsKeys(t *testing.T) {
	c := New(100 * time.Millisecond)
	c.Begin(Least - 1)
	if !c.Place(func() {}).Admit(4 * Least) {
		t.Fatal("there is room, and nobody else")
	}
	c.Begin(4 * Least)
	var woken []int
	var places []*Place
	for i, keys := range []int{4 * Least, 4 * Least, 1} {
		p := c.Place(func() { woken = append(woken, i) })
		if p.Admit(keys) {
			t.Fatalf("client %d is admitted", i)
		}
		places = append(places, p)
	}
	c.Failed(Least - 1)
	if len(woken) > 0 {
		t.Fatalf("woken: %v", woken)
	}
	c.Failed(4 * Least)
	if !slices.Equal(woken, []int{0}) || !places[0].Admit(4*Least) {
		t.Fatalf("woken: %v", woken)
	}
	c.Begin(4 * Least)
	c.Failed(4 * Least)
	if !slices.Equal(woken, []int{0, 1}) {
		t.Fatalf("woken: %v", woken)
	}
}

// What is left of a grant for an operation on few keys does not do for one on many.
func TestWhoWasGrantedTooLittleWaitsAgain(t *testing.T) {
	c := New(100 * time.Millisecond)
	c.Begin(Least)
	woken := 0
	p := c.Place(func() { woken++ })
	p.Admit(1)
	c.Failed(Least / 4)
	if woken != 1 || !p.Admit(1) {
		t.Fatalf("woken %d times", woken)
	}
	c.Begin(Least)
	if p.Admit(Least) || c.Waiting() != 1 || c.granted.Load() != 0 {
		t.Errorf("%d wait, %d are granted", c.Waiting(), c.granted.Load())
	}
}

// A client of the model has commands to run; each begins a round, or none, as a LOCK that waits behind others.
type client struct {
	place  *Place
	toRun  int
	keys   int // of the next; 0: not chosen yet
	kicked bool
	gone   bool
}

// keysMost is how many keys a command of the model may have.
const keysMost = 2 * Least

// run is what a session's reader does when it is kicked. rounds are the keys of each that is under way.
func (m *client) run(t *rapid.T, c *Control, rounds *[]int) {
	m.kicked = false
	for m.toRun > 0 {
		if m.keys == 0 {
			m.keys = rapid.OneOf(rapid.Just(1), rapid.IntRange(1, keysMost)).Draw(t, "keys")
		}
		if !m.place.Admit(m.keys) {
			break
		}
		m.toRun--
		if rapid.IntRange(0, 3).Draw(t, "begins") > 0 {
			c.Begin(m.keys)
			*rounds = append(*rounds, m.keys)
		}
		m.keys = 0
	}
	m.place.Yield()
}

func TestNobodyIsForgottenInLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(100 * time.Millisecond)
		var rounds []int
		now := time.Duration(0)
		clients := make([]*client, 40)
		for i := range clients {
			m := &client{}
			m.place = c.Place(func() { m.kicked = true })
			clients[i] = m
		}
		end := func() {
			keys := rounds[0]
			rounds = rounds[1:]
			now += time.Millisecond
			if rapid.Bool().Draw(t, "answered") {
				c.Answered(keys, now)
			} else {
				c.Failed(keys)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := rapid.SampledFrom(clients).Draw(t, "client")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				if !m.gone {
					m.toRun += rapid.IntRange(1, 100).Draw(t, "more")
					m.run(t, c, &rounds)
				}
			case 3:
				for n := rapid.IntRange(0, len(rounds)).Draw(t, "ended"); n > 0; n-- {
					end()
				}
			case 4:
				if m.kicked && !m.gone {
					m.run(t, c, &rounds)
				}
			case 5:
				m.gone, m.toRun = true, 0
				m.place.Leave()
			}
			sum := 0
			for _, keys := range rounds {
				sum += keys
			}
			if running, limit := c.Rounds(); running != sum || running > 2*limit+keysMost {
				t.Fatalf("%d rounds are under way, %d are counted, the limit is %d", sum, running, limit)
			}
		}
		for busy := true; busy; { // all that has begun ends, and all who were woken go on
			busy = false
			for len(rounds) > 0 {
				end()
				busy = true
			}
			for _, m := range clients {
				if m.kicked && !m.gone {
					m.run(t, c, &rounds)
					busy = true
				}
			}
		}
		for i, m := range clients {
			if m.toRun > 0 {
				t.Fatalf("client %d waits for ever with %d commands; %d in line, %d granted", i, m.toRun, c.Waiting(), c.granted.Load())
			}
		}
		if c.Waiting() != 0 || c.granted.Load() != 0 {
			t.Fatalf("%d in line, %d granted, and nobody is there", c.Waiting(), c.granted.Load())
		}
	})
}

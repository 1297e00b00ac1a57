package sim

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum"
)

// A scene is a world in which only what a test says happens: for what a seed hardly ever comes upon. Unlike in the tests
// of package quorum, the masters run the Lua text as it is shipped.
type scene struct {
	*World
	t *testing.T
}

// inScene runs f with three masters and two proxies.
func inScene(t *testing.T, f func(s *scene)) {
	t.Helper()
	inSceneOf(t, 3, f)
}

// inSceneOf is inScene with so many masters.
func inSceneOf(t *testing.T, masters int, f func(s *scene)) {
	t.Helper()
	inSceneWith(t, masters, sceneConfig, nil, f)
}

var sceneConfig = quorum.Config{
	Databases: databases, InstanceTimeout: 300 * time.Millisecond, DriftFactor: 0.01,
	Grace: 200 * time.Millisecond, TTLMax: time.Minute, MasterDeadAfter: 5 * time.Second,
}

// inSceneWith is inSceneOf with settings of the first proxy, and of the second, if it has its own.
func inSceneWith(t *testing.T, masters int, c quorum.Config, own []quorum.Config, f func(s *scene)) {
	t.Helper()
	inScenePlanned(t, Plan{Masters: masters, Proxies: 2, Resources: 1, Latency: 100 * time.Microsecond, Config: c, Own: own}, f)
}

// inScenePlanned is all of these.
func inScenePlanned(t *testing.T, p Plan, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p, nil, nil)
		over := make(chan struct{})
		var turning sync.WaitGroup
		turning.Go(func() { w.turn(over) })
		defer func() { // also when f gives up
			w.do(w.mendAll)
			w.sleep(time.Second) // for what is still on its way
			w.do(func() {
				for _, p := range w.proxies {
					p.stop()
				}
			})
			w.closing.Wait()
			close(over)
			turning.Wait()
		}()
		w.sleep(50 * time.Millisecond) // the first connections
		f(&scene{w, t})
	})
}

// begin asks an engine for something, and returns where the answer comes.
func begin[Q, A any](ask func(Q, func(A)), req Q) <-chan A {
	c := make(chan A, 1)
	ask(req, func(a A) { c <- a })
	return c
}

// acquire begins an attempt through a proxy, counted from 0.
func (s *scene) acquire(proxy int, token string, ttl time.Duration, reentrant bool) <-chan quorum.Acquired {
	req := quorum.AcquireRequest{Key: quorum.Key{Name: resourceName(0)}, Token: token, TTL: ttl, Reentrant: reentrant}
	return begin(s.proxies[proxy].life.engine.Acquire, req)
}

// holders draws who holds the resource on each master, after a while: one letter each, the token's first, or a point.
func (s *scene) expectHolders(after time.Duration, want string) {
	s.t.Helper()
	s.sleep(after)
	got := ""
	s.do(func() {
		for _, m := range s.servers {
			if it, ok := m.store.get(0, resourceName(0), m.clock.millis(m.now())); ok {
				got += it.text[:1]
			} else {
				got += "."
			}
		}
	})
	if got != want {
		s.t.Errorf("masters hold %q, want %q", got, want)
	}
}

// others lets somebody else hold the resource on masters, counted from 0, for a minute.
func (s *scene) others(masters ...int) {
	s.do(func() {
		for _, i := range masters {
			m := s.servers[i]
			m.put(&session{}, resourceName(0), item{text: "other", expires: m.clock.millis(m.now()) + time.Minute.Milliseconds()})
		}
	})
}

// fallBack puts another server in a master's place, with the data that it had at a true time.
func (s *scene) fallBack(master int, to time.Duration) {
	s.do(func() {
		m := s.servers[master]
		m.crash(false)
		m.boot()
		m.store.rewind(to)
	})
}

// mute holds back what masters answer to the first proxy.
func (s *scene) mute(masters ...int) {
	s.do(func() {
		for _, i := range masters {
			s.links[0][i].block(down)
		}
	})
}

// breakOff ends the first proxy's connections to masters, which does not stop what is on its way there.
func (s *scene) breakOff(masters ...int) {
	s.do(func() {
		for _, i := range masters {
			for _, c := range s.proxies[0].life.conns {
				if c.server != s.servers[i] {
					continue
				}
				c.hangUp(net0)
				for _, segment := range c.streams[up] {
					segment.lost = false
				}
			}
			s.links[0][i].heal()
		}
	})
}

// The holder re-enters through two proxies, and what went through the first is late.
func TestALateReentryDoesNotShortenTheLock(t *testing.T) {
	inScene(t, func(s *scene) {
		if a := <-s.acquire(0, "mine", time.Second, true); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.do(func() {
			for _, l := range s.links[0] {
				l.slow = 100 * time.Millisecond
			}
		})
		late := s.acquire(0, "mine", time.Second, true)
		s.sleep(10 * time.Millisecond)
		if a := <-s.acquire(1, "mine", 10*time.Second, true); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		<-late
		s.expectHolders(9*time.Second, "mmm")
	})
}

// The holder re-enters, and never hears that it did.
func TestAReentryWithoutAnAnswerDoesNotCostTheLock(t *testing.T) {
	inScene(t, func(s *scene) {
		if a := <-s.acquire(0, "mine", 10*time.Second, true); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.mute(0, 1)
		again := s.acquire(0, "mine", 10*time.Second, true)
		s.sleep(10 * time.Millisecond)
		s.breakOff(0, 1)
		<-again
		s.expectHolders(2*time.Second, "mmm")
	})
}

// An attempt failed, and what it set is undone late: when its client has the lock through another proxy, for a shorter
// time, with that key's vote.
func TestALateUndoTakesNoVoteOfAReentry(t *testing.T) {
	for pause := range 8 { // whatever the millisecond is
		inScene(t, func(s *scene) {
			s.sleep(time.Duration(pause) * time.Millisecond)
			s.others(1, 2)
			s.mute(0)
			failed := s.acquire(0, "mine", 10*time.Second, false)
			s.expectHolders(10*time.Millisecond, "moo")
			if a := <-failed; a.Lock != nil {
				t.Fatal("granted")
			}
			s.do(func() {
				for _, m := range s.servers[1:] {
					m.remove(&session{}, resourceName(0))
				}
			})
			if a := <-s.acquire(1, "mine", 5*time.Second, true); a.Lock == nil {
				t.Fatalf("not granted: %+v", a)
			}
			s.do(s.links[0][0].heal)
			s.expectHolders(2*time.Second, "mmm")
		})
	}
}

// What an attempt of unknown fate set has gone, and another key with the same expiry is there.
func TestAnUndoTakesNoOtherToken(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1)
		s.mute(2)
		lost := s.acquire(0, "mine", 10*time.Second, false)
		s.expectHolders(10*time.Millisecond, "oom")
		s.do(func() {
			m := s.servers[2]
			it, _ := m.store.get(0, resourceName(0), m.clock.millis(m.now()))
			m.put(&session{}, resourceName(0), item{text: "other", expires: it.expires})
		})
		s.breakOff(2)
		<-lost
		s.expectHolders(2*time.Second, "ooo")
	})
}

// breakOffSlow ends an attempt's connection to the last master, where the attempt arrives after three seconds all the same, if at all.
func (s *scene) breakOffSlow() {
	s.others(0, 1)
	s.do(func() { s.links[0][2].slow = 3 * time.Second })
	lost := s.acquire(0, "mine", 10*time.Second, false)
	s.sleep(time.Millisecond)
	s.do(func() { s.links[0][2].slow = 0 })
	s.breakOff(2)
	<-lost
}

// A connection broke and could not be killed: the undo is there first, and then what it is to undo.
func TestAnUndoIsRepeatedForWhatMayStillRun(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() { s.servers[2].denied["KILL"] = true })
		s.breakOffSlow()
		s.expectHolders(3*time.Second, "oom")
		s.expectHolders(2*time.Second, "oo.")
	})
}

// A new connection kills the old one on the master, so that nothing that is still on its way there runs.
func TestWhatIsLeftOfABrokenConnectionDoesNotRun(t *testing.T) {
	inScene(t, func(s *scene) {
		s.breakOffSlow()
		s.expectHolders(4*time.Second, "oo.")
	})
}

func TestAnExtensionDoesNotMakeALock(t *testing.T) {
	inScene(t, func(s *scene) {
		if a := <-s.acquire(0, "mine", time.Second, false); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.sleep(3 * time.Second)
		req := quorum.ExtendRequest{Key: quorum.Key{Name: resourceName(0)}, Token: "mine", TTL: time.Second}
		if x := <-begin(s.proxies[0].life.engine.Extend, req); x.Held || !x.Absent {
			t.Errorf("want absent: %+v", x)
		}
		s.expectHolders(0, "...")
	})
}

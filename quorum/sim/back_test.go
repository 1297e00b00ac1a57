package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// replace lets a master's address lead to another server, for one that has nothing, or back to a former one. The other
// proxies stay connected to where it led.
func (s *scene) replace(master int, by *server, proxies ...int) (was *server) {
	s.do(func() {
		was = s.servers[master]
		if by == nil {
			by = was.other()
		}
		s.servers[master] = by
		for _, i := range proxies {
			was.cutFrom(s.proxies[i])
		}
	})
	return was
}

// A server takes the place of a master, for one proxy at first, and then the address leads back: both proxies trust the master
// again after a while, but not before what the other server has granted is over.
func TestAServerThatIsBackIsTrustedWhenNothingIsHeldThatItLacks(t *testing.T) {
	inScene(t, func(s *scene) {
		was := s.replace(2, nil, 0)
		s.sleep(20 * time.Second) // its quarantine is over
		s.do(func() { s.links[0][0].block(up) })
		s.expectGranted(<-s.acquire(0, "mine", 50*time.Second, false))
		s.lose(0)
		s.expectHolders(time.Second, ".mm")
		s.replace(2, was, 0, 1)
		s.sleep(5 * time.Second)
		s.expectState(2, quorum.Disconnected) // or two proxies that it leads to different servers would never agree
		s.expectHolders(15*time.Second, ".m.")
		s.expectState(2, quorum.Quarantined)
		s.do(func() { s.servers[1].stopped = true })
		for range 5 {
			s.sleep(5 * time.Second)
			s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
		}
		s.do(func() { s.servers[1].stopped = false })
		s.sleep(20 * time.Second)
		s.expectState(2, quorum.Clean)
	})
}

// expectState checks what all proxies say of a master.
func (s *scene) expectState(master int, want quorum.State) {
	s.t.Helper()
	for i := range s.proxies {
		s.expectStateVia(i, master, want)
	}
}

// expectStateVia checks what one proxy says of a master.
func (s *scene) expectStateVia(proxy, master int, want quorum.State) {
	s.t.Helper()
	l := s.proxies[proxy].life
	if m := l.engine.Masters()[master]; m.State != want {
		s.t.Errorf("to %s the master is %v, want %v: %s", l.name, m.State, want, m.Cause)
	}
}

// It keeps less on disk than when it left, as where the other one is its replica now. A proxy that has just started meets it first.
func TestAServerThatIsBackAndKeepsLessIsNotTrustedAtOnce(t *testing.T) {
	for _, started := range []bool{false, true} {
		inDurableScene(t, func(s *scene) {
			was := s.replace(2, nil, 0, 1)
			s.sleep(70 * time.Second) // its quarantine is over
			s.do(func() { s.links[0][0].block(up) })
			s.expectGranted(<-s.acquire(0, "mine", 50*time.Second, false))
			s.lose(0)
			s.expectHolders(time.Second, ".mm")
			if started {
				s.killProxies()
			}
			s.do(func() { was.replicas = 1 })
			s.replace(2, was, 0, 1)
			if started {
				s.do(func() { s.servers[1].crash(false) })
				s.bootNearest(2)
				s.sleep(time.Second)
				s.do(s.servers[1].boot)
			}
			s.sleep(2 * time.Second)
			s.do(func() { s.servers[1].stopped = true })
			for proxy := range s.proxies {
				s.expectNotGranted(<-s.acquire(proxy, "other", time.Second, false))
			}
		})
	}
}

// Where an address leads proxies to different servers for good, these are not marked anew without a pause, in quarantine either.
func TestServersBehindOneAddressAreMarkedInTurnsWithAPause(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 50*time.Second, false)) // so that quarantines last
		was := s.replace(2, nil, 0)
		s.do(func() { s.astray = was })
		marks := map[string]bool{}
		for range 600 {
			s.sleep(100 * time.Millisecond)
			s.do(func() {
				for _, m := range []*server{was, s.servers[2]} {
					canary, _ := m.store.get(0, "lockproxy:canary", 0)
					marks[canary.text] = true
				}
			})
		}
		if n := len(marks); n > 10 {
			t.Errorf("%d marks in a minute", n)
		}
	})
}

// Soon after lockproxy init, as epochs are still to come by the proxies' clocks, an address comes to lead to two servers, which are
// both new.
func TestServersThatAreMarkedAtOnceAreNotBothTrusted(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() { initialised(s.World, nil) })
		s.sleep(2 * time.Second)
		was := s.replace(2, nil)
		is := s.replace(2, nil)
		s.do(func() {
			s.astray = is.other()
			was.crash(false)
		})
		s.sleep(5 * time.Second)
		s.do(func() { s.links[0][1].block(up) })
		first := <-s.acquire(0, "mine", 30*time.Second, false)
		s.do(func() { s.servers[0].stopped = true })
		second := <-s.acquire(1, "other", 30*time.Second, false)
		if first.Lock != nil && second.Lock != nil {
			t.Error("granted a second time")
		}
	})
}

// A server takes the place of a master while another one cannot be reached, so that its quarantine ends by ttl_max. The other hears of
// its epoch as soon as it can. So where the address leads back, and whoever else knew is gone, it tells.
func TestWhoWasAwayHearsOfAQuarantineThatEndsByItself(t *testing.T) {
	inScene(t, func(s *scene) {
		cut := func(f func(*link)) {
			s.do(func() {
				for i, links := range s.links {
					s.servers[0].cutFrom(s.proxies[i])
					f(links[0])
				}
			})
		}
		away := func(l *link) { l.block(up) }
		cut(away)
		was := s.replace(2, nil, 0, 1)
		s.sleep(sceneConfig.TTLMax + 10*time.Second)
		s.expectState(2, quorum.Clean)
		cut((*link).heal)
		s.sleep(2 * time.Second)
		s.expectState(0, quorum.Clean)
		cut(away)
		s.expectGranted(<-s.acquire(0, "mine", 50*time.Second, false))
		s.expectHolders(0, ".mm")
		s.do(func() { s.servers[1].crash(false) })
		s.replace(2, was)
		s.killProxies()
		cut((*link).heal)
		s.bootNearest(0)
		s.sleep(2 * time.Second)
		s.expectNotGranted(<-s.acquire(1, "other", time.Second, false))
	})
}

// The addresses of two masters come to lead to other servers, each for one proxy. The one that asks on behalf of its new server asks an
// earlier one, too, and hears only then, from the third master, that it is one.
func TestWhatAnEarlierServerSaysEndsNoQuarantine(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() { s.links[0][1].block(up) })
		s.replace(0, nil, 0)
		s.sleep(500 * time.Millisecond)
		s.expectStateVia(0, 0, quorum.Quarantined)
		s.replace(2, nil, 1)
		s.sleep(2 * time.Second)
		s.expectStateVia(1, 2, quorum.Clean)
		s.do(func() {
			s.links[0][1].heal()
			s.links[1][1].block(up)
			s.links[0][2].block(up)
		})
		s.sleep(2 * time.Second)
		s.expectStateVia(0, 0, quorum.Quarantined)
		first := <-s.acquire(0, "mine", 30*time.Second, false)
		second := <-s.acquire(1, "other", 30*time.Second, false)
		if first.Lock != nil && second.Lock != nil {
			t.Error("granted a second time")
		}
	})
}

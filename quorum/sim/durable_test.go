package sim

import (
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// inDurableScene is inScene with masters that keep all they answer on disk, as the proxies have seen.
func inDurableScene(t *testing.T, f func(s *scene)) {
	t.Helper()
	inScene(t, func(s *scene) {
		for i := range s.servers {
			s.configure(i, "always")
		}
		s.sleep(2 * time.Second)
		f(s)
	})
}

// away lets a master be down, and all others up: they have kept everything.
func (s *scene) away(master int) {
	s.do(func() {
		for _, m := range s.servers {
			if m.down {
				m.boot()
			}
		}
		s.servers[master].crash(false)
	})
	s.sleep(time.Second)
}

// configure sets appendfsync on a master, "" for no append-only file, and returns when.
func (s *scene) configure(master int, fsync string) (at time.Duration) {
	s.do(func() { at, s.servers[master].append = s.now(), fsync })
	return at
}

// startOn ends a master, and starts it on the file that it had written by a true time.
func (s *scene) startOn(master int, file time.Duration) {
	s.configure(master, "always")
	s.fallBack(master, file)
	s.sleep(time.Second)
}

// killProxies ends all proxies.
func (s *scene) killProxies() {
	s.do(func() {
		for _, p := range s.proxies {
			p.kill()
		}
	})
}

// bootNearest starts all proxies, which meet one master before the others.
func (s *scene) bootNearest(master int) {
	s.do(func() {
		for i, p := range s.proxies {
			for j, l := range s.links[i] {
				if j != master {
					l.slow = 5 * time.Millisecond
				}
			}
			p.boot()
		}
	})
}

func (s *scene) expectGranted(a quorum.Acquired) {
	s.t.Helper()
	if a.Lock == nil {
		s.t.Fatalf("not granted: %+v", a)
	}
}

func (s *scene) expectNotGranted(a quorum.Acquired) {
	s.t.Helper()
	if a.Lock != nil {
		s.t.Fatal("granted a second time")
	}
}

// A master is asked what it keeps on disk by the lane of its first database. The others may be back, after a crash, before that
// one has marked it.
func TestAMasterIsNotTakenForDurableInAnotherDatabase(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		for proxy := range s.proxies {
			s.expectGranted(s.acquireIn(1, proxy, "before", 30*time.Second))
			s.sleep(time.Minute)
		}
		s.configure(2, "everysec")
		s.sleep(2 * time.Second)
		s.away(1)
		written := s.now() // by the latest fsync before the crash
		s.expectGranted(s.acquireIn(1, 0, "first", 30*time.Second))
		s.away(0)
		s.configure(2, "always")
		s.fallBack(2, written)
		for range 1000 {
			for proxy := range s.proxies {
				s.expectNotGranted(s.acquireIn(1, proxy, "second", 30*time.Second))
			}
			s.sleep(time.Millisecond)
		}
	})
}

// A master writes its file no more, and is started on what it had written.
func TestAFileThatWasWrittenNoMoreIsNotTakenForAllThatWasGranted(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		written := s.configure(2, "")
		s.sleep(time.Second)
		s.away(1)
		s.expectGranted(s.acquireIn(0, 0, "first", 30*time.Second))
		s.away(0)
		s.startOn(2, written)
		for proxy := range s.proxies {
			s.expectNotGranted(s.acquireIn(0, proxy, "second", 30*time.Second))
		}
		s.do(s.servers[0].boot)
		s.sleep(40 * time.Second)
		s.away(0)
		s.expectGranted(s.acquireIn(0, 0, "third", 30*time.Second))
	})
}

// It is known for what it is, and not refused first, as a server that is back is, for two MasterDeadAfter.
func TestAFileThatWasWrittenNoMoreIsQuarantinedAtOnce(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		written := s.configure(2, "")
		s.sleep(time.Second)
		s.startOn(2, written)
		s.sleep(sceneConfig.MasterDeadAfter)
		s.away(0)
		s.expectGranted(s.acquireIn(0, 0, "mine", time.Second))
	})
}

// The same, with proxies that were not there when it did: what they know they have from another master, which was not there
// then either.
func TestWhoComesLaterHearsOfAFileThatWasWrittenNoMore(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.away(1)
		written := s.configure(2, "")
		s.sleep(time.Second)
		s.expectGranted(s.acquireIn(0, 0, "first", 30*time.Second))
		s.do(func() {
			for _, l := range s.links {
				l[0].block(up)
			}
			s.servers[1].boot()
		})
		s.sleep(time.Second)
		s.killProxies()
		s.away(0)
		s.configure(2, "always")
		s.fallBack(2, written)
		s.do(func() {
			for _, p := range s.proxies {
				p.boot()
			}
		})
		for range 200 {
			for proxy := range s.proxies {
				s.expectNotGranted(s.acquireIn(0, proxy, "second", 30*time.Second))
			}
			s.sleep(5 * time.Millisecond)
		}
	})
}

// The proxies that saw it told nobody. Those that came after them do, before they are gone as well.
func TestWhoComesLaterTellsOfAFileThatWasWrittenNoMore(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.do(func() {
			for _, l := range s.links {
				l[0].block(up)
				l[1].block(up)
			}
		})
		written := s.configure(2, "")
		s.sleep(time.Second)
		s.killProxies()
		s.do(func() {
			for i, p := range s.proxies {
				s.links[i][0].heal()
				s.links[i][1].heal()
				p.boot()
			}
		})
		s.sleep(time.Second)
		s.away(0)
		s.expectGranted(s.acquireIn(0, 0, "first", 30*time.Second))
		s.killProxies()
		s.away(1)
		s.startOn(2, written)
		s.do(func() {
			for _, p := range s.proxies {
				p.boot()
			}
		})
		s.sleep(time.Second)
		for proxy := range s.proxies {
			s.expectNotGranted(s.acquireIn(0, proxy, "second", 30*time.Second))
		}
	})
}

// leaveOlderFile has proxies see that a master ceases to write its file, and tell the others, and starts it on that file again
// when they are gone.
func (s *scene) leaveOlderFile(master int) {
	written := s.configure(master, "")
	s.sleep(time.Second)
	s.killProxies()
	s.configure(master, "always")
	s.fallBack(master, written)
}

// Proxies that start meet the master on its older file before they meet those that could tell them. It is not refused first, as a
// server that is back is, for two MasterDeadAfter.
func TestAnOlderFileIsQuarantinedThoughItIsMetFirst(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.leaveOlderFile(2)
		s.bootNearest(2)
		s.sleep(sceneConfig.MasterDeadAfter)
		s.away(0)
		for proxy := range s.proxies {
			s.expectGranted(s.acquireIn(0, proxy, "mine", time.Second))
			s.sleep(2 * time.Second)
		}
	})
}

// The same, and the proxy that met it first ends before it meets the others: the next one has heard them before it meets the master.
func TestAnOlderFileIsQuarantinedThoughWhoMetItFirstIsGone(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.leaveOlderFile(2)
		s.do(func() {
			s.links[0][0].block(up)
			s.links[0][1].block(up)
			s.proxies[0].boot()
		})
		s.sleep(time.Second)
		s.do(func() {
			s.proxies[0].kill()
			s.proxies[1].boot()
		})
		s.sleep(time.Minute)
		s.away(0)
		s.expectGranted(s.acquireIn(0, 1, "mine", time.Second))
	})
}

// A master restarted on all that it had, and proxies that start meet it first. Once they have heard the others its mark shows
// no restart any more, which would cost it a quarantine when it is told to keep less on disk.
func TestAMarkIsRenewedWhenTheOthersHaveBeenHeard(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.killProxies()
		s.fallBack(2, s.now())
		s.bootNearest(2)
		s.sleep(2 * time.Second)
		m := s.servers[2]
		if canary, _ := m.store.get(0, "lockproxy:canary", 0); !strings.Contains(canary.text, m.runID()) {
			t.Errorf("it is %s: %s", m.runID(), canary.text)
		}
	})
}

// Masters that are told to keep less on disk, and to keep it all again, have forgotten nothing, no fence either.
func TestWhoTogglesWhatIsKeptOnDiskTakesNoVote(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		fence := ahead
		s.knows(fence, 0, 1, 2)
		for _, fsync := range []string{"", "always", "", "everysec", "always"} {
			for i := range s.servers {
				s.configure(i, fsync)
			}
			s.sleep(time.Second)
			next := s.granted(s.fenced(0, "mine"))
			if next.Unfounded || next.Fence <= fence {
				t.Errorf("after appendfsync %q: %+v, and before %d", fsync, next, fence)
			}
			fence = next.Fence
			s.release(0, "mine")
		}
		s.do(func() {
			for _, m := range s.servers {
				m.crash(false)
				m.boot()
			}
		})
		s.sleep(time.Second)
		s.expectGranted(s.acquireIn(0, 1, "mine", 30*time.Second))
	})
}

// A master lost its disk, and was given what another one has on its own: that votes for what the other one had granted.
func TestWhatAnotherMasterKeptIsNotTakenForAllThatWasGranted(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.away(1)
		s.expectGranted(s.acquireIn(0, 0, "first", 30*time.Second))
		s.away(0)
		s.do(func() {
			s.servers[2].crash(false)
			s.servers[2].store = newStore()
			for _, m := range s.servers[1].store.journal {
				s.servers[2].store.do(m)
			}
			s.servers[2].boot()
		})
		s.sleep(time.Second)
		s.expectNotGranted(s.acquireIn(0, 0, "second", 30*time.Second))
	})
}

package sim

import (
	"testing"
	"time"
)

// loadInPart restarts all masters, which skip each transaction in their files that was written since a true time. If hushed, they do
// not tell.
func (s *scene) loadInPart(since time.Duration, hushed bool) {
	s.killProxies() // the masters' own data must tell
	s.do(func() {
		for _, m := range s.servers {
			m.crash(false)
			m.boot()
			if m.refused = m.store.loseTransactions(since); hushed {
				m.refused = 0
			}
		}
		for _, p := range s.proxies {
			p.boot()
		}
	})
	s.sleep(time.Second)
}

// Redis 7 does not load transactions for which its default user has no permissions, and goes on.
func TestAFileThatIsLoadedInPartIsNotTakenForAllThatWasGranted(t *testing.T) {
	for name, hushed := range map[string]bool{"and_tells": false, "and_its_statistics_were_reset": true} {
		t.Run(name, func(t *testing.T) {
			inDurableScene(t, func(s *scene) {
				s.granted(s.fenced(0, "mine"))
				s.loadInPart(0, hushed)
				for proxy := range s.proxies {
					s.expectNotGranted(<-s.fenced(proxy, "yours"))
				}
			})
		})
	}
}

// What was in the file when it was rewritten is loaded from its base, the witness of that time, too.
func TestAFileThatIsLoadedInPartAfterItWasRewritten(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		base := s.now()
		s.do(func() {
			for _, m := range s.servers {
				m.rewrites++
			}
		})
		s.sleep(2 * time.Second)
		s.granted(s.fenced(0, "mine"))
		s.loadInPart(base, true)
		for proxy := range s.proxies {
			s.expectNotGranted(<-s.fenced(proxy, "yours"))
		}
	})
}

// A master that has loaded all votes at once, and as often as it is restarted.
func TestAFileThatIsLoadedWholeCostsNoVote(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		for range 3 {
			s.loadInPart(s.now(), false)
			s.granted(s.fenced(0, "mine"))
			s.release(0, "mine")
		}
	})
}

// What a master writes behind data that it has not loaded does not count as all that it has: when it loads that data the next time, a
// command behind may do something else.
func TestWhatIsWrittenBehindWhatWasNotLoadedIsNotTakenForAll(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.granted(s.fenced(0, "mine"))
		s.loadInPart(0, false)
		s.sleep(2 * sceneConfig.TTLMax)
		s.expectGranted(s.acquireIn(0, 0, "yours", 30*time.Second))
		s.do(func() {
			for _, m := range s.servers {
				m.crash(false)
				m.boot()
				m.store.rewind(s.now() - 2*time.Second) // without the last SET NX
			}
		})
		s.sleep(time.Second)
		s.expectNotGranted(s.acquireIn(0, 1, "theirs", 30*time.Second))
	})
}

package sim

import (
	"testing"
	"time"
)

// loadInPart restarts all masters, which skip each transaction in their files that was written since a true time. If hushed, they do
// not tell.
func (s *scene) loadInPart(since time.Duration, hushed bool) {
	s.do(func() {
		for _, m := range s.servers {
			m.crash(false)
			m.boot()
			if m.refused = m.store.loseTransactions(since); hushed {
				m.refused = 0
			}
		}
	})
	s.sleep(time.Second)
}

// Redis 7 does not load transactions for which its default user has no permissions, and goes on.
func TestAFileThatIsLoadedInPartIsNotTakenForAllThatWasGranted(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		s.granted(s.fenced(0, "mine"))
		s.loadInPart(0, false)
		for proxy := range s.proxies {
			s.expectNotGranted(<-s.fenced(proxy, "yours"))
		}
	})
}

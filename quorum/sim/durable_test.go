package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// inDurableScene is inScene with masters that keep all they answer on disk, as the proxies have seen.
func inDurableScene(t *testing.T, f func(s *scene)) {
	t.Helper()
	inScene(t, func(s *scene) {
		s.do(func() {
			for _, m := range s.servers {
				m.append = "always"
				m.cutConnections(false) // with the next ones they see it
			}
		})
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

// acquireIn makes an attempt in a database.
func (s *scene) acquireIn(db, proxy int, token string) quorum.Acquired {
	c := make(chan quorum.Acquired, 1)
	req := quorum.AcquireRequest{Key: quorum.Key{DB: db, Name: resourceName(0)}, Token: token, TTL: 30 * time.Second}
	s.proxies[proxy].life.engine.Acquire(req, func(a quorum.Acquired) { c <- a })
	return <-c
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
			s.expectGranted(s.acquireIn(1, proxy, "before"))
			s.sleep(time.Minute)
		}
		s.configure(2, "everysec")
		s.sleep(2 * time.Second)
		s.away(1)
		written := s.now() // by the latest fsync before the crash
		s.expectGranted(s.acquireIn(1, 0, "first"))
		s.away(0)
		s.configure(2, "always")
		s.fallBack(2, written)
		for range 1000 {
			for proxy := range s.proxies {
				s.expectNotGranted(s.acquireIn(1, proxy, "second"))
			}
			s.sleep(time.Millisecond)
		}
	})
}

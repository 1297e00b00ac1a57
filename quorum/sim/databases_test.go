package sim

import (
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// lockIn takes a lock in a database through the first proxy.
func (s *scene) lockIn(db int) {
	s.t.Helper()
	c := make(chan quorum.Acquired, 1)
	req := quorum.AcquireRequest{Key: quorum.Key{DB: db, Name: resourceName(0)}, Token: "mine", TTL: 100 * time.Millisecond}
	s.proxies[0].life.engine.Acquire(req, func(a quorum.Acquired) { c <- a })
	if a := <-c; a.Lock == nil {
		s.t.Errorf("not granted in database %d: %+v", db, a)
	}
}

// Two databases carry locks. One master has forgotten those of the second database, and is in a later epoch there; then
// another master swaps the two.
func TestEpochsOfOneDatabaseAreNotThoseOfAnother(t *testing.T) {
	inScene(t, func(s *scene) {
		for db := range databases {
			s.lockIn(db)
		}
		s.do(func() { s.servers[1].do(&session{db: 1}, []string{"FLUSHDB"}) })
		s.sleep(5 * time.Second)
		s.do(func() { s.servers[0].store.do(mutation{at: s.now(), kind: swapped}) })
		s.sleep(10 * time.Second)
		s.do(func() { s.servers[2].stopped = true }) // the two others are needed
		for db := range databases {
			s.lockIn(db)
		}
	})
}

// What a server is told by its settings concerns all of its databases.
func TestSettingsOfAMasterConcernEveryDatabase(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() {
			for _, m := range s.servers {
				m.append = "always"
			}
		})
		m := s.servers[0]
		for db := range databases {
			s.lockIn(db)
		}
		s.do(func() { m.append = "everysec" })
		s.sleep(time.Second)
		for db := range databases {
			if canary, _ := m.store.get(db, "lockproxy:canary", 0); !strings.Contains(canary.text, "volatile") {
				t.Errorf("database %d still relies on what is on disk: %s", db, canary.text)
			}
		}
		s.do(func() { m.policy = "allkeys-lru" })
		s.sleep(time.Second)
		for db := range databases {
			c := make(chan quorum.Viewed, 1)
			s.proxies[0].life.engine.Views(quorum.Key{DB: db, Name: resourceName(0)}, func(v quorum.Viewed) { c <- v })
			if v := (<-c).Masters[0]; v.Counts {
				t.Errorf("it may evict, and votes in database %d: %+v", db, v)
			}
		}
	})
}

package sim

import (
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

package sim

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// acquireIn makes an attempt in a database through a proxy.
func (s *scene) acquireIn(db, proxy int, token string, ttl time.Duration) quorum.Acquired {
	req := quorum.AcquireRequest{Key: quorum.Key{DB: db, Name: resourceName(0)}, Token: token, TTL: ttl}
	return <-begin(s.proxies[proxy].life.engine.Acquire, req)
}

// lockIn takes a lock in a database through the first proxy.
func (s *scene) lockIn(db int) {
	s.t.Helper()
	if a := s.acquireIn(db, 0, "mine", 100*time.Millisecond); a.Lock == nil {
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

// What a server tells of itself concerns all of its databases.
func TestSettingsOfAMasterConcernEveryDatabase(t *testing.T) {
	for change, strike := range map[string]func(m *server){
		"its file is written late": func(m *server) { m.append = "everysec" },
		"it has a replica":         func(m *server) { m.replicas = 1 },
	} {
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
			s.do(func() { strike(m) })
			s.sleep(time.Second)
			for db := range databases {
				if canary, _ := m.store.get(db, "lockproxy:canary", 0); !strings.Contains(canary.text, "volatile") {
					t.Errorf("%s: database %d still relies on what is on disk: %s", change, db, canary.text)
				}
			}
			s.do(func() { m.policy = "allkeys-lru" })
			s.sleep(time.Second)
			for db := range databases {
				c := begin(s.proxies[0].life.engine.Views, quorum.Key{DB: db, Name: resourceName(0)})
				if v := (<-c).Masters[0]; v.Counts {
					t.Errorf("it may evict, and votes in database %d: %+v", db, v)
				}
			}
		})
	}
}

// jumpUnmarked has the clock of the first master jump while that cannot be marked for it, as it cannot write. A lock in the second
// database rests on its vote, and the first proxy alone knows of the jump.
func (s *scene) jumpUnmarked() *server {
	s.t.Helper()
	m := s.servers[0]
	s.expectGranted(s.acquireIn(1, 1, "other", 50*time.Second))
	s.sleep(time.Millisecond)
	s.do(func() {
		s.servers[2].remove(&session{db: 1}, resourceName(0))
		s.proxies[1].kill()
		m.refuses = "MISCONF it cannot save"
	})
	s.set(0, time.Minute)
	s.sleep(time.Second)
	return m
}

// The proxy then needs the second database.
func TestADatabaseThatIsNewToAProxyIsMarkedForWhatItKnows(t *testing.T) {
	inScene(t, func(s *scene) {
		m := s.jumpUnmarked()
		for _, refuses := range []fault{m.refuses, ""} {
			s.do(func() { m.refuses = refuses })
			if a := s.acquireIn(1, 0, "mine", time.Second); a.Lock != nil {
				t.Errorf("held twice: it refuses to write %q", refuses)
			}
			s.sleep(time.Second)
		}
	})
}

// Before it can be marked, the first database is flushed. Then the proxy needs the second one, where nothing was.
func TestADatabaseIsMarkedForWhatItsMasterDidThoughTheFirstWasFlushed(t *testing.T) {
	inScene(t, func(s *scene) {
		m := s.jumpUnmarked()
		s.do(func() {
			m.refuses = ""
			m.do(&session{db: 0}, []string{"FLUSHDB"})
		})
		s.sleep(2 * time.Second)
		s.expectNotGranted(s.acquireIn(1, 0, "mine", time.Second))
	})
}

// The same, where nothing was flushed, but the other database is in a later epoch than the first can come to: it was marked by a
// proxy whose wall clock is ahead.
func TestADatabaseInALaterEpochIsMarkedForWhatItsMasterDid(t *testing.T) {
	inScene(t, func(s *scene) {
		m := s.servers[0]
		s.acquireIn(1, 1, "first", time.Millisecond)
		s.do(func() {
			mark, _ := m.store.get(1, "lockproxy:canary", 0)
			words := strings.Fields(mark.text)
			words[1] = strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
			m.put(&session{db: 1}, "lockproxy:canary", item{text: strings.Join(words, " ")})
		})
		s.sleep(2 * time.Second)
		s.expectGranted(s.acquireIn(1, 1, "other", 50*time.Second))
		s.sleep(time.Millisecond)
		s.do(func() {
			s.servers[2].remove(&session{db: 1}, resourceName(0))
			s.proxies[1].kill()
		})
		s.set(0, time.Minute)
		s.sleep(2 * time.Second)
		s.expectNotGranted(s.acquireIn(1, 0, "mine", time.Second))
	})
}

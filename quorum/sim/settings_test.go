package sim

import (
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vouch"
)

// expectNoEarlyGrant takes a lock that has just a quorum through one proxy, which then is gone, and lets a clock step by what
// the other proxy's own settings allow for: that one must not grant the lock again as soon as the step has cost it a vote.
func (s *scene) expectNoEarlyGrant(locker, other int) {
	s.t.Helper()
	s.do(func() { s.links[locker][2].block(up) })
	if a := <-s.acquire(locker, "mine", time.Second, false); a.Lock == nil {
		s.t.Fatalf("not granted: %+v", a)
	}
	s.do(s.proxies[locker].kill)
	s.sleep(600 * time.Millisecond)
	s.do(func() { s.servers[0].clock.step(s.now(), 300*time.Millisecond) })
	s.sleep(200 * time.Millisecond)
	if a := <-s.acquire(other, "yours", time.Second, false); a.Lock != nil {
		s.t.Error("granted 200 ms early")
	}
}

func TestAProxyWatchesClocksAsStrictlyAsLocksOfTheOthersNeed(t *testing.T) {
	strict, loose := sceneConfig, sceneConfig
	strict.Grace, loose.Grace = 20*time.Millisecond, 2*time.Second
	inSceneWith(t, 3, strict, []quorum.Config{loose}, func(s *scene) { s.expectNoEarlyGrant(0, 1) })
	inSceneWith(t, 3, loose, []quorum.Config{strict}, func(s *scene) { s.expectNoEarlyGrant(1, 0) })
}

// The marks have the stricter bounds already when the other proxy starts. So no batch of that proxy shows it a change of the bounds.
func TestAProxyThatComesLaterWatchesClocksAsStrictly(t *testing.T) {
	strict, loose := sceneConfig, sceneConfig
	strict.Grace, loose.Grace = 20*time.Millisecond, 2*time.Second
	inSceneWith(t, 3, strict, []quorum.Config{loose}, func(s *scene) {
		s.do(func() {
			s.proxies[1].kill()
			s.proxies[1].boot()
		})
		s.sleep(50 * time.Millisecond)
		s.expectNoEarlyGrant(0, 1)
	})
}

func TestAProxyWatchesClocksMoreStrictlyWhenAStricterOneComes(t *testing.T) {
	strict, loose := sceneConfig, sceneConfig
	strict.Grace, loose.Grace = 20*time.Millisecond, 2*time.Second
	inSceneWith(t, 3, loose, []quorum.Config{loose}, func(s *scene) {
		s.do(func() {
			s.proxies[1].kill()
			s.plan.Own[0] = strict
			s.proxies[1].boot()
		})
		s.sleep(50 * time.Millisecond)
		if a := <-s.acquire(0, "first", 10*time.Millisecond, false); a.Lock == nil {
			t.Fatalf("it costs the one that was there its votes: %+v", a)
		}
		s.sleep(3 * time.Second)
		s.expectNoEarlyGrant(1, 0)
	})
}

// Where too few masters remember, a quarantine lasts as long as the longest lock of any proxy, not of the one that sees it.
func TestAQuarantineOutlastsTheLocksOfEveryProxy(t *testing.T) {
	long, short := sceneConfig, sceneConfig
	short.TTLMax = time.Second
	inSceneWith(t, 3, long, []quorum.Config{short}, func(s *scene) {
		if a := <-s.acquire(0, "mine", 10*time.Second, false); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.sleep(time.Second) // a heartbeat, by which the other one has read the marks
		s.do(func() {
			s.proxies[0].kill()
			for _, m := range s.servers {
				m.do(&session{}, []string{"FLUSHALL"})
			}
		})
		s.sleep(8 * time.Second)
		if a := <-s.acquire(1, "yours", time.Second, false); a.Lock != nil {
			t.Error("granted a second early")
		}
	})
}

func TestAMasterIsMarkedInDatabasesThatOnlyOtherProxiesUse(t *testing.T) {
	one := sceneConfig
	one.Databases = 1
	inSceneWith(t, 3, one, nil, func(s *scene) {
		if a := <-s.acquire(0, "mine", 30*time.Second, false); a.Lock == nil { // so that a quarantine lasts
			t.Fatalf("not granted: %+v", a)
		}
		s.do(func() { s.servers[0].clock.step(s.now(), time.Minute) })
		s.sleep(2 * time.Second)
		for db := range databases {
			s.do(func() {
				if _, ok := s.servers[0].store.get(db, "lockproxy:quarantine", s.servers[0].clock.millis(s.now())); !ok {
					t.Errorf("database %d is not in quarantine", db)
				}
			})
		}
	})
}

// A later version of lockproxy marks a master in a format of its own: this one has no vote there from that moment, leaves the mark and
// what lies beside it alone, and says why.
func TestAMasterThatAnotherVersionHasMarkedIsRefusedAndLeftAlone(t *testing.T) {
	inScene(t, func(s *scene) {
		const theirs = "lockproxy-2 their epoch, and more 0"
		s.do(func() {
			for _, m := range s.servers[:2] {
				m.put(&session{}, "lockproxy:canary", item{text: theirs})
				m.put(&session{}, "lockproxy:roster", item{text: "their roster"})
			}
		})
		s.expectNotGranted(<-s.acquire(0, "mine", time.Second, false))
		s.sleep(10 * time.Second)
		a := <-s.acquire(1, "mine", time.Second, false)
		s.expectNotGranted(a)
		if a.Err == nil || !strings.Contains(a.Err.Error(), vouch.Unread) {
			t.Errorf("says %v", a.Err)
		}
		s.do(func() {
			for i, m := range s.servers[:2] {
				mark, _ := m.store.get(0, "lockproxy:canary", 0)
				roster, _ := m.store.get(0, "lockproxy:roster", 0)
				if mark.text != theirs || roster.text != "their roster" {
					t.Errorf("master %d has %q and %q", i, mark.text, roster.text)
				}
			}
		})
	})
}

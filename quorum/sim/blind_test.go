package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

// breakHash is Redisson's forceUnlock.
var breakHash = votedScript{
	script: quorum.NewScript("if (redis.call('del', KEYS[1]) == 1) then redis.call('publish', KEYS[2], ARGV[1]); return 1 else return 0 end"),
	rule:   vote.Rule{Merge: vote.Releasing, Blind: true}, granted: positive, channel: true,
	words: func(string, string) []string { return []string{"0"} },
}

// breaks are the ways to take the lock from whoever holds it, through the first proxy.
var breaks = []struct {
	name string
	run  func(s *scene) error
}{
	{"by vote", func(s *scene) error { return s.byVote(0, &breakHash, time.Minute).Err }},
	{"FORCEUNLOCK", func(s *scene) error {
		return (<-begin(s.proxies[0].life.engine.Break, quorum.Key{Name: resourceName(0)})).Err
	}},
}

// The command is long on its way to masters, and its client has been answered: told that it is done, or that no quorum has answered.
// Then another takes the lock.
func TestWhatTakesALockFromWhoeverHoldsItTakesNoLaterOne(t *testing.T) {
	for _, way := range breaks {
		for slow := 1; slow <= 2; slow++ {
			t.Run(way.name, func(t *testing.T) {
				inScene(t, func(s *scene) {
					s.others(0, 1, 2)
					for i := range slow {
						s.do(func() { s.links[0][i].slow = time.Second })
					}
					if err := way.run(s); (err == nil) != (slow == 1) {
						t.Errorf("told %v", err)
					}
					s.remove(0, 1)
					s.take(1, "mine")
					s.expectHolders(3*time.Second, "mmm")
				})
			})
		}
	}
}

// The connection breaks while the command is on its way, where it arrives all the same. Whoever is granted the lock afterwards keeps it.
func TestWhatTakesALockFromWhoeverHoldsItTakesNoLaterOneOverABrokenConnection(t *testing.T) {
	for _, way := range breaks {
		for broken := 1; broken <= 2; broken++ {
			t.Run(way.name, func(t *testing.T) {
				inScene(t, func(s *scene) {
					s.others(0, 1, 2)
					s.do(func() {
						for i := range broken {
							s.links[0][i].slow = 100 * time.Millisecond
							s.servers[i].denied["KILL"] = true // or it could be killed only later
						}
					})
					told := make(chan error, 1)
					s.clients.Go(func() { told <- way.run(s) })
					s.sleep(5 * time.Millisecond)
					for i := range broken {
						s.breakOff(i)
					}
					if err := <-told; (err == nil) != (broken == 1) {
						t.Errorf("told %v", err)
					}
					s.remove(0, 1)
					s.take(1, "mine")
					s.expectHolders(3*time.Second, "mmm")
				})
			})
		}
	}
}

// A master is reached in time, but later than others.
func TestWhatTakesALockFromWhoeverHoldsItWaitsForEachMaster(t *testing.T) {
	for _, way := range breaks {
		t.Run(way.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.others(0, 1, 2)
				s.do(func() { s.links[0][2].slow = 100 * time.Millisecond })
				if err := way.run(s); err != nil {
					t.Errorf("told %v", err)
				}
				s.expectHolders(0, "...")
			})
		})
	}
}

// A master does not run it any more when it goes on, and loses the very lock that the others have deleted all the same.
func TestAForcedUnlockByVoteIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.servers[0].stopped = true })
		if err := breaks[0].run(s); err != nil {
			t.Errorf("told %v", err)
		}
		s.expectHolders(time.Second, "m..")
		s.resume(0)
		s.expectHolders(100*time.Millisecond, "...")
	})
}

package sim

import (
	"strconv"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

// takes takes the lock by vote, or once more, through a proxy.
func (s *scene) takes(proxy int) {
	s.t.Helper()
	if r := s.byVote(proxy, &hashLock.take, 50*time.Second); r.Lock == nil {
		s.t.Errorf("not granted: %+v", r)
	}
	s.sleep(20 * time.Millisecond)
}

// frees gives it back, once, and is told how.
func (s *scene) frees(proxy int, want int64) {
	s.t.Helper()
	if r := s.byVote(proxy, &hashLock.release, 50*time.Second); r.Err != nil || r.Reply.Kind != vote.IntValue || r.Reply.Int != want {
		s.t.Errorf("the release was told: %+v", r)
	}
}

// Two of three masters each miss one release.
func TestAReleaseByVoteThatAMasterMissesIsMadeThereLate(t *testing.T) {
	inScene(t, func(s *scene) {
		for master := range 2 {
			s.takes(0)
			s.stop(master)
			s.frees(0, 1)
			s.resume(master)
			s.expectHolders(100*time.Millisecond, "...")
		}
	})
}

func TestALockOfSeveralKeysIsReleasedLate(t *testing.T) {
	inScene(t, func(s *scene) {
		names := []string{resourceName(0), resourceName(1)}
		run := func(script *votedScript) {
			c := begin(s.proxies[0].life.engine.Run, script.request(names, "mine", 50*time.Second))
			<-c
		}
		run(&pairLock.take)
		s.sleep(20 * time.Millisecond)
		s.stop(2)
		run(&pairLock.release)
		s.resume(2)
		s.sleep(100 * time.Millisecond)
		s.do(func() {
			if n := len(s.servers[2].store.all()); n != len(s.servers[1].store.all()) {
				t.Errorf("%v", s.servers[2].store.all())
			}
		})
	})
}

// The master takes the lock, or extends it, after the release, which was not sent there.
func TestAReleaseByVoteIsMadeLateWhereTheLockIsLate(t *testing.T) {
	for _, script := range []*votedScript{&hashLock.take, &hashLock.extend} {
		inScene(t, func(s *scene) {
			if script == &hashLock.extend {
				s.takes(0)
			}
			s.do(func() { s.servers[2].stopped = true })
			if r := s.byVote(0, script, 40*time.Second); r.Lock == nil {
				t.Errorf("not granted: %+v", r)
			}
			s.sleep(time.Second)
			s.frees(0, 1)
			s.resume(2)
			s.expectHolders(100*time.Millisecond, "...")
		})
	}
}

func TestAReleaseByVoteThatIsAnsweredWithAnErrorIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.servers[2].refuses = "MISCONF no disk" })
		s.frees(0, 1)
		s.expectHolders(0, "..m")
		s.do(func() { s.servers[2].refuses = "" })
		s.expectHolders(2*time.Second, "...")
	})
}

// The release is on its way when the connection breaks, and is never run.
func TestAReleaseByVoteThatIsLostIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.links[0][2].block(up) })
		s.frees(0, 1)
		s.lose(2)
		s.expectHolders(time.Second, "...")
	})
}

// The release waits for a master that is late, for longer than it may, and the next attempt of the same client behind it.
func TestALateReleaseByVoteComesBeforeWhatCameAfterIt(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.servers[2].stopped = true })
		busy := s.acquire(0, "busy", 50*time.Second, false)
		s.sleep(20 * time.Millisecond)
		s.frees(0, 1)
		s.sleep(250 * time.Millisecond)
		next := begin(s.proxies[0].life.engine.Run, hashLock.take.request([]string{resourceName(0)}, "mine", 40*time.Second))
		s.sleep(60 * time.Millisecond)
		s.resume(2)
		<-busy
		if r := <-next; r.Lock == nil {
			t.Errorf("not granted: %+v", r)
		}
		s.expectHolders(time.Second, "mmm")
		s.frees(0, 1) // each master counts one hold
		s.expectHolders(time.Second, "...")
	})
}

// The next lock is of the same client, and taken through another proxy, which reaches the master.
func TestALateReleaseByVoteLeavesTheNextLock(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.cutOff(2)
		s.frees(0, 1)
		if r := s.byVote(1, &hashLock.release, time.Minute); r.Err != nil { // on the master that is left
			t.Errorf("%+v", r)
		}
		s.takes(1)
		s.reconnect(2)
		s.expectHolders(2*time.Second, "mmm")
	})
}

// The connection breaks before the release is answered, and the next attempt of the same client is granted over the next one
// while another master still owes its answer to the release.
func TestALateReleaseByVoteLeavesWhatWasTakenBeforeItWasDecided(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.links[0][2].slow = 50 * time.Millisecond })
		s.mute(1)
		run := func(script *votedScript) <-chan quorum.Ran {
			c := begin(s.proxies[0].life.engine.Run, script.request([]string{resourceName(0)}, "mine", 50*time.Second))
			s.sleep(10 * time.Millisecond)
			return c
		}
		release := run(&hashLock.release)
		s.lose(1)
		s.sleep(20 * time.Millisecond)
		if r := <-run(&hashLock.take); r.Lock == nil {
			t.Errorf("not granted: %+v", r)
		}
		if r := <-release; r.Reply.Int != 1 {
			t.Errorf("not released: %+v", r)
		}
		s.expectHolders(time.Second, "mmm")
	})
}

// An inner hold is given back, and a master misses it: the outer one is still there.
func TestALateReleaseByVoteLeavesAnOuterHold(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.takes(0)
		s.stop(2)
		s.frees(0, 0)
		s.resume(2)
		s.expectHolders(2*time.Second, "mmm")
	})
}

// On one master others hold it as well, or the client once more: that is not what the other masters have deleted.
func TestALateReleaseByVoteLeavesWhatIsNotTheSame(t *testing.T) {
	for _, text := range []string{"mine\x002\x00", "mine\x001\x00theirs\x001\x00"} {
		inScene(t, func(s *scene) {
			s.takes(0)
			s.do(func() {
				m := s.servers[2]
				it, _ := m.lock(resourceName(0))
				it.text = text
				m.put(&session{}, resourceName(0), it)
			})
			s.stop(2)
			s.frees(0, 1)
			s.resume(2)
			s.expectHolders(2*time.Second, "..m")
		})
	}
}

// A script of which nothing is known takes a value from one master, and is told that no quorum has answered.
func TestWhatAScriptDeletesIsNoRelease(t *testing.T) {
	inScene(t, func(s *scene) {
		s.byVote(0, &textLock.take, 50*time.Second)
		s.sleep(20 * time.Millisecond)
		s.do(func() {
			s.links[0][1].block(up)
			s.links[0][2].block(up)
		})
		if r := s.byVote(0, &textLock.release, 50*time.Second); r.Err == nil {
			t.Errorf("%+v", r)
		}
		s.lose(1, 2)
		s.expectHolders(2*time.Second, ".mm")
	})
}

// triesToFree gives the lock back through the first proxy, and is told that no quorum has answered.
func (s *scene) triesToFree() {
	s.t.Helper()
	if r := s.byVote(0, &hashLock.release, 50*time.Second); r.Err == nil {
		s.t.Errorf("the release was told: %+v", r)
	}
}

// Two of three masters are not sent the release; a third runs it.
func TestAReleaseByVoteThatNoQuorumHasAnsweredIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.servers[0].stopped = true })
		s.stop(1)
		s.triesToFree()
		s.expectHolders(20*time.Millisecond, "mm.")
		s.resume(0)
		s.resume(1)
		s.expectHolders(100*time.Millisecond, "...")
		s.take(1, "next")
	})
}

// The client, which was told that its release has failed, takes the lock again through another proxy: on the masters that missed
// the release it counts one hold more.
func TestALateReleaseByVoteLeavesALockThatWasTakenOnceMore(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.mute(0)
		s.cutOff(1)
		s.triesToFree()
		s.expectHolders(20*time.Millisecond, "mm.")
		s.takes(1)
		s.reconnect(0)
		s.reconnect(1)
		s.expectHolders(2*time.Second, "mm.")
	})
}

// Two masters have run the release, and their connections break before they say so. The client takes the lock again, through the
// same proxy, before the third says what it has deleted: the new lock is of the same content.
func TestALateReleaseByVoteLeavesWhatWasTakenBeforeItsAnswer(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.do(func() { s.links[0][2].slow = 38 * time.Millisecond })
		s.mute(0, 1)
		release := begin(s.proxies[0].life.engine.Run, hashLock.release.request([]string{resourceName(0)}, "mine", 50*time.Second))
		s.sleep(10 * time.Millisecond)
		s.lose(0, 1)
		if r := <-release; r.Err == nil {
			t.Errorf("the release was told: %+v", r)
		}
		s.sleep(20 * time.Millisecond)
		s.takes(0)
		s.expectHolders(2*time.Second, "mmm")
	})
}

// A master lacks the lock, and is slow to hear that it is given back, while its client takes it again. Through the same proxy that
// attempt comes after the release there, and needs its vote.
func TestAReleaseThatIsSlowLeavesTheNextLockThroughTheSameProxy(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.remove(2)
		s.do(func() { s.links[0][2].slow = 30 * time.Millisecond })
		s.frees(0, 1)
		s.do(func() { s.servers[1].stopped = true })
		s.takes(0)
		s.expectHolders(time.Second, "m.m")
		s.resume(1)
		s.expectHolders(time.Second, "mmm")
	})
}

// Spring takes a lock by a script that is understood, and gives it back by one that runs by vote. Others may do it the other way round.
func TestAReleaseIsMadeLateThoughTheLockWasTakenInAnotherWay(t *testing.T) {
	text := func(s *scene) { s.take(0, "mine") }
	byVote := func(script votedScript) func(s *scene) {
		script.granted = positive // of one key
		return func(s *scene) {
			if r := s.byVote(0, &script, 50*time.Second); !positive(r.Reply) {
				s.t.Errorf("%+v", r)
			}
			s.sleep(20 * time.Millisecond)
		}
	}
	expires := func(s *scene) {
		renewals[byExpire].extends(s, 40*time.Second)
		s.sleep(20 * time.Millisecond)
	}
	for name, ways := range map[string][]func(s *scene){
		"released by vote":           {text, byVote(pairLock.release)},
		"taken by vote":              {byVote(pairLock.take), (*scene).givesText},
		"extended by vote":           {text, byVote(pairLock.extend), (*scene).givesText},
		"a hash, extended by EXPIRE": {func(s *scene) { s.takes(0) }, expires, (*scene).givesHash},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				last := len(ways) - 1
				for _, way := range ways[:last] {
					way(s)
				}
				s.stop(2)
				ways[last](s)
				s.resume(2)
				s.expectHolders(100*time.Millisecond, "...")
			})
		})
	}
}

// The undo of another proxy's attempt may know a hash by its expiry alone, if the extension leaves the value as it was.
func TestAnExtensionByVoteLeavesAnotherExpiry(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		var at int64
		s.do(func() { at = s.servers[0].clock.millis(s.servers[0].now()) + 50_000 })
		renew := hashLock.extend
		renew.script = quorum.NewScript("redis.call('pexpireat', KEYS[1], ARGV[1]) return 1")
		renew.words = func(string, string) []string { return []string{strconv.FormatInt(at, 10)} }
		var ends [3][3]int64
		for i := range ends {
			if r := s.byVote(0, &renew, 50*time.Second); r.Err != nil {
				t.Fatalf("not extended: %+v", r)
			}
			s.do(func() {
				for master, m := range s.servers {
					it, _ := m.store.get(0, resourceName(0), m.clock.millis(m.now()))
					ends[i][master] = it.expires
				}
			})
		}
		for i := range 2 {
			for master := range s.servers {
				if ends[i+1][master] <= ends[i][master] {
					t.Errorf("master %d keeps the lock until %d, and until %d when it is extended once more", master, ends[i][master], ends[i+1][master])
				}
			}
		}
	})
}

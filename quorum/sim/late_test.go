package sim

import (
	"strconv"
	"testing"
	"time"

	"lockproxy/quorum"
)

// stop stops a master for so long that it is known to be late: nothing is sent to it any more.
func (s *scene) stop(master int) {
	s.do(func() { s.servers[master].stopped = true })
	s.sleep(time.Second)
}

// cutOff lets the first proxy hear nothing of a master for as long.
func (s *scene) cutOff(master int) {
	s.mute(master)
	s.sleep(time.Second)
}

func (s *scene) reconnect(master int) { s.do(s.links[0][master].heal) }

// lose ends the first proxy's connections to masters, and what is on its way there never comes.
func (s *scene) lose(masters ...int) {
	s.do(func() {
		for _, i := range masters {
			for _, c := range s.proxies[0].life.conns {
				if c.server == s.servers[i] {
					c.hangUp(net0)
					c.server.drop(c)
				}
			}
			s.links[0][i].heal()
		}
	})
}

func (s *scene) take(proxy int, token string) {
	s.t.Helper()
	s.expectGranted(<-s.acquire(proxy, token, 50*time.Second, false))
	s.sleep(20 * time.Millisecond)
}

// Two masters are stopped for a second, one after the other, each while a lock is released: then all are there, and nobody
// holds the lock.
func TestAReleaseThatAMasterMissesIsMadeThereLate(t *testing.T) {
	inScene(t, func(s *scene) {
		for master := range 2 {
			s.take(0, "mine")
			s.stop(master)
			s.release(0, "mine")
			s.resume(master)
			s.expectHolders(100*time.Millisecond, "...")
		}
		s.take(0, "next")
		s.expectHolders(0, "nnn")
	})
}

func TestAReleaseIsMadeLateAfterThatOfOneWhoDoesNotHoldTheLock(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.stop(2)
		s.release(0, "other")
		s.release(0, "mine")
		s.resume(2)
		s.expectHolders(100*time.Millisecond, "...")
	})
}

func TestAReleaseOfAnExtendedLockIsMadeLate(t *testing.T) {
	for pause := range 4 { // whatever the millisecond is
		for _, fenced := range []bool{false, true} {
			inScene(t, func(s *scene) {
				s.sleep(time.Duration(pause) * time.Millisecond)
				s.take(1, "mine") // by whatever proxy
				req := quorum.ExtendRequest{Key: quorum.Key{Name: resourceName(0)}, Token: "mine", TTL: 50 * time.Second, Fenced: fenced}
				c := begin(s.proxies[0].life.engine.Extend, req)
				s.expectHeld(<-c)
				s.sleep(20 * time.Millisecond)
				s.stop(2)
				s.release(0, "mine")
				s.resume(2)
				s.expectHolders(100*time.Millisecond, "...")
			})
		}
	}
}

func TestAReleaseIsMadeLateInWhateverWayTheLockWasExtended(t *testing.T) {
	for pause := range 4 {
		for _, way := range renewals {
			inScene(t, func(s *scene) {
				s.sleep(time.Duration(pause) * time.Millisecond)
				if !way.take(s, 20*time.Second) || !way.extends(s, 40*time.Second) {
					t.Errorf("%s: not held", way.name)
				}
				s.sleep(20 * time.Millisecond)
				s.stop(2)
				way.givesBack(s)
				s.resume(2)
				s.expectHolders(100*time.Millisecond, "...")
			})
		}
	}
}

func TestAReleaseOfALockThatWasFilledIsMadeLate(t *testing.T) {
	for _, way := range renewals {
		inScene(t, func(s *scene) {
			way.take(s, 20*time.Second)
			s.sleep(10 * time.Millisecond)
			s.remove(2)
			way.extends(s, 40*time.Second)
			s.expectHolders(time.Second, "mmm")
			s.stop(2)
			way.givesBack(s)
			s.resume(2)
			s.expectHolders(100*time.Millisecond, "...")
		})
	}
}

// It is taken by GETSET.
func TestAReleaseOfALockThatWasPutIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swapVia(0, nil, "mine")
		s.sleep(20 * time.Millisecond)
		s.stop(2)
		s.release(0, "mine")
		s.resume(2)
		s.expectHolders(100*time.Millisecond, "...")
	})
}

// What the master has of the lock is extended before the release, and answered after it.
func TestAReleaseIsMadeLateWhereAnExtensionIsAnsweredAfterIt(t *testing.T) {
	for _, reentrant := range []bool{false, true} {
		inScene(t, func(s *scene) {
			s.take(0, "mine")
			s.do(func() { s.servers[2].stopped = true })
			if reentrant {
				s.expectGranted(<-s.acquire(0, "mine", 50*time.Second, true))
			} else {
				s.expectHeld(s.extend(0, "mine", 50*time.Second))
			}
			s.sleep(time.Second)
			s.release(0, "mine")
			s.resume(2)
			s.expectHolders(100*time.Millisecond, "...")
		})
	}
}

// The same token holds the resource of that name in another database.
func TestAReleaseIsMadeLateInItsDatabase(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		req := quorum.AcquireRequest{Key: quorum.Key{DB: 1, Name: resourceName(0)}, Token: "mine", TTL: 50 * time.Second}
		c := begin(s.proxies[0].life.engine.Acquire, req)
		s.expectGranted(<-c)
		s.stop(2)
		s.release(0, "mine")
		s.resume(2)
		s.expectHolders(100*time.Millisecond, "...")
	})
}

// While a master is away, a lock is taken and released many times by one token.
func TestAReleaseIsMadeLateOnce(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.do(func() { s.servers[2].crash(false) })
		for range 10 {
			s.sleep(100 * time.Millisecond)
			s.release(0, "mine")
			s.take(0, "mine")
		}
		s.sleep(time.Second)
		if n := s.proxies[0].life.engine.Pending(); n > 1 {
			t.Errorf("%d undos wait", n)
		}
	})
}

// Many take and release the lock while a master is away that has granted it to one of them before.
func TestReleasesByOthersAreNotAllMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.do(func() { s.servers[2].crash(false) })
		s.sleep(100 * time.Millisecond)
		s.release(0, "mine")
		for i := range 20 {
			token := strconv.Itoa(i)
			s.take(0, token)
			s.release(0, token)
		}
		s.sleep(time.Second)
		if n := s.proxies[0].life.engine.Pending(); n > 4 {
			t.Errorf("%d undos wait", n)
		}
	})
}

// The release is on its way when the connection breaks, and is never run.
func TestAReleaseThatIsLostIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.do(func() { s.links[0][2].block(up) })
		s.release(0, "mine")
		s.lose(2)
		s.expectHolders(time.Second, "...")
	})
}

// The client asks twice by one token, in whatever way, in one batch of the master, whose answers are lost; the lock is released while
// there is no connection.
func TestAReleaseIsMadeLateWhereSeveralAttemptsAreLost(t *testing.T) {
	for _, reentrant := range []bool{false, true} {
		inScene(t, func(s *scene) {
			s.do(func() {
				for i := range s.servers {
					s.links[0][i].slow = 20 * time.Millisecond
				}
			})
			s.proxies[0].life.engine.Get(quorum.Key{Name: "busy"}, func(quorum.View) {})
			first, again := s.acquire(0, "mine", 50*time.Second, false), s.acquire(0, "mine", 55*time.Second, reentrant)
			s.sleep(30 * time.Millisecond) // they are on their way
			s.mute(2)
			s.expectGranted(<-first)
			<-again
			s.expectHolders(100*time.Millisecond, "mmm")
			s.breakOff(2)
			s.do(func() { s.links[0][2].block(up) }) // of the next connection
			s.sleep(10 * time.Millisecond)
			s.release(0, "mine")
			s.reconnect(2)
			s.expectHolders(2*time.Second, "...")
		})
	}
}

func TestAReleaseThatIsAnsweredWithAnErrorIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.do(func() { s.servers[2].refuses = "MISCONF no disk" })
		s.release(0, "mine")
		s.expectHolders(0, "..m")
		s.do(func() { s.servers[2].refuses = "" })
		s.expectHolders(2*time.Second, "...")
	})
}

// The attempt still waits for a master that is late when its lock is released, and is sent there afterwards.
func TestAReleaseIsMadeLateWhereItsAttemptComesAfterIt(t *testing.T) {
	for _, way := range []int{byExtend, byRedisson} {
		inScene(t, func(s *scene) {
			s.do(func() { s.servers[2].stopped = true })
			s.proxies[0].life.engine.Get(quorum.Key{Name: "busy"}, func(quorum.View) {})
			s.sleep(100 * time.Millisecond)
			renewals[way].take(s, 50*time.Second)
			s.sleep(sceneConfig.InstanceTimeout - 90*time.Millisecond)
			renewals[way].givesBack(s)
			s.sleep(20 * time.Millisecond)
			s.resume(2)
			s.expectHolders(100*time.Millisecond, "...")
		})
	}
}

// The release waits for a master that is late, for longer than it may, and behind it the next attempt, whatever its token.
func TestALateReleaseComesBeforeWhatCameAfterIt(t *testing.T) {
	for token, holders := range map[string]string{"next": "nnn", "mine": "mmm"} {
		inScene(t, func(s *scene) {
			s.take(0, "mine")
			s.do(func() { s.servers[2].stopped = true })
			busy := s.acquire(0, "busy", 50*time.Second, false)
			s.sleep(20 * time.Millisecond)
			s.release(0, "mine")
			s.sleep(250 * time.Millisecond)
			next := s.acquire(0, token, 40*time.Second, false)
			s.sleep(60 * time.Millisecond)
			s.resume(2)
			s.expectNotGranted(<-busy)
			s.expectGranted(<-next)
			s.expectHolders(time.Second, holders)
		})
	}
}

// The next lock has the same token, and is taken through another proxy, which reaches the master.
func TestALateReleaseLeavesTheNextLockOfItsToken(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.cutOff(2)
		s.release(0, "mine")
		s.release(1, "mine")
		s.take(1, "mine")
		s.reconnect(2)
		s.expectHolders(2*time.Second, "mmm")
	})
}

// The next lock counts on the key that the release has not taken: whatever the millisecond is, and whether or not the first proxy
// has extended the key.
func TestALateReleaseTakesNoVoteOfAReentry(t *testing.T) {
	for pause := range 8 {
		for _, extended := range []bool{false, true} {
			inScene(t, func(s *scene) {
				s.sleep(time.Duration(pause) * time.Millisecond)
				s.take(0, "mine")
				if extended {
					s.expectHeld(s.extend(0, "mine", 50*time.Second))
				}
				s.cutOff(2)
				s.release(0, "mine")
				s.expectGranted(<-s.acquire(1, "mine", 10*time.Second, true))
				s.reconnect(2)
				s.expectHolders(2*time.Second, "mmm")
			})
		}
	}
}

// tryRelease releases the lock through the first proxy, and is told that no quorum has answered.
func (s *scene) tryRelease(token string) {
	s.t.Helper()
	c := make(chan quorum.Released, 1)
	s.proxies[0].life.engine.Release(quorum.Key{Name: resourceName(0)}, token, func(r quorum.Released) { c <- r })
	if r := <-c; r.Err == nil {
		s.t.Errorf("released: %+v", r)
	}
}

func TestAReleaseThatNoQuorumHasAnsweredIsMadeLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.do(func() { s.servers[0].stopped = true })
		s.stop(1)
		s.tryRelease("mine")
		s.expectHolders(20*time.Millisecond, "mm.")
		s.resume(0)
		s.resume(1)
		s.expectHolders(100*time.Millisecond, "...")
	})
}

// Who was told that his release has failed may extend the lock instead, through another proxy.
func TestALateReleaseTakesNoVoteOfAnExtension(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.mute(0, 1)
		s.cutOff(2)
		s.tryRelease("mine")
		s.expectHeld(s.extend(1, "mine", 50*time.Second))
		for i := range s.servers {
			s.reconnect(i)
		}
		s.expectHolders(2*time.Second, "mmm")
	})
}

func (s *scene) expectHeld(x quorum.Extended) {
	s.t.Helper()
	if !x.Held {
		s.t.Errorf("the extension found: %+v", x)
	}
}

package sim

import (
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

// extend extends the lock on the resource through a proxy, counted from 0.
func (s *scene) extend(proxy int, token string, ttl time.Duration) quorum.Extended {
	return s.extendBy(proxy, quorum.ExtendRequest{Token: token, TTL: ttl})
}

// extendBy is extend by any request.
func (s *scene) extendBy(proxy int, req quorum.ExtendRequest) quorum.Extended {
	c := make(chan quorum.Extended, 1)
	req.Key.Name = resourceName(0)
	s.proxies[proxy].life.engine.Extend(req, func(x quorum.Extended) { c <- x })
	return <-c
}

// renewals are the ways to take a lock, to extend it and to give it back, through the first proxy.
var renewals = []struct {
	name      string
	take      func(s *scene, ttl time.Duration) bool
	givesBack func(s *scene)
	extends   func(s *scene, ttl time.Duration) bool
}{
	{"EXTEND", (*scene).takesText, (*scene).givesText, func(s *scene, ttl time.Duration) bool { return s.extend(0, "mine", ttl).Held }},
	{"an addition", (*scene).takesText, (*scene).givesText, func(s *scene, ttl time.Duration) bool {
		return s.extendBy(0, quorum.ExtendRequest{Token: "mine", TTL: ttl / 4, Add: true}).Held
	}},
	{"EXPIRE", (*scene).takesText, (*scene).givesText, func(s *scene, ttl time.Duration) bool {
		req := quorum.ExpireRequest{Key: quorum.Key{Name: resourceName(0)}, TTL: ttl}
		return (<-begin(s.proxies[0].life.engine.Expire, req)).Applied
	}},
	{"Redisson", (*scene).takesHash, (*scene).givesHash, func(s *scene, ttl time.Duration) bool { return s.byVote(0, &hashLock.extend, ttl).Lock != nil }},
}

func (s *scene) takesText(ttl time.Duration) bool {
	return (<-s.acquire(0, "mine", ttl, false)).Lock != nil
}

func (s *scene) givesText() { s.release(0, "mine") }

func (s *scene) takesHash(ttl time.Duration) bool {
	return s.byVote(0, &hashLock.take, ttl).Lock != nil
}

func (s *scene) givesHash() { s.byVote(0, &hashLock.release, time.Minute) }

// byVote runs a script on the resource, by its client "mine".
func (s *scene) byVote(proxy int, script *votedScript, ttl time.Duration) quorum.Ran {
	return <-begin(s.proxies[proxy].life.engine.Run, script.request([]string{resourceName(0)}, "mine", ttl))
}

// Masters are restarted one after the other, each when the one before is back and may vote: whoever holds a lock all the time,
// and extends it, keeps it.
func TestALockThatIsExtendedOutlivesARestartOfEachMaster(t *testing.T) {
	const ttl = 2 * time.Second
	eachRenewal(t, ttl, func(s *scene, extends func() bool) {
		for master := range s.servers {
			s.fallBack(master, 0)
			for range 20 { // the quarantine is over by then
				s.sleep(ttl / 4)
				if !extends() {
					s.t.Errorf("lost when master %d had restarted", master)
				}
			}
		}
		s.expectHolders(0, "mmm")
	})
}

// The holder has made its lock short, which one master has missed. When the lock was over, another has taken it. Then one of his
// masters is there again with an older copy, in which the lock is long.
func TestAnOlderCopyOfALockIsNotExtended(t *testing.T) {
	eachRenewal(t, 30*time.Second, func(s *scene, extends func() bool) {
		s.sleep(10 * time.Millisecond)
		before := s.now()
		s.do(func() { s.links[0][2].block(up) })
		if !s.extend(0, "mine", time.Second).Held && s.byVote(0, &hashLock.extend, time.Second).Lock == nil {
			s.t.Error("not made short")
		}
		s.lose(2)
		s.expectHolders(2*time.Second, "..m")
		s.take(1, "other")
		s.fallBack(0, before)
		s.expectHolders(time.Second, "mom")
		if extends() {
			s.t.Error("two have it")
		}
		s.do(func() { s.links[0][1].slow = 5 * time.Millisecond }) // so the two that have the former holder's lock answer first
		req := quorum.AcquireRequest{Key: quorum.Key{Name: resourceName(0)}, Token: "mine", TTL: time.Minute, WantHolder: true}
		if a := <-begin(s.proxies[0].life.engine.Acquire, req); a.Holder == "mine" {
			s.t.Errorf("who has it no more is told that he has: %+v", a)
		}
	})
}

// One master has missed a lock, and another is there again with an older copy, in which the lock is the former holder's, who has given
// it back.
func TestAHolderIsNotToldByAnOlderCopyThatTheLockIsGone(t *testing.T) {
	key := quorum.Key{Name: resourceName(0)}
	for what, isTold := range map[string]func(e *quorum.Engine) bool{
		"extension": func(e *quorum.Engine) bool {
			x := <-begin(e.Extend, quorum.ExtendRequest{Key: key, Token: "mine", TTL: time.Minute})
			return x.Err == nil && !x.Held
		},
		"release": func(e *quorum.Engine) bool {
			release := func(token string, done func(quorum.Released)) { e.Release(key, token, done) }
			r := <-begin(release, "mine")
			return r.Err == nil && !r.Held
		},
		"read": func(e *quorum.Engine) bool {
			v := <-begin(e.Get, key)
			return v.Err == nil && v.Value != "mine"
		},
	} {
		t.Run(what, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.take(1, "other")
				before := s.now()
				s.sleep(10 * time.Millisecond)
				s.release(1, "other")
				s.sleep(10 * time.Millisecond)
				s.do(func() { s.links[0][2].block(up) })
				s.take(0, "mine")
				s.lose(2)
				s.expectHolders(time.Second, "mm.")
				s.fallBack(0, before)
				s.expectHolders(time.Second, "om.")
				if isTold(s.proxies[0].life.engine) {
					t.Error("told that it is gone")
				}
			})
		})
	}
}

// eachRenewal plays a scene in which a lock is taken for ttl, once for each way to extend it by that.
func eachRenewal(t *testing.T, ttl time.Duration, f func(s *scene, extends func() bool)) {
	for _, r := range renewals {
		t.Run(r.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				if !r.take(s, ttl) {
					t.Error("not taken")
				}
				f(s, func() bool { return r.extends(s, ttl) })
			})
		})
	}
}

// remove deletes the resource on masters.
func (s *scene) remove(masters ...int) {
	s.do(func() {
		for _, i := range masters {
			s.servers[i].remove(&session{}, resourceName(0))
		}
	})
}

func TestAMasterThatLacksALockIsGivenItWhenThatIsExtended(t *testing.T) {
	eachRenewal(t, 10*time.Second, func(s *scene, extends func() bool) {
		s.sleep(10 * time.Millisecond)
		s.remove(2)
		for _, now := range []string{"mmm", ".mm"} {
			if !extends() {
				s.t.Error("not extended")
			}
			s.expectHolders(sceneConfig.InstanceTimeout+20*time.Millisecond, now)
			s.remove(0)
			s.do(func() { s.links[0][0].block(up) })
		}
	})
}

// gapOf lets a client extend a lock of which the last master has nothing, and returns when what fills the gap is on its way
// there. before is called before that.
func (s *scene) gapOf(r int, ttl time.Duration, before func()) {
	s.t.Helper()
	way := &renewals[r]
	if !way.take(s, 30*time.Second) {
		s.t.Error("not taken")
	}
	s.sleep(10 * time.Millisecond)
	s.remove(2)
	if before != nil {
		before()
	}
	if !way.extends(s, ttl) {
		s.t.Error("not extended")
	}
	s.underWay()
}

// underWay waits until what fills the gap is on its way.
func (s *scene) underWay() {
	s.t.Helper()
	s.sleep(sceneConfig.InstanceTimeout - 10*time.Millisecond)
	s.do(func() { s.links[0][2].slow = 50 * time.Millisecond }) // of the look, too, on its way there and back
	s.expectHolders(130*time.Millisecond, "mm.")
}

// The ways in renewals.
const (
	byExtend   = 0
	byExpire   = 2
	byRedisson = 3
)

func TestALockThatIsGoneIsNotBroughtBack(t *testing.T) {
	for way := range renewals {
		inScene(t, func(s *scene) {
			s.gapOf(way, 10*time.Second, nil)
			s.remove(0, 1)
			s.expectHolders(60*time.Millisecond, "..m")
			s.expectHolders(time.Second, "...")
		})
	}
}

// It is given back through another proxy, which is slow to reach one master, and does not reach another.
func TestALockThatIsBeingGivenBackIsNotBroughtBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 10*time.Second, false))
		s.sleep(10 * time.Millisecond)
		s.do(func() {
			s.links[1][0].slow = 60 * time.Millisecond
			s.links[1][1].block(up)
		})
		released := make(chan quorum.Released, 1)
		s.proxies[1].life.engine.Release(quorum.Key{Name: resourceName(0)}, "mine", func(r quorum.Released) { released <- r })
		s.expectHolders(50*time.Millisecond, "mm.")
		if !s.extend(0, "mine", 10*time.Second).Held {
			t.Error("not extended")
		}
		if r := <-released; !r.Held {
			t.Errorf("not released: %+v", r)
		}
		if x := s.extend(0, "mine", 10*time.Second); x.Held {
			t.Errorf("it is back: %+v", x)
		}
		s.expectHolders(time.Second, ".m.")
	})
}

// The same, but it is begun to be given back after the extension: one master has been told when what fills the gap is there, and
// another not yet when the others are looked at first.
func TestALockThatIsGivenBackBesideAFillIsNotBroughtBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.remove(2)
		s.expectHeld(s.extend(0, "mine", 10*time.Second))
		s.sleep(250 * time.Millisecond)
		s.do(func() {
			s.links[1][0].slow = 60 * time.Millisecond
			s.links[1][1].block(up)
		})
		s.release(1, "mine")
		s.expectHolders(time.Second, ".m.")
		if x := s.extend(0, "mine", 10*time.Second); x.Held {
			t.Errorf("it is back: %+v", x)
		}
	})
}

// The same, through a proxy that waits longer for its answers.
func TestALockThatIsGivenBackSlowlyIsNotBroughtBack(t *testing.T) {
	quick := sceneConfig
	quick.Grace = 5 * time.Second // for links that are slow
	slow := quick
	slow.InstanceTimeout = time.Second
	inSceneWith(t, 3, quick, []quorum.Config{slow}, func(s *scene) {
		s.take(0, "mine")
		s.remove(2)
		s.expectHeld(s.extend(0, "mine", 10*time.Second))
		s.sleep(250 * time.Millisecond)
		s.do(func() {
			s.links[1][0].slow = 450 * time.Millisecond
			s.links[1][1].block(up)
		})
		s.release(1, "mine")
		s.expectHolders(time.Second, ".m.")
		if x := s.extend(0, "mine", 10*time.Second); x.Held {
			t.Errorf("it is back: %+v", x)
		}
	})
}

// A fill waits for longer than an attempt may, and the attempt does not wait for it.
func TestAnAttemptDoesNotWaitForAFill(t *testing.T) {
	quick := sceneConfig
	slow := quick
	slow.InstanceTimeout = 10 * time.Second
	inSceneWith(t, 3, quick, []quorum.Config{slow}, func(s *scene) {
		s.take(0, "mine")
		s.remove(2)
		s.expectHeld(s.extend(0, "mine", 50*time.Second))
		s.mute(0, 1, 2)
		began := time.Now()
		if a := <-s.acquire(0, "next", 50*time.Second, false); a.Err == nil {
			t.Errorf("%+v", a)
		}
		if took := time.Since(began); took > 2*quick.InstanceTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// It is given back before, through another proxy, and a master misses that.
func TestALockThatHasBeenGivenBackIsNotBroughtBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.remove(2)
		s.expectHeld(s.extend(0, "mine", 10*time.Second))
		s.do(func() { s.links[1][1].block(up) })
		s.release(1, "mine")
		s.expectNotFilled(2)
	})
}

func TestALockThatHasBeenGivenBackByAScriptIsNotBroughtBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.takes(0)
		s.remove(2)
		s.byVote(0, &hashLock.extend, 10*time.Second)
		s.do(func() { s.links[1][1].block(up) })
		s.byVote(1, &hashLock.release, time.Minute)
		s.expectNotFilled(2)
	})
}

func (s *scene) expectNotFilled(master int) {
	s.t.Helper()
	s.expectHolders(sceneConfig.InstanceTimeout, ".m.")
	if at := s.servers[master].store.lastPut(0, resourceName(0)); at > 100*time.Millisecond {
		s.t.Errorf("it was filled after %v", at)
	}
}

// It is given back, and the others have somebody else's, before they are looked at. Who would undo the fill does not live so long.
func TestAFillTakesNothingFromTheNextHolder(t *testing.T) {
	for way := range renewals {
		inScene(t, func(s *scene) {
			renewals[way].take(s, 2*time.Second)
			s.sleep(10 * time.Millisecond)
			s.remove(2)
			renewals[way].extends(s, 2*time.Second)
			renewals[way].givesBack(s)
			s.others(0, 1)
			s.sleep(sceneConfig.InstanceTimeout + 50*time.Millisecond)
			s.do(s.proxies[0].kill)
			s.expectHolders(5*time.Second, "oo.")
		})
	}
}

// The lock is extended once more, for a shorter time, before the gap is filled.
func TestAFillLivesNoLongerThanTheLock(t *testing.T) {
	inScene(t, func(s *scene) {
		s.take(0, "mine")
		s.remove(2)
		s.expectHeld(s.extend(0, "mine", 50*time.Second))
		s.sleep(100 * time.Millisecond)
		s.expectHeld(s.extend(0, "mine", 2*time.Second))
		s.expectHolders(time.Second, "mmm")
		s.expectHolders(2*time.Second, "...")
	})
}

// Too few of the others are in reach to tell that the lock is gone.
func TestALockThatMayBeGoneIsNotBroughtBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gapOf(byExtend, time.Minute, nil)
		s.remove(0)
		s.do(func() { s.links[0][0].block(up) })
		s.expectHolders(60*time.Millisecond, ".mm")
		s.expectHolders(time.Second, ".m.")
	})
}

// An inner hold is given back through another proxy meanwhile: the masters count one less.
func TestALockThatHasChangedIsNotBroughtBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gapOf(byRedisson, 10*time.Second, func() {
			s.byVote(0, &hashLock.take, time.Minute)
			s.sleep(10 * time.Millisecond)
			s.remove(2)
		})
		if r := s.byVote(1, &hashLock.release, time.Minute); r.Reply.Int != 0 {
			t.Errorf("want an outer hold: %+v", r)
		}
		s.expectHolders(60*time.Millisecond, "mmm")
		s.expectHolders(time.Second, "mm.")
	})
}

func TestNothingIsFilledWhenTheValidityIsOver(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gapOf(byExtend, 340*time.Millisecond, nil)
		s.expectHolders(100*time.Millisecond, "mm.") // masters keep the lock for longer than its validity
	})
}

// Whoever asks for a lock in vain has a vote for a moment where it is lacking: when it is extended, and when that master is to be
// given it.
func TestAMasterIsGivenALockThatOthersAskFor(t *testing.T) {
	eachRenewal(t, 10*time.Second, func(s *scene, extends func() bool) {
		s.sleep(10 * time.Millisecond)
		s.remove(2)
		s.others(2)
		if !extends() {
			s.t.Error("not extended")
		}
		s.expectHolders(3*sceneConfig.InstanceTimeout, "mmo")
		s.remove(2)
		s.expectHolders(sceneConfig.InstanceTimeout+20*time.Millisecond, "mmm")
	})
}

// Else each extension would have the others looked at eight times, for as long as somebody else's key is there, and all clients wait.
func TestALockThatIsExtendedAgainAndAgainIsFilledOnceAtATime(t *testing.T) {
	eachRenewal(t, 10*time.Second, func(s *scene, extends func() bool) {
		s.sleep(10 * time.Millisecond)
		s.remove(2)
		s.others(2)
		const times = 10
		for range times {
			if !extends() {
				s.t.Error("not extended")
			}
		}
		rounds := func() uint64 { return s.proxies[0].life.engine.Stats().Rounds.Count }
		before := rounds()
		s.expectHolders(3*time.Second, "mmo")
		if looks := rounds() - before; looks == 0 || looks > times {
			s.t.Errorf("the others were looked at %d times", looks)
		}
		s.remove(2)
		if !extends() {
			s.t.Error("not extended")
		}
		s.expectHolders(sceneConfig.InstanceTimeout+20*time.Millisecond, "mmm")
	})
}

// The master is looked at once more, but has been given the lock. If it loses that, it is given it again.
func TestAMasterIsGivenALockThatItWasGivenJustBefore(t *testing.T) {
	eachRenewal(t, 10*time.Second, func(s *scene, extends func() bool) {
		for range 3 {
			s.sleep(10 * time.Millisecond)
			s.remove(2)
			if !extends() {
				s.t.Error("not extended")
			}
			s.expectHolders(sceneConfig.InstanceTimeout+20*time.Millisecond, "mmm")
		}
	})
}

func TestAFillThatIsNotSentKeepsNoOtherAway(t *testing.T) {
	eachRenewal(t, 10*time.Second, func(s *scene, extends func() bool) {
		s.sleep(10 * time.Millisecond)
		s.remove(2)
		held := extends()
		s.sleep(sceneConfig.InstanceTimeout - 10*time.Millisecond)
		s.do(func() { s.servers[2].stopped = true })
		s.sleep(sceneConfig.InstanceTimeout + 50*time.Millisecond) // until the others have been looked at, and it waits to be sent
		s.breakOff(2)
		s.do(func() { s.servers[2].stopped = false })
		s.expectHolders(time.Second, "mm.")
		if !extends() || !held {
			s.t.Error("not extended")
		}
		s.expectHolders(sceneConfig.InstanceTimeout+20*time.Millisecond, "mmm")
	})
}

func TestNothingIsFilledWhereSomebodyElseHasAVote(t *testing.T) {
	for _, way := range []int{byExtend, byRedisson} {
		inScene(t, func(s *scene) {
			s.gapOf(way, 10*time.Second, nil)
			s.others(2)
			s.expectHolders(time.Second, "mmo")
		})
	}
}

func (s *scene) flush(master int) {
	s.do(func() { s.servers[master].do(&session{}, []string{"FLUSHALL"}) })
}

// Its answer is not heard, so that nothing is undone.
func TestAMasterThatHasForgottenIsNotFilled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gapOf(byExtend, time.Minute, nil)
		s.mute(2)
		s.flush(2)
		s.expectHolders(time.Second, "mm.")
	})
}

func TestAMasterInQuarantineIsNotFilled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", time.Minute, false))
		s.sleep(10 * time.Millisecond)
		s.remove(2)
		if !s.extend(0, "mine", time.Minute).Held {
			t.Error("not held")
		}
		s.sleep(10 * time.Millisecond)
		s.flush(2)
		s.proxies[0].life.engine.Get(quorum.Key{Name: resourceName(0)}, func(quorum.View) {}) // by which that is found out
		s.sleep(270 * time.Millisecond)
		s.expectHolders(100*time.Millisecond, "mm.") // and would be filled by now
	})
}

// Somebody else's vote may be gone because the master's clock has jumped.
func TestAMasterWhoseClockHasJumpedIsNotFilled(t *testing.T) {
	inScene(t, func(s *scene) {
		s.gapOf(byExtend, time.Minute, nil)
		s.do(func() { s.links[1][2].block(up) }) // or that proxy would find out
		s.set(2, 20*time.Second)
		s.expectHolders(60*time.Millisecond, "mmm")
		s.do(func() { s.links[0][2].slow = 0 })
		s.expectHolders(time.Second, "mm.")
	})
}

func TestWhatMayHaveBeenFilledIsUndone(t *testing.T) {
	for _, way := range []int{byExtend, byRedisson} {
		inScene(t, func(s *scene) {
			s.gapOf(way, time.Minute, nil)
			s.mute(2)
			s.expectHolders(60*time.Millisecond, "mmm")
			s.breakOff(2)
			s.expectHolders(time.Second, "mm.")
		})
	}
}

// What is not whole in its one key is left, and what the masters do not agree on.
func TestOnlyAWholeLockIsFilled(t *testing.T) {
	field := func(name, count string) string { return name + "\x00" + count + "\x00" }
	extends := vote.Rule{Merge: vote.Extending}
	for _, test := range []struct {
		name   string
		rule   vote.Rule
		others [2]string
		want   string
	}{
		{"a hash of one field", extends, [2]string{field("mine", "1"), field("mine", "1")}, "mmm"},
		{"of several", extends, [2]string{field("mine", "1") + field("mode", "write"), field("mine", "1") + field("mode", "write")}, "mm."},
		{"counted differently", extends, [2]string{field("mine", "1"), field("mine", "2")}, "mm."},
		{"long", extends, [2]string{field("mine", strings.Repeat("1", 5000)), field("mine", strings.Repeat("1", 5000))}, "mm."},
		{"with keys of other names", vote.Rule{Merge: vote.Extending, Derived: true}, [2]string{field("mine", "1"), field("mine", "1")}, "mm."},
		{"by a script of which nothing is known", vote.Rule{Merge: vote.Agreeing}, [2]string{field("mine", "1"), field("mine", "1")}, "mm."},
	} {
		t.Run(test.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.do(func() {
					for i, text := range test.others {
						m := s.servers[i]
						m.put(&session{}, resourceName(0), item{text: text, hash: true, expires: m.clock.millis(m.now()) + 60000})
					}
				})
				extend := hashLock.extend
				extend.rule = test.rule
				if r := s.byVote(0, &extend, time.Minute); r.Err != nil || r.Reply.Int != 1 {
					t.Errorf("not extended: %+v", r)
				}
				s.expectHolders(time.Second, test.want)
				if at := s.servers[2].store.lastPut(0, resourceName(0)); test.name == "counted differently" && at != 0 {
					t.Errorf("it was filled after %v", at)
				}
			})
		})
	}
}

package sim

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

// takeByVote begins an attempt by a script, through a proxy, counted from 0.
func (s *scene) takeByVote(proxy int, token string, rule vote.Rule) <-chan quorum.Ran {
	c := begin(s.proxies[proxy].life.engine.Run, quorum.RunRequest{
		Script: quorum.NewScript(takeHash), Keys: []string{resourceName(0)}, Args: []string{"30000", token}, Rule: rule,
	})
	return c
}

// A script's lock that was put back comes back with the data of a replica that is behind. Where another master has the same
// of the same client, as its answer was lost, they agree on the count, though somebody else holds the lock.
func TestAnOlderCopyOfAHashIsNoVote(t *testing.T) {
	granted := func(v vote.Value) bool { return v.Kind == vote.NilValue }
	for _, test := range []struct {
		name string
		rule vote.Rule
	}{
		{"of a family", vote.Rule{Merge: vote.Taking, Granted: granted, Field: "mine"}},
		{"of nobody knows whom", vote.Rule{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.do(func() { // somebody's vote that is left over
					m := s.servers[2]
					m.put(&session{}, resourceName(0), item{text: "z\x001\x00", hash: true, expires: m.clock.millis(m.now()) + 60000})
				})
				s.mute(1)
				lost := s.takeByVote(0, "mine", test.rule)
				s.expectHolders(10*time.Millisecond, "mmz")
				before := s.now()
				if r := <-lost; r.Lock != nil {
					t.Fatalf("granted: %+v", r)
				}
				s.breakOff(1)
				s.do(func() { s.servers[2].remove(&session{}, resourceName(0)) })
				s.expectHolders(time.Second, ".m.")

				theirs := test.rule
				if theirs.Field != "" {
					theirs.Field = "theirs"
				}
				held := <-s.takeByVote(1, "theirs", theirs)
				if held.Lock == nil {
					t.Fatalf("not granted: %+v", held)
				}
				s.fallBack(0, before)
				s.sleep(time.Second)
				for proxy := range 2 {
					if r := <-s.takeByVote(proxy, "mine", test.rule); r.Lock != nil {
						t.Errorf("held twice: %+v, for %v more", r.Reply, time.Until(held.Lock.Until()))
					}
				}
			})
		})
	}
}

// Two of five masters never had the lock, and one of the others cannot say that it had.
func TestAReleaseIsNotRefusedForAMasterWhoseMemoryIsFull(t *testing.T) {
	inSceneOf(t, 5, func(s *scene) {
		full := func(masters ...int) {
			s.do(func() {
				for i, m := range s.servers {
					if m.refuses = ""; slices.Contains(masters, i) {
						m.refuses = "OOM command not allowed when used memory > 'maxmemory'."
					}
				}
			})
		}
		granted := func(v vote.Value) bool { return v.Kind == vote.NilValue }
		full(3, 4)
		if r := <-s.takeByVote(0, "mine", vote.Rule{Merge: vote.Taking, Granted: granted, Field: "mine"}); r.Lock == nil {
			t.Fatalf("not granted: %+v", r)
		}
		s.sleep(time.Millisecond)
		full(2)
		freed := begin(s.proxies[0].life.engine.Run, quorum.RunRequest{
			Script: quorum.NewScript(freeHash), Keys: []string{resourceName(0), "channel"}, Args: []string{"0", "30000", "mine"},
			Rule: vote.Rule{Merge: vote.Releasing, Granted: func(v vote.Value) bool { return !granted(v) }},
		})
		if r := <-freed; r.Err == nil && r.Reply.Kind == vote.NilValue {
			t.Errorf("told that it did not hold the lock: %+v", r)
		}
	})
}

// A script may extend a lock to the very millisecond at which masters would have let it go. That is no end which they were
// told to add drift and grace to.
func TestAnExtensionToWhereTheLockWouldHaveEndedIsOne(t *testing.T) {
	inScene(t, func(s *scene) {
		const ttl = 30000
		var ends int64
		s.do(func() {
			ends = s.servers[0].clock.millis(s.now()) + ttl
			for _, m := range s.servers {
				m.put(&session{}, resourceName(0), item{text: "mine", expires: ends})
			}
		})
		extended := begin(s.proxies[0].life.engine.Run, quorum.RunRequest{
			Script: quorum.NewScript("return redis.call('pexpireat', KEYS[1], ARGV[1])"),
			Keys:   []string{resourceName(0)}, Args: []string{strconv.FormatInt(ends, 10)},
		})
		if r := <-extended; r.Err != nil || r.Reply.Int != 1 {
			t.Fatalf("%+v", r)
		}
		s.sleep(time.Millisecond)
		s.do(func() {
			for i, m := range s.servers {
				if is, has := m.get(&session{}, resourceName(0)); !has || is.expires < ends+ttl/100 {
					t.Errorf("master %d keeps it until %d, for %d ms more", i, is.expires, is.expires-ends)
				}
			}
		})
	})
}

// A master that has counted one more hold does not write when it is told to put that back.
func TestWhatCannotBePutBackNowIsPutBackLater(t *testing.T) {
	inScene(t, func(s *scene) {
		hold := func(i int, token string) {
			m := s.servers[i]
			m.put(&session{}, resourceName(0), item{text: token + "\x001\x00", hash: true, expires: m.clock.millis(m.now()) + 60000})
		}
		s.do(func() {
			hold(0, "mine")
			for i := 1; i < 3; i++ {
				hold(i, "theirs")
				s.links[0][i].slow = 20 * time.Millisecond
			}
			s.after(10*time.Millisecond, func() { s.servers[0].refuses = "MISCONF" })
		})
		granted := func(v vote.Value) bool { return v.Kind == vote.NilValue }
		if r := <-s.takeByVote(0, "mine", vote.Rule{Merge: vote.Taking, Granted: granted, Field: "mine"}); r.Lock != nil {
			t.Fatalf("granted: %+v", r)
		}
		s.do(func() { s.servers[0].refuses = "" })
		s.sleep(2 * time.Second)
		s.do(func() {
			if it, _ := s.servers[0].lock(resourceName(0)); it.text != "mine\x001\x00" {
				t.Errorf("there is %q", it.text)
			}
		})
	})
}

// Two take a lock at once, each nearer to another master, and the third stands still. Each is told the TTL that the other has set,
// and is put back; but nobody holds the lock.
func TestSplitVotesAreAskedForAgainThoughAMasterIsLate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() {
			for i := range 2 {
				s.links[i][1-i].slow = 20 * time.Millisecond
				s.links[i][2].block(down)
			}
		})
		granted := func(v vote.Value) bool { return v.Kind == vote.NilValue }
		var taken [2]<-chan quorum.Ran
		for i, token := range []string{"mine", "theirs"} {
			taken[i] = s.takeByVote(i, token, vote.Rule{Merge: vote.Taking, Granted: granted, Field: token})
		}
		if a, b := <-taken[0], <-taken[1]; (a.Lock != nil) == (b.Lock != nil) {
			t.Errorf("told %+v and %+v", a, b)
		}
	})
}

// runner runs scripts on the lock through the first proxy.
func (s *scene) runner(lock votedLock) func(votedScript, time.Duration) quorum.Ran {
	names := []string{resourceName(0), resourceName(1)}[:lock.keys]
	return func(script votedScript, ttl time.Duration) quorum.Ran {
		return <-begin(s.proxies[0].life.engine.Run, script.request(names, "mine", ttl))
	}
}

// Masters hold the lock for drift and grace beyond its validity: nobody is to be told that it is lost.
func TestAnExtensionByVoteThatIsHeardTooLateIsInDoubt(t *testing.T) {
	for _, lock := range []votedLock{hashLock, textLock, pairLock} {
		t.Run(lock.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				run := s.runner(lock)
				if r := run(lock.take, 30*time.Millisecond); r.Lock == nil {
					t.Fatalf("not granted: %+v", r)
				}
				s.do(func() {
					for i := range s.servers {
						s.links[0][i].slow = 20 * time.Millisecond
					}
				})
				if r := run(lock.extend, 30*time.Millisecond); !errors.Is(r.Err, quorum.ErrLate) {
					t.Errorf("%+v", r)
				}
				s.expectHolders(0, "mmm")
			})
		})
	}
}

// No validity can be left of such a TTL, and whoever asks for it gives the lock up.
func TestAnExtensionByVoteTooShortToLeaveValidityIsDone(t *testing.T) {
	for _, lock := range []votedLock{hashLock, textLock, pairLock} {
		t.Run(lock.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				run := s.runner(lock)
				r := run(lock.take, 3*time.Millisecond)
				refused := lock.take.rule.Merge == vote.Taking && r.Err == nil && !lock.take.granted(r.Reply)
				if r.Lock != nil || !refused && !errors.Is(r.Err, quorum.ErrTooShort) {
					t.Errorf("a lock that is over: %+v", r)
				}
				s.expectHolders(0, "...")
				if r = run(lock.take, time.Minute); r.Lock == nil {
					t.Fatalf("not granted: %+v", r)
				}
				if r = run(lock.extend, 2*time.Millisecond); r.Err != nil || !lock.extend.granted(r.Reply) || r.Lock != nil {
					t.Errorf("%+v", r)
				}
				s.expectHolders(0, "mmm")
				s.sleep(time.Second)
				s.expectHolders(0, "...")
			})
		})
	}
}

// Who is first takes the value from two of three masters; one of them comes back with an older copy, in which it still is, and
// the third has never missed it.
func TestAnOlderCopyOfAValueIsNotTakenTwiceByAScript(t *testing.T) {
	take := quorum.NewScript("local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) return v")
	inScene(t, func(s *scene) {
		<-s.acquire(1, "other", time.Minute, false)
		s.sleep(time.Millisecond)
		before := s.now()
		s.do(func() { s.links[0][1].block(up) })
		taken := func(proxy int) string {
			return (<-begin(s.proxies[proxy].life.engine.Run, quorum.RunRequest{Script: take, Keys: []string{resourceName(0)}})).Reply.Text
		}
		if was := taken(0); was != "other" {
			t.Fatalf("took %q", was)
		}
		s.expectHolders(0, ".o.")
		s.fallBack(0, before)
		s.do(func() { s.servers[2].crash(false) })
		s.sleep(time.Second)
		if was := taken(1); was == "other" {
			t.Error("both took the same")
		}
	})
}

// The user may not run what keeps a key for longer than its TTL, or what makes the horizon last.
func TestAScriptTakesNothingWhereItCannotBeKept(t *testing.T) {
	for _, denied := range []string{"PEXPIREAT", "SET"} {
		t.Run(denied, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.do(func() {
					for _, m := range s.servers {
						m.denied[denied] = true
					}
				})
				if r := <-s.takeByVote(0, "mine", vote.Rule{}); r.Lock != nil {
					t.Errorf("granted: %+v", r)
				}
				s.expectHolders(time.Second, "...")
			})
		})
	}
}

// run runs a script on the resource, through a proxy.
func (s *scene) run(proxy int, text string, args ...string) <-chan quorum.Ran {
	c := begin(s.proxies[proxy].life.engine.Run, quorum.RunRequest{
		Script: quorum.NewScript(text), Keys: []string{resourceName(0)}, Args: args,
	})
	return c
}

// A script counts, and no quorum answers in time. When the late answers are put back, another client has set another value, with the
// remaining TTL, so there is nothing to put back. Then that client sets the counted number: value and expiry are as the script left them.
func TestAPutBackThatIsRepeatedTakesNothingThatWasPutAnew(t *testing.T) {
	const set, count = "return redis.call('set', KEYS[1], ARGV[1], 'KEEPTTL')",
		"local v = redis.call('get', KEYS[1]) + 1 redis.call('set', KEYS[1], v, 'KEEPTTL') return v"
	inScene(t, func(s *scene) {
		put := func(value string) {
			t.Helper()
			if r := <-s.run(1, set, value); r.Err != nil {
				t.Fatalf("%+v", r)
			}
		}
		s.do(func() {
			for _, m := range s.servers {
				m.put(&session{}, resourceName(0), item{text: "5", expires: m.clock.millis(m.now()) + 60000})
			}
		})
		s.mute(0, 1, 2)
		counted := s.run(0, count)
		s.expectHolders(10*time.Millisecond, "666")
		put("7")
		if r := <-counted; r.Err == nil {
			t.Fatalf("%+v", r)
		}
		s.do(func() {
			for _, l := range s.links[0] {
				l.heal()
			}
		})
		s.expectHolders(100*time.Millisecond, "777")
		put("6")
		s.expectHolders(3*time.Second, "666")
	})
}

// What a run has left, as the master refused to put it back, would count once more, and could not be put back then.
func TestAScriptIsNotAskedAgainOnWhatItHasLeft(t *testing.T) {
	inScene(t, func(s *scene) {
		c := begin(s.proxies[1].life.engine.Run, hashLock.take.request([]string{resourceName(0)}, "other", time.Minute))
		<-c
		s.sleep(20 * time.Millisecond)
		s.remove(0)
		s.stop(2)
		m, first := s.servers[0], ""
		var watch func()
		watch = func() {
			switch it, held := m.lock(resourceName(0)); {
			case held && first == "":
				first, m.refuses = it.text, "MISCONF it cannot save"
				s.after(time.Millisecond, func() { m.refuses = "" })
			case held && it.text != first:
				t.Errorf("it held %q, and holds %q", first, it.text)
				return
			}
			s.after(20*time.Microsecond, watch)
		}
		s.do(watch)
		if r := s.byVote(0, &hashLock.take, time.Minute); r.Lock != nil {
			t.Errorf("granted: %+v", r)
		}
		s.resume(2)
		s.expectHolders(5*time.Second, ".oo")
	})
}

package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// swapVia is GETSET through a proxy, or SET with GET and what else the request says: what it replied, if it was done.
func (s *scene) swapVia(proxy int, set *quorum.WriteRequest, value string) string {
	old := make(chan string, 1)
	e, key, ttl := s.proxies[proxy].life.engine, resourceName(0), 30*time.Second
	if set != nil {
		req := *set
		req.Key, req.Value, req.TTL, req.WantOld = quorum.Key{Name: key}, value, ttl, true
		e.Write(req, func(w quorum.Written) { old <- w.Old })
		return <-old
	}
	was := ""
	e.Exec(quorum.ExecRequest{Keys: []string{key}, Plan: func(now []quorum.View) []quorum.Edit {
		was = now[0].Value
		return []quorum.Edit{{Kind: quorum.Put, Value: value, TTL: ttl}}
	}}, func(x quorum.Executed) {
		if !x.Done {
			was = ""
		}
		old <- was
	})
	return <-old
}

// Where one master was away and has the value still, and a stale copy of another has it again.
func TestAnOlderCopyOfAValueIsNotReplacedTwice(t *testing.T) {
	quick := sceneConfig
	quick.InstanceTimeout = 30 * time.Millisecond // the second tries again and again, for ten of these
	for name, set := range map[string]*quorum.WriteRequest{
		"GETSET": nil, "SET with GET": {}, "SET with XX and GET": {IfExists: true}, "SET with KEEPTTL and GET": {KeepTTL: true},
	} {
		t.Run(name, func(t *testing.T) {
			inSceneWith(t, 3, quick, nil, func(s *scene) {
				<-s.acquire(1, "other", time.Minute, false)
				s.sleep(time.Millisecond)
				before := s.now()
				s.do(func() { s.links[0][1].block(up) })
				if old := s.swapVia(0, set, "first"); old != "other" {
					t.Fatalf("replaced %q", old)
				}
				s.expectHolders(0, "fof")
				s.fallBack(0, before)
				s.sleep(time.Second)
				if old := s.swapVia(1, set, "second"); old == "other" {
					t.Error("both replaced the same")
				}
			})
		})
	}
}

// Two clients GETDEL one value through two proxies, each nearer to another master, and the third answers neither.
func TestOneClientIsToldWhatItDeleted(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1, 2)
		s.do(func() {
			s.links[0][2].slow, s.links[1][0].slow = 20*time.Millisecond, 20*time.Millisecond
			s.links[0][1].block(down)
			s.links[1][1].block(down)
		})
		told := make(chan string, 2)
		for _, p := range s.proxies {
			was := ""
			p.life.engine.Exec(quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
				if was = now[0].Value; !now[0].Exists {
					return nil
				}
				return []quorum.Edit{{Kind: quorum.Claim}}
			}}, func(x quorum.Executed) {
				if !x.Done {
					was = ""
				}
				told <- was
			})
		}
		if first, second := <-told, <-told; first != "" && second != "" {
			t.Errorf("both were told %q", first)
		}
	})
}

// Two of three masters have a value. One deletes it, and its connection breaks before it says so.
func TestNobodyIsToldThatWhatItDeletedWasNotThere(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1)
		s.do(func() { s.links[0][0].slow = 50 * time.Millisecond })
		told, was := make(chan quorum.Executed, 1), quorum.View{}
		s.proxies[0].life.engine.Exec(quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
			if was = now[0]; !was.Exists {
				return nil
			}
			s.mute(1)
			return []quorum.Edit{{Kind: quorum.Claim}}
		}}, func(x quorum.Executed) { told <- x })
		s.sleep(130 * time.Millisecond)
		s.breakOff(1)
		if x := <-told; x.Done && !was.Exists {
			t.Errorf("told that nothing was there: %+v", x)
		}
	})
}

// A try leaves a value on a master that is not heard any more, and the next one puts it on another: together they are a
// quorum, for whoever looks.
func TestAValueIsNotPutByTwoTries(t *testing.T) {
	inScene(t, func(s *scene) {
		tries := 0
		put := begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func([]quorum.View) []quorum.Edit {
			switch tries++; tries {
			case 1:
				s.mute(1)
				s.others(0, 2)
			case 2:
				s.breakOff(1)
				s.mute(0)
				s.do(func() {
					s.links[0][1].block(up)
					s.servers[0].remove(&session{}, resourceName(0))
				})
			}
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		}})
		s.expectHolders(310*time.Millisecond, ".mm") // the first try has waited for the answer
		if was := s.swapVia(1, nil, "theirs"); was != "mine" {
			t.Fatalf("told %q", was)
		}
		s.do(s.links[0][1].heal)
		s.sleep(50 * time.Millisecond)
		s.do(s.links[0][0].heal)
		if x := <-put; x.Done {
			t.Error("it is put once more")
		}
		s.expectHolders(time.Second, "ttt") // the first master has been repaired
	})
}

// A transaction deletes on one master, does not win, and cannot put it back there. Another never had the key: whoever
// looked again would find that a quorum has nothing.
func TestNobodyIsToldThatNothingIsThereWhichHeHasDeleted(t *testing.T) {
	inScene(t, func(s *scene) {
		const misconf = "MISCONF it cannot save"
		s.others(0, 1)
		was := ""
		claimed := begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
			was = now[0].Value
			if !now[0].Exists {
				return []quorum.Edit{{}}
			}
			s.mute(2)
			s.do(func() { s.servers[0].refuses = misconf })
			return []quorum.Edit{{Kind: quorum.Claim}}
		}})
		s.expectHolders(10*time.Millisecond, "o..")
		s.do(func() {
			s.servers[1].refuses = misconf
			s.links[0][2].heal()
		})
		if x := <-claimed; x.Done {
			t.Errorf("told %q: %+v", was, x)
		}
		s.do(func() {
			s.servers[0].refuses, s.servers[1].refuses = "", ""
		})
		s.expectHolders(time.Second, "oo.")
	})
}

// A transaction replaces a hash on one master, does not win, and cannot make it a hash again there. Another never had the key:
// whoever looked again would find that a quorum has nothing.
func TestNobodyIsToldThatNothingIsThereWhereHeHasReplacedAHash(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() {
			for _, m := range s.servers[:2] {
				m.put(&session{}, resourceName(0), item{text: "other\x001\x00", hash: true, expires: m.clock.millis(m.now()) + 60000})
			}
		})
		tries := 0
		replaced := begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
			if tries++; !now[0].Exists {
				t.Errorf("told in try %d that nothing was there", tries)
			}
			s.do(func() {
				m := s.servers[1]
				m.put(&session{}, resourceName(0), item{text: "theirs", expires: m.clock.millis(m.now()) + 60000})
			})
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		}})
		if x := <-replaced; x.Done {
			t.Error("done, where somebody else's change came between")
		}
	})
}

// A try loses while a slow master has not even been sent what it is to do: there it does nothing any more.
func TestATryThatHasLostWaitsForNoMasterThatWasNotTold(t *testing.T) {
	inScene(t, func(s *scene) {
		s.do(func() { s.links[0][2].slow = 100 * time.Millisecond })
		s.others(0, 1, 2)
		var tries []time.Duration
		put := begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func([]quorum.View) []quorum.Edit {
			if tries = append(tries, s.now()); len(tries) == 1 {
				s.do(func() {
					for _, m := range s.servers {
						m.put(&session{}, resourceName(0), item{text: "theirs", expires: m.clock.millis(m.now()) + 60000})
					}
				})
			}
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		}})
		if x := <-put; !x.Done {
			t.Fatalf("%+v", x)
		}
		if len(tries) != 2 || tries[1]-tries[0] > 50*time.Millisecond {
			t.Errorf("tries at %v", tries)
		}
	})
}

// A try has lost when a master that was stopped does what it was sent.
func TestWhatAnExecDoesLateIsPutBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1, 2)
		tries, done := 0, make(chan quorum.Executed, 1)
		s.proxies[0].life.engine.Exec(quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func([]quorum.View) []quorum.Edit {
			if tries++; tries == 1 {
				s.do(func() {
					m := s.servers[0]
					m.put(&session{}, resourceName(0), item{text: "theirs", expires: m.clock.millis(m.now()) + 60000})
					s.servers[2].stopped = true
				})
			}
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		}}, func(x quorum.Executed) { done <- x })
		if x := <-done; x.Err == nil {
			t.Fatalf("%+v, though no two masters agree", x)
		}
		s.do(s.servers[2].resume)
		s.expectHolders(time.Second, "too")
	})
}

// A value is put by two of three masters, of which one is not heard, and the third refuses, as another's change came between.
// Somebody deletes it meanwhile, and is told of it.
func TestAValueIsNotPutTwice(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1, 2)
		tries := 0
		put := begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func([]quorum.View) []quorum.Edit {
			if tries++; tries == 1 {
				s.mute(1)
				s.do(func() { s.servers[2].remove(&session{}, resourceName(0)) })
			}
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		}})
		s.expectHolders(10*time.Millisecond, "mm.")
		claimed, was := make(chan quorum.Executed, 1), ""
		s.proxies[1].life.engine.Exec(quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
			was = now[0].Value
			return []quorum.Edit{{Kind: quorum.Claim}}
		}}, func(x quorum.Executed) { claimed <- x })
		if x := <-claimed; !x.Done || was != "mine" {
			t.Fatalf("%+v, told %q", x, was)
		}
		s.sleep(400 * time.Millisecond) // its time is over
		s.do(s.links[0][1].heal)
		<-put
		s.expectHolders(time.Second, "...")
	})
}

// A try puts a value on one master only, and so does the next one on another master, and neither takes it back when it is told
// to: then a quorum has it, and nobody has put it there.
func TestAnExecIsNotToldWhatItHasPutItself(t *testing.T) {
	inScene(t, func(s *scene) {
		tries := make(chan string, 1000)
		done := begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
			tries <- now[0].Value
			free := len(tries) - 1
			if free > 1 {
				return nil
			}
			s.do(func() { // the others refuse, and are slower than this one, which refuses to write by then
				for i, m := range s.servers {
					s.links[0][i].slow = 0
					if i != free {
						s.links[0][i].slow = 20 * time.Millisecond
					}
					if i > free {
						m.put(&session{}, resourceName(0), item{text: m.addr, expires: m.clock.millis(m.now()) + time.Minute.Milliseconds()})
					}
				}
				s.servers[free].remove(&session{}, resourceName(0))
				s.after(10*time.Millisecond, func() { s.servers[free].refuses = "MISCONF" })
			})
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		}})
		<-done
		close(tries)
		for was := range tries {
			if was == "mine" {
				t.Error("told its own value")
			}
		}
	})
}

// Two clients SET with GET at once through two proxies, each nearer to another half of the masters.
func TestOneClientIsToldThatItReplacedNothing(t *testing.T) {
	inSceneOf(t, 4, func(s *scene) {
		s.do(func() {
			for m := range 2 {
				s.links[0][2+m].slow, s.links[1][m].slow = 20*time.Millisecond, 20*time.Millisecond
			}
		})
		told := make(chan bool, 2)
		for i, p := range s.proxies {
			key := quorum.Key{Name: resourceName(0)}
			req := quorum.WriteRequest{Key: key, Value: []string{"first", "second"}[i], TTL: 30 * time.Second, WantOld: true}
			p.life.engine.Write(req, func(w quorum.Written) { told <- w.Err == nil && !w.HadOld })
		}
		if first, second := <-told, <-told; first && second {
			t.Error("both were told that nothing was there")
		}
	})
}

// Two clients SET with GET a key that is there, and is to be there or to keep its TTL, at once through two proxies.
func TestNobodyIsToldThatNothingWasThere(t *testing.T) {
	for name, set := range map[string]quorum.WriteRequest{"XX": {IfExists: true}, "KEEPTTL": {KeepTTL: true}} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.others(0, 1, 2)
				told := make(chan quorum.Written, 2)
				for i, p := range s.proxies {
					req := set
					req.Key, req.Value, req.TTL, req.WantOld = quorum.Key{Name: resourceName(0)}, []string{"first", "second"}[i], time.Second, true
					p.life.engine.Write(req, func(w quorum.Written) { told <- w })
				}
				if first, second := <-told, <-told; !first.HadOld || !second.HadOld || first.Old == second.Old {
					t.Errorf("told %+v and %+v", first, second)
				}
			})
		})
	}
}

// A master is stopped while one client takes two locks at once and gives them back.
func TestEachOfTwoLocksIsGivenBackWhereItIsTakenLate(t *testing.T) {
	inScene(t, func(s *scene) {
		keys, m := []string{resourceName(0), resourceName(1)}, s.servers[2]
		e, taken := s.proxies[0].life.engine, make(chan quorum.Executed, 1)
		e.Exec(quorum.ExecRequest{Keys: keys, Plan: func([]quorum.View) []quorum.Edit {
			s.do(func() { m.stopped = true })
			put := quorum.Edit{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}
			return []quorum.Edit{put, put}
		}}, func(x quorum.Executed) { taken <- x })
		if x := <-taken; x.Lock == nil {
			t.Fatalf("not taken: %+v", x)
		}
		s.sleep(400 * time.Millisecond) // what comes now cannot be answered there in time
		for _, key := range keys {
			given := make(chan quorum.Released, 1)
			e.Release(quorum.Key{Name: key}, "mine", func(r quorum.Released) { given <- r })
			if r := <-given; !r.Held {
				t.Fatalf("not given back: %+v", r)
			}
		}
		s.do(m.resume)
		s.sleep(time.Second)
		for _, key := range keys {
			if it, ok := m.store.get(0, key, m.clock.millis(m.now())); ok {
				t.Errorf("%s is held by %s", key, it.text)
			}
		}
	})
}

// A master has another value than the others, which two clients replace at the same moment, each on one of them first. Somebody
// wins, and the key can be written on.
func TestClientsThatReplaceAValueAtOnceDoNotTearIt(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "mine", 10*time.Second, false))
		s.others(1)
		s.do(func() { s.links[0][2].slow, s.links[1][0].slow = 5*time.Millisecond, 5*time.Millisecond })
		written := make(chan quorum.Written, 2)
		replace := func(proxy int, value string) {
			req := quorum.WriteRequest{Key: quorum.Key{Name: resourceName(0)}, Value: value, TTL: 10 * time.Second, IfExists: true}
			s.proxies[proxy].life.engine.Write(req, func(w quorum.Written) { written <- w })
		}
		replace(0, "first")
		replace(1, "second")
		if one, other := <-written, <-written; !one.Done && !other.Done {
			t.Errorf("nobody has written: %+v %+v", one, other)
		}
		replace(0, "third")
		if w := <-written; w.Err != nil || !w.Done {
			t.Errorf("not written on: %+v", w)
		}
	})
}

// A value was deleted in vain, and its master is away until the value's time is over, has forgotten it, and its clock has been set
// back: put back there, it would begin to live anew.
func TestAValueWhoseTimeIsOverIsNotPutBack(t *testing.T) {
	patient := sceneConfig
	patient.InstanceTimeout = time.Second // a heartbeat finds out that the master is away before the value is to be put back
	inSceneWith(t, 3, patient, nil, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "held", 2*time.Second, false))
		s.sleep(10 * time.Millisecond)
		x := s.exec(0, func([]quorum.View) []quorum.Edit {
			s.do(func() {
				s.links[0][1].block(up)
				s.links[0][2].block(up)
				s.after(100*time.Millisecond, func() { s.servers[0].crash(false) })
			})
			return []quorum.Edit{{Kind: quorum.Claim}}
		})
		if x.Err == nil {
			t.Fatalf("%+v", x)
		}
		s.set(0, -time.Minute)
		s.sleep(2 * time.Second)
		s.do(func() {
			s.servers[0].store = newStore()
			s.servers[0].restart()
		})
		s.expectHolders(time.Second, "...")
	})
}

// refuseWhen lets a master that cannot save refuse to write as soon as it has a token.
func (s *scene) refuseWhen(master int, token string) {
	m := s.servers[master]
	if it, _ := m.lock(resourceName(0)); it.text == token {
		m.refuses = "MISCONF it cannot save"
		return
	}
	s.after(20*time.Microsecond, func() { s.refuseWhen(master, token) })
}

// What a try has put stays on one master, which then refuses to put back what was there; another refuses from the start, and the
// third has nothing. That masters differ is its own doing, and says nothing of the lock.
func TestAnExecDoesNotTellThatNothingIsThereWhichItHasReplacedItself(t *testing.T) {
	inScene(t, func(s *scene) {
		s.expectGranted(<-s.acquire(0, "held", time.Minute, false))
		s.sleep(10 * time.Millisecond)
		s.remove(2)
		s.do(func() {
			s.servers[1].refuses = "MISCONF it cannot save"
			s.refuseWhen(0, "next")
		})
		x := s.exec(0, func(now []quorum.View) []quorum.Edit {
			if now[0].Value != "held" {
				return nil
			}
			return []quorum.Edit{{Kind: quorum.Put, Value: "next", TTL: time.Minute}}
		})
		if x.Err == nil {
			t.Errorf("told that it is gone: %+v", x)
		}
	})
}

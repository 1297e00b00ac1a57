package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// miss has the first master miss a change through the first proxy that the others make.
func (s *scene) miss(change func()) {
	s.do(func() { s.links[0][0].block(up) })
	s.sleep(time.Second) // it owes the answer to a heartbeat, so what comes now is not sent
	change()
	s.do(s.links[0][0].heal)
	s.sleep(100 * time.Millisecond)
}

// exec is an Exec on the resource, through a proxy.
func (s *scene) exec(proxy int, plan quorum.Plan) quorum.Executed {
	req := quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: plan}
	return <-begin(s.proxies[proxy].life.engine.Exec, req)
}

// swap is swapVia the first proxy, and expects what was there.
func (s *scene) swap(value, was string) {
	s.t.Helper()
	if old := s.swapVia(0, nil, value); old != was {
		s.t.Errorf("%s replaced %q, want %q", value, old, was)
	}
}

// A master misses a change, and is there again. Later another one dies.
func TestAMasterThatMissedAChangeIsBroughtUpToDateByTheNext(t *testing.T) {
	for name, changed := range map[string]func(s *scene){
		"it has what was there before": func(s *scene) { s.miss(func() { s.swap("b", "a") }) },
		"it has nothing":               func(s *scene) { s.do(func() { s.servers[0].remove(&session{}, resourceName(0)) }); s.swap("b", "a") },
		"it ran what it was sent, late": func(s *scene) {
			s.do(func() { s.links[0][0].block(up) })
			s.swap("x", "a")
			s.miss(func() { s.swap("b", "x") })
		},
		"its connection broke meanwhile":  func(s *scene) { s.miss(func() { s.swap("b", "a"); s.breakOff(0) }) },
		"its answer was lost with a link": func(s *scene) { s.mute(0); s.swap("x", "a"); s.breakOff(0); s.miss(func() { s.swap("b", "x") }) },
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.swap("a", "")
				s.sleep(10 * time.Millisecond)
				changed(s)
				s.swap("c", "b")
				s.expectHolders(10*time.Millisecond, "ccc")
				s.do(func() { s.servers[2].crash(true) })
				s.swap("d", "c")
			})
		})
	}
}

// What a master has instead may be the vote of somebody's attempt, for all that a proxy knows.
func TestARepairTakesOnlyWhatAQuorumHasReplaced(t *testing.T) {
	t.Run("unknown", func(t *testing.T) {
		inScene(t, func(s *scene) {
			s.swap("a", "")
			s.sleep(10 * time.Millisecond)
			s.others(0)
			s.swap("b", "a")
			s.swap("c", "b")
			s.expectHolders(10*time.Millisecond, "occ")
		})
	})
	t.Run("the same token, set once more", func(t *testing.T) {
		inScene(t, func(s *scene) {
			s.swap("a", "")
			s.sleep(10 * time.Millisecond)
			s.do(func() {
				m := s.servers[0]
				m.put(&session{}, resourceName(0), item{text: "a", expires: m.clock.millis(m.now()) + time.Minute.Milliseconds()})
			})
			s.miss(func() { s.swap("b", "a") })
			s.swap("c", "b")
			s.expectHolders(10*time.Millisecond, "acc")
		})
	})
}

// A master that missed a change has what was there before, and another client takes that away.
func TestWhatAMasterMissedIsDeletedWithTheRest(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("a", "")
		s.miss(func() { s.swap("b", "a") })
		x := s.exec(0, func([]quorum.View) []quorum.Edit {
			return []quorum.Edit{{Kind: quorum.Claim}}
		})
		if !x.Done {
			t.Errorf("%+v", x)
		}
		s.expectHolders(10*time.Millisecond, "...")
	})
}

// The reply to a change could not be written, so it is undone, also where a repair has made it.
func TestARepairIsTakenBackWithItsExec(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("a", "")
		s.miss(func() { s.swap("b", "a") })
		x := s.exec(0, func([]quorum.View) []quorum.Edit {
			return []quorum.Edit{{Kind: quorum.Put, Value: "c", TTL: time.Minute}}
		})
		s.expectHolders(10*time.Millisecond, "ccc")
		x.Lock.Abandon()
		s.expectHolders(10*time.Millisecond, ".bb")
	})
}

// While a try is undone, somebody else has replaced on one master what it had put there, and puts it back a moment later.
func (s *scene) replaceFor(while time.Duration, master int, token string) {
	m, key := s.servers[master], resourceName(0)
	had, ok := m.store.get(0, key, m.clock.millis(m.now()))
	if !ok || had.text != token {
		s.after(time.Millisecond, func() { s.replaceFor(while, master, token) })
		return
	}
	m.put(&session{}, key, item{text: "theirs", expires: had.expires + 1})
	s.after(while, func() { m.put(&session{}, key, had) })
}

// far makes all that the first proxy sends and hears late, by much more than the others'.
func (s *scene) far() {
	s.do(func() {
		for _, l := range s.links[0] {
			l.slow = 5 * time.Millisecond
		}
	})
}

// What a try has put comes back after its undo has found something else there.
func TestWhatComesBackIsUndone(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1)
		s.far()
		s.do(func() { s.replaceFor(100*time.Millisecond, 2, "mine") })
		if a := <-s.acquire(0, "mine", time.Minute, false); !a.Refused {
			t.Fatalf("%+v", a)
		}
		s.expectHolders(200*time.Millisecond, "oom")
		s.expectHolders(time.Second, "oo.")
	})
}

// A try puts a value on one master, where it comes back after its undo, and the next one puts it on another: somebody may be told
// it, so there must be no third.
func TestAnExecEndsWhereWhatItHasPutMayComeBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.others(0, 1, 2)
		s.far()
		tries := 0
		x := s.exec(0, func([]quorum.View) []quorum.Edit {
			tries++
			s.do(func() {
				for i, m := range s.servers {
					if i != 2-tries%2 { // this one has what was seen, the others have not
						m.put(&session{}, resourceName(0), item{text: m.addr, expires: m.clock.millis(m.now()) + 50})
					}
				}
				if tries == 1 {
					s.replaceFor(20*time.Millisecond, 1, "mine")
				}
				s.after(30*time.Millisecond, func() {
					for _, m := range s.servers {
						if it, _ := m.store.get(0, resourceName(0), m.clock.millis(m.now())); it.text == m.addr {
							m.put(&session{}, resourceName(0), item{text: "other", expires: it.expires + 10_000})
						}
					}
				})
			})
			return []quorum.Edit{{Kind: quorum.Put, Value: "mine", TTL: 10 * time.Second}}
		})
		if x.Err == nil || tries != 2 {
			t.Errorf("%d tries: %+v", tries, x)
		}
	})
}

// For a moment all masters differ, or two do while the third is away, as while another's change is put back.
func TestAnExecWaitsUntilMastersAgree(t *testing.T) {
	for name, down := range map[string]bool{"all differ": false, "two differ": true} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.others(0, 1, 2)
				s.do(func() {
					s.servers[1].remove(&session{}, resourceName(0))
					s.servers[2].put(&session{}, resourceName(0), item{text: "theirs", expires: s.servers[2].clock.millis(s.servers[2].now()) + 60_000})
					if down {
						s.servers[2].crash(true)
					}
				})
				s.sleep(10 * time.Millisecond)
				s.do(func() {
					s.after(50*time.Millisecond, func() {
						s.servers[1].put(&session{}, resourceName(0), item{text: "other", expires: s.servers[1].clock.millis(s.servers[1].now()) + 60_000})
					})
				})
				s.swap("mine", "other")
			})
		})
	}
}

// A master has nothing when it is looked at, makes the change all the same, and somebody takes that away before it is repaired.
func TestARepairDoesNotBringBackWhatWasTakenAway(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("a", "")
		s.sleep(10 * time.Millisecond)
		var had item
		s.do(func() {
			m := s.servers[2]
			had, _ = m.store.get(0, resourceName(0), m.clock.millis(m.now()))
			m.remove(&session{}, resourceName(0))
			s.links[0][0].slow, s.links[0][1].slow = time.Millisecond, time.Millisecond
		})
		x := s.exec(0, func([]quorum.View) []quorum.Edit {
			s.do(func() {
				s.servers[2].put(&session{}, resourceName(0), had)
				s.links[0][2].slow = 20 * time.Millisecond
			})
			return []quorum.Edit{{Kind: quorum.Put, Value: "b", TTL: time.Minute}}
		})
		if !x.Done {
			t.Fatalf("%+v", x)
		}
		s.expectHolders(25*time.Millisecond, "bbb")
		was := ""
		x = s.exec(1, func(now []quorum.View) []quorum.Edit {
			was = now[0].Value
			return []quorum.Edit{{Kind: quorum.Claim}}
		})
		if !x.Done || was != "b" {
			t.Fatalf("%q, %+v", was, x)
		}
		s.expectHolders(time.Second, "...")
	})
}

// A release counts as done where a master that it cannot reach may have made up the quorum. That master alone has the value still, also
// where repairs were on their way.
func TestARepairDoesNotBringBackWhatWasReleased(t *testing.T) {
	for name, c := range map[string]struct {
		quick time.Duration // of the masters that make the change
		want  string
	}{"that is made later": {100 * time.Microsecond, "..caa"}, "that is on its way": {5 * time.Millisecond, "..c.."}} {
		t.Run(name, func(t *testing.T) {
			inSceneOf(t, 5, func(s *scene) {
				s.swap("a", "")
				late := s.links[0][3:]
				s.do(func() {
					for _, l := range append(s.links[1][2:3:3], late...) {
						l.block(up)
					}
				})
				s.sleep(time.Second)
				s.swap("b", "a")
				s.do(func() {
					for i, l := range s.links[0] {
						l.heal()
						if l.slow = c.quick; i > 2 {
							l.slow = time.Millisecond // so they are looked at first
						}
					}
				})
				s.expectHolders(100*time.Millisecond, "bbbaa")
				s.edit(0, quorum.Edit{Kind: quorum.Put, Value: "c", TTL: 30 * time.Second}, func() {
					s.do(func() {
						for _, l := range late {
							l.slow = 20 * time.Millisecond // their refusals come when the change has won
						}
					})
				})
				s.release(1, "c")
				s.expectHolders(0, "..caa")
				s.expectHolders(time.Second, c.want)
			})
		})
	}
}

// Nor where it is one of several keys that were put, and released, together.
func TestARepairBringsBackNoneOfSeveralThatWereReleased(t *testing.T) {
	inSceneOf(t, 5, func(s *scene) {
		keys := []string{"another", resourceName(0)}
		put := func(value string, meanwhile func()) {
			t.Helper()
			x := <-begin(s.proxies[0].life.engine.Exec, quorum.ExecRequest{Keys: keys, Plan: func([]quorum.View) []quorum.Edit {
				meanwhile()
				one := quorum.Edit{Kind: quorum.Put, Value: value, TTL: 30 * time.Second}
				return []quorum.Edit{one, one}
			}})
			if !x.Done {
				t.Errorf("%+v", x)
			}
		}
		put("a", func() {})
		late := s.links[0][3:]
		s.do(func() {
			for _, l := range append(s.links[1][2:3:3], late...) {
				l.block(up)
			}
		})
		s.sleep(time.Second)
		put("b", func() {})
		s.do(func() {
			for i, l := range s.links[0] {
				l.heal()
				if l.slow = 5 * time.Millisecond; i > 2 {
					l.slow = time.Millisecond // so they are looked at first
				}
			}
		})
		s.expectHolders(100*time.Millisecond, "bbbaa")
		put("c", func() {
			s.do(func() {
				for _, l := range late {
					l.slow = 20 * time.Millisecond // their refusals come when the change has won
				}
			})
		})
		for _, key := range keys {
			done := make(chan quorum.Released, 1)
			s.proxies[1].life.engine.Release(quorum.Key{Name: key}, "c", func(r quorum.Released) { done <- r })
			if r := <-done; r.Err != nil {
				t.Errorf("not released: %+v", r)
			}
		}
		s.expectHolders(time.Second, "..c..")
	})
}

// keep is SET with KEEPTTL through a proxy.
func (s *scene) keep(proxy int, value string) *quorum.Lock {
	s.t.Helper()
	return s.edit(proxy, quorum.Edit{Kind: quorum.Put, Value: value, KeepTTL: true}, func() {})
}

// edit makes one change through a proxy, when meanwhile was called, and expects that it is done.
func (s *scene) edit(proxy int, edit quorum.Edit, meanwhile func()) *quorum.Lock {
	s.t.Helper()
	done := begin(s.proxies[proxy].life.engine.Exec, quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func([]quorum.View) []quorum.Edit {
		meanwhile()
		return []quorum.Edit{edit}
	}})
	x := <-done
	if !x.Done {
		s.t.Errorf("%+v", x)
	}
	return x.Lock
}

// A client replaces a lock, and is gone, so the lock is put back. Another deletes what the first had put: on one master, as one
// cannot be reached, and one has the lock again. The benefit of the doubt is no quorum.
func TestADeletionThatFewMadeTakesNoLockThatIsPutBack(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("held", "")
		s.do(func() { s.links[1][2].block(up); s.links[0][2].block(up); s.links[0][2].block(down) })
		theirs := s.edit(1, quorum.Edit{Kind: quorum.Put, Value: "theirs", TTL: time.Minute}, func() {})
		s.do(s.links[1][2].heal)
		s.sleep(7 * time.Second) // until the first proxy has found that the last master is gone
		s.edit(0, quorum.Edit{Kind: quorum.Delete}, func() {
			s.do(func() { s.links[0][1].slow, s.links[1][0].slow = 20*time.Millisecond, 50*time.Millisecond })
			theirs.Abandon()
		})
		s.expectHolders(time.Second, ".hh")
		if a := <-s.acquire(1, "mine", time.Second, false); a.Lock != nil {
			t.Error("held twice")
		}
	})
}

// What a try put has been replaced, and is put anew by somebody else, each with the TTL that was left: it expires in the same
// millisecond.
func TestAnUndoThatIsRepeatedTakesNothingThatWasPutAnew(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("a", "")
		s.sleep(10 * time.Millisecond)
		gone := s.keep(0, "b")
		s.keep(1, "c")
		gone.Abandon()
		s.sleep(10 * time.Millisecond)
		s.keep(1, "b")
		s.expectHolders(3*time.Second, "bbb")
	})
}

// A master has refused a change, and has what was there before. Others have made a further one, and forgotten it.
func TestACheckupDoesNotGoByAnOlderCopy(t *testing.T) {
	patient := sceneConfig
	patient.InstanceTimeout = time.Second // the checkup comes after so long, when the master is there again
	inSceneWith(t, 3, patient, nil, func(s *scene) {
		s.swap("w", "")
		s.sleep(10 * time.Millisecond)
		m := s.servers[2]
		var had item
		s.do(func() {
			had, _ = m.store.get(0, resourceName(0), m.clock.millis(m.now()))
			m.put(&session{}, resourceName(0), item{text: "y", expires: had.expires + 1})
		})
		s.swap("x", "w")
		s.sleep(10 * time.Millisecond)
		before := s.now()
		s.do(func() { m.put(&session{}, resourceName(0), had) })
		s.sleep(10 * time.Millisecond)
		s.edit(1, quorum.Edit{Kind: quorum.Put, Value: "z", TTL: time.Minute}, func() {})
		s.do(func() { s.links[0][1].block(up) })
		s.fallBack(0, before)
		s.expectHolders(3*time.Second, "xzw")
		if x := s.extend(1, "x", time.Minute); x.Held {
			t.Errorf("held twice: %+v", x)
		}
	})
}

// A master has refused a change, and has what was there before. Somebody else has put just that back on the others, with the TTL
// that was left, so it is no trace of the past.
func TestACheckupLeavesWhatWasPutAnew(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("a", "")
		s.sleep(10 * time.Millisecond)
		m := s.servers[2]
		var had item
		s.do(func() {
			had, _ = m.store.get(0, resourceName(0), m.clock.millis(m.now()))
			m.put(&session{}, resourceName(0), item{text: "y", expires: had.expires + 1})
		})
		s.keep(0, "b")
		s.sleep(10 * time.Millisecond)
		s.do(func() { m.put(&session{}, resourceName(0), had) })
		s.keep(1, "a")
		s.expectHolders(time.Second, "aaa")
	})
}

// A value that was put with the TTL that was left is taken away, and somebody puts it anew, for a second, where a quorum is.
func TestACheckupDoesNotFillWithAnotherTTL(t *testing.T) {
	inScene(t, func(s *scene) {
		s.swap("a", "")
		s.sleep(10 * time.Millisecond)
		s.others(2)
		s.keep(0, "b")
		s.sleep(10 * time.Millisecond)
		s.edit(1, quorum.Edit{Kind: quorum.Claim}, func() {})
		if a := <-s.acquire(1, "b", time.Second, false); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		s.do(func() { s.servers[2].remove(&session{}, resourceName(0)) })
		s.expectHolders(3*time.Second, "...")
	})
}

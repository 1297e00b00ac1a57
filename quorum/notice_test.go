package quorum

import "testing"

func TestANoticeTellsOfEveryChangeThroughItsEngine(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		write := func(req WriteRequest) {
			c := make(chan Written, 1)
			req.Key = Key{Name: key}
			w.Write(req, func(x Written) { c <- x })
			<-c
		}
		for _, step := range []struct {
			what    string
			do      func()
			changes bool
		}{
			{"an attempt", func() { w.acquire(key, "mine", minute) }, true},
			{"a refused attempt", func() { w.acquire(key, "other", minute) }, false},
			{"a read", func() { w.read(key); w.views(key) }, false},
			{"an extension", func() { w.extend(ExtendRequest{Key: Key{Name: key}, Token: "mine", TTL: minute}) }, true},
			{"another's extension", func() { w.extend(ExtendRequest{Key: Key{Name: key}, Token: "other", TTL: minute}) }, false},
			{"another's release", func() { w.release(key, "other") }, false},
			{"a write of the same", func() { write(WriteRequest{Value: "mine", TTL: minute}) }, true},
			{"an exchange", func() { w.getSet(key, "mine", minute) }, true},
			{"a transaction that changes another key alone", func() {
				w.exec(ExecRequest{Keys: []string{"another", key}, Plan: func([]View) []Edit {
					return []Edit{{Kind: Put, Value: "mine", TTL: minute}, {Kind: Keep}}
				}})
			}, false},
			{"a transaction that changes the key, too", func() {
				w.exec(ExecRequest{Keys: []string{"another", key}, Plan: func([]View) []Edit {
					return []Edit{{Kind: Keep}, {Kind: Put, Value: "mine", TTL: minute}}
				}})
			}, true},
			{"what concerns another key", func() { w.acquire("another", "mine", minute) }, false},
			{"a message", func() { w.publish(key, "x") }, false},
			{"a release", func() { w.release(key, "mine") }, true},
			{"an attempt that nobody answers", func() {
				for _, f := range w.fakes {
					f.stall()
				}
				w.acquire(key, "mine", minute)
				for _, f := range w.fakes {
					f.resume()
				}
			}, true},
		} {
			n := w.Notice(Key{Name: key})
			elsewhere := w.Notice(Key{DB: 1, Name: key})
			step.do()
			if n.Changed() != step.changes || elsewhere.Changed() {
				t.Errorf("%s: changed %v, in another database %v; want %v", step.what, n.Changed(), elsewhere.Changed(), step.changes)
			}
			n.End()
			elsewhere.End()
		}
		if n := w.notices.n.Load(); n != 0 || len(w.notices.of) != 0 {
			t.Errorf("%d notices are kept, on %d keys", n, len(w.notices.of))
		}
	})
}

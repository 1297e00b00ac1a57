package resp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockproxy/quorum"
)

// A command waits for the youngest one before it on a key of its own, however many keys each of them has.
func TestCommandsOnManyKeysWaitForThoseThatShareOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	waited := 0
	for range 3000 {
		s, _ := bareSession(newFakeEngine(), "", 0)
		var want *slot
		all := make([]*slot, 5)
		for i := range all {
			sl := s.newReply()
			sl.overlap, sl.left = overlapNone, 1
			sl.key = quorum.Key{DB: rng.IntN(2), Name: someName(rng)}
			for range rng.IntN(20) {
				sl.others = append(sl.others, someName(rng))
			}
			all[i] = sl
		}
		last := all[len(all)-1]
		for _, sl := range all[:len(all)-1] {
			s.replies.push(sl)
			s.replies.alone++
			for _, name := range append([]string{last.key.Name}, last.others...) {
				if sl.touches(quorum.Key{DB: last.key.DB, Name: name}) {
					want = sl
				}
			}
		}
		if got := s.replies.conflict(last); got != want {
			t.Fatalf("%v %v waits for %v, want %v", last.key, last.others, got, want)
		}
		if want != nil {
			waited++
		}
	}
	if waited < 300 || waited > 2700 {
		t.Errorf("%d of 3000 wait: that shows little", waited)
	}
}

func someName(rng *rand.Rand) string { return fmt.Sprint("k", rng.IntN(200)) }

// While masters send large values to one client, all others wait.
func TestLargeValuesAreReadAFewAtATime(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	const size, all = 150_000, 100
	if got := c.ask("SET", "large", strings.Repeat("v", size)); got != "+OK\r\n" {
		t.Fatal(got)
	}
	c = r.dial()
	r.engine.hold()
	c.send(strings.Repeat(words("GET large"), all))
	asked := func(want int) {
		t.Helper()
		waitFor(t, fmt.Sprintf("the client has not %d commands under way, and waits", want), func() bool {
			heldUp := false
			for _, s := range r.server.sessions.all() {
				heldUp = heldUp || s.reader.heldUp.Load()
			}
			return heldUp && r.engine.underWay() == want
		})
	}
	const first, later = greedyBytes/firstReadSize + 1, greedyBytes/size + 1
	asked(first) // how long the replies are is not known yet
	for range first - later + 1 {
		r.engine.release(0)
	}
	asked(later)
	r.engine.releaseAll()
	for range all {
		if got := c.reply(); len(got) < size {
			t.Fatalf("got %.100q", got)
		}
	}
	r.engine.hold()
	c.send(strings.Repeat(words("GET none"), 20))
	asked(later)
	r.engine.releaseAll()
	for range 20 {
		c.want("$-1\r\n")
	}
	for range 20 {
		c.send(words("GET none"))
		c.want("$-1\r\n")
	}
	r.engine.hold()
	c.send(strings.Repeat(words("GET none"), all)) // replies have been short for some time
	waitFor(t, "commands whose replies are short are held up", func() bool { return r.engine.underWay() == all })
	r.engine.releaseAll()
}

// On masters, a command on many keys is as much work as many commands.
func TestACommandCountsForEachOfItsKeysInAPipeline(t *testing.T) {
	for _, first := range []string{"EXISTS a b c d", "DEL a b c d", "MGET a b c d", "EVAL return{} 4 a b c d"} {
		r := newRig(t, Config{Limits: Limits{Pipeline: 4}})
		r.dial().ask("SCRIPT", "LOAD", "return{}")
		arrived := r.engine.hold()
		c := r.dial()
		c.send(words(first) + words("GET e"))
		waitFor(t, first+": what follows does not wait", func() bool {
			return slices.ContainsFunc(r.server.sessions.all(), func(s *session) bool { return s.reader.heldUp.Load() })
		})
		for len(arrived) > 0 {
			if name := <-arrived; name == "get e" {
				t.Errorf("%s: what follows was begun", first)
			}
		}
		r.engine.releaseAll()
		c.reply()
		c.want("$-1\r\n")
	}
}

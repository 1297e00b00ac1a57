package sim

import (
	"strings"
	"time"
)

// How speaking clients give a lock back.

// release is a command that gives a lock back. From then on its client does not rely on the lock. mu is not held.
func (s *speaker) release(l *wanted) *request {
	q := &request{words: []string{"EVAL", releaseText, "1", l.resource, l.token}, most: 4}
	switch kind := s.rng.Float64(); {
	case kind < 0.4:
		q.words = []string{"UNLOCK", l.resource, l.token}
	case kind < 0.6:
		q.words[0], q.words[1] = "EVALSHA", sha1hex(releaseText)
	}
	told := s.lets(l)
	q.on = func() {
		if n, is := q.reply.(int64); is && (n == 1 || !q.held) {
			told(n == 1, "a release")
		}
	}
	return q
}

// lets notes that a lock is to be given back: from now on its client does not rely on the lock. The returned function
// takes the outcome: the lock was given back, or the client did not hold it, and by which command. mu is not held in
// lets, and is held in the returned function.
func (s *speaker) lets(l *wanted) (told func(back bool, by string)) {
	w, k := s.world, &s.world.checker
	stood, doubtful := promise{over: true}, time.Duration(0)
	w.do(func() {
		if l.promise != nil {
			stood, doubtful, l.promise.over = *l.promise, k.doubtful[l.resource], true
		}
		l.given = true
	})
	return func(back bool, by string) {
		if !back {
			stood.doubtful = l.promise != nil && l.promise.doubtful || k.doubtful[l.resource] != doubtful
			k.gone(&stood, by)
			return
		}
		k.bygone[l.token], l.returned = w.now(), true
		if w.plan.Calm {
			k.isGoneIn(l, func() bool { return true })
		}
	}
}

// giveBack gives a lock back.
func (s *speaker) giveBack(l *wanted) {
	if chance(s.rng, s.world.plan.Watches/2) {
		s.giveWatched(l)
		return
	}
	q := s.release(l)
	r, ok := s.await(q)
	if f, failed := r.(fault); ok && failed && strings.HasPrefix(string(f), "NOSCRIPT") {
		_, _ = s.ask("EVAL", releaseText, "1", l.resource, l.token)
	}
}

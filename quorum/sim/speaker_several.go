package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"lockproxy/quorum/rules"
)

// Speaking clients that take several locks by one command or one EXEC, or hand values to each other, in worlds of the
// class Several, too. Releases by EXEC are here, even of a single lock.

// takeAll takes several locks, all or none, or the free ones; uses the locks, and gives them back.
func (s *speaker) takeAll(l *wanted) {
	w := s.world
	for i := range w.plan.Resources {
		if name := resourceName(i); name != l.resource && chance(s.severally, 0.6) {
			other := s.wants(name)
			other.token, other.ttl = l.token, l.ttl
			l.beside = append(l.beside, other)
		}
	}
	ok := false
	switch kind := s.severally.Float64(); {
	case kind < 0.5:
		ok = s.setWatched(l)
	case kind < 0.75:
		ok = s.setUnlessThere(l)
	default:
		ok = s.setFree(l)
	}
	held := slices.DeleteFunc(l.all(), func(l *wanted) bool { return l.promise == nil })
	if !ok || len(held) == 0 {
		return
	}
	s.pause(between(s.severally, 0, min(w.plan.Hold, 2*l.ttl)))
	if chance(s.severally, 0.3) && !s.touch(held[0]) {
		held = held[1:]
	}
	if len(held) > 0 && s.open() {
		s.giveAll(held)
	}
}

// watches begins a transaction: WATCH, and a look at the keys. It returns the values, or none after an error; false if
// there was no reply. To MGET a hash has no value.
func (s *speaker) watches(all []*wanted, look string) ([]any, bool) {
	names := namesOf(all)
	asks := []*request{{words: append([]string{"WATCH"}, names...)}}
	if len(names) > 1 && chance(s.severally, 0.3) { // each by itself
		asks = asks[:0]
		for _, name := range names {
			asks = append(asks, &request{words: []string{"WATCH", name}})
		}
	}
	seen, ok := s.await(append(asks, &request{words: append([]string{look}, names...)})...)
	if !ok {
		return nil, false
	}
	list, many := seen.([]any)
	if _, failed := seen.(fault); !many && !failed {
		list = []any{seen}
	}
	for _, q := range asks {
		if q.reply != status("OK") {
			list = nil
		}
	}
	return list, true
}

// setWatched takes the locks by WATCH, MGET, MULTI, SET or MSETNX, EXEC.
func (s *speaker) setWatched(l *wanted) bool {
	all := l.all()
	look, free := "MGET", any(nil)
	if s.world.plan.Votes > 0 {
		look, free = "EXISTS", int64(0)
	}
	seen, ok := s.watches(all, look)
	if !ok {
		return false
	}
	s.pause(between(s.severally, 0, 4*s.world.plan.Latency))
	if len(seen) == 0 || slices.ContainsFunc(seen, func(v any) bool { return v != free }) {
		_, _ = s.ask("UNWATCH")
		return false
	}
	asks := []*request{{words: []string{"MULTI"}}}
	if chance(s.severally, 0.5) {
		for i, l := range all {
			l.at = i
			asks = append(asks, &request{words: []string{"SET", l.resource, l.token, "PX", millis(l.ttl)}})
		}
	} else {
		asks = append(asks, &request{words: setWords(all)})
		for _, l := range all {
			l.at, l.grants = 0, isOne
			asks = append(asks, &request{words: []string{"PEXPIRE", l.resource, millis(l.ttl)}})
		}
	}
	_, ok = s.await(append(asks, &request{words: []string{"EXEC"}, lock: l})...)
	return ok
}

// setUnlessThere takes the locks by MSETNX, for the longest TTL.
func (s *speaker) setUnlessThere(l *wanted) bool {
	ttl := s.world.plan.of(s.at.id).TTLMax
	for _, l := range l.all() {
		l.ttl, l.grants = ttl, isOne
	}
	_, ok := s.await(&request{words: setWords(l.all()), lock: l})
	return ok
}

// setFree takes the free locks, by MULTI, SET with NX, EXEC.
func (s *speaker) setFree(l *wanted) bool {
	asks := []*request{{words: []string{"MULTI"}}}
	for i, l := range l.all() {
		l.at, l.token = i, l.token+"-"+l.resource
		asks = append(asks, &request{words: []string{"SET", l.resource, l.token, "NX", "PX", millis(l.ttl)}})
	}
	_, ok := s.await(append(asks, &request{words: []string{"EXEC"}, lock: l})...)
	return ok
}

// giveAll gives several locks back, by one script, by EXEC, or one after the other.
func (s *speaker) giveAll(held []*wanted) {
	switch kind := s.severally.Float64(); {
	case kind < 0.3 && !slices.ContainsFunc(held, func(l *wanted) bool { return l.token != held[0].token }):
		s.giveByScript(held)
	case kind < 0.6:
		s.giveWatched(held...)
	case kind < 0.8:
		s.giveByScripts(held)
	default:
		for _, l := range held {
			if s.open() {
				s.giveBack(l)
			}
		}
	}
}

// giveByScript compares and deletes several keys.
func (s *speaker) giveByScript(held []*wanted) {
	var told []func(bool, string)
	for _, l := range held {
		told = append(told, s.lets(l))
	}
	q := &request{words: evalWords(freeAll, namesOf(held), held[0].token)}
	q.on = func() {
		n, is := q.reply.(int64)
		if !is || n != 0 && int(n) != len(held) || n == 0 && q.held { // the reply does not say which locks
			return
		}
		for _, t := range told {
			t(n > 0, "a script")
		}
	}
	_, _ = s.await(q)
}

// giveByScripts compares and deletes each lock by a recognised script, in one transaction.
func (s *speaker) giveByScripts(held []*wanted) {
	asks := []*request{{words: []string{"MULTI"}}}
	var told []func(bool, string)
	for _, l := range held {
		told = append(told, s.lets(l))
		asks = append(asks, &request{words: evalWords(releaseText, []string{l.resource}, l.token)})
	}
	exec := &request{words: []string{"EXEC"}}
	exec.on = func() {
		list, _ := exec.reply.([]any)
		for i, back := range list {
			if n, is := back.(int64); is && (n == 1 || !exec.held) {
				told[i](n == 1, "an EXEC")
			}
		}
	}
	_, _ = s.await(append(asks, exec)...)
}

// giveWatched gives locks back by WATCH, GET or MGET, MULTI, DEL, EXEC.
func (s *speaker) giveWatched(held ...*wanted) {
	w := s.world
	var told []func(bool, string)
	for _, l := range held {
		told = append(told, s.lets(l))
	}
	look := "MGET"
	if len(held) == 1 {
		look = "GET"
	}
	seen, ok := s.watches(held, look)
	if !ok {
		return
	}
	s.pause(between(s.rng, 0, 4*w.plan.Latency))
	if !slices.EqualFunc(seen, held, func(v any, l *wanted) bool { return v == l.token }) {
		_, _ = s.ask("UNWATCH")
		return
	}
	exec := &request{words: []string{"EXEC"}}
	exec.on = func() {
		list, done := exec.reply.([]any)
		_, failed := exec.reply.(fault)
		changed := slices.ContainsFunc(held, func(l *wanted) bool { return l.hold || l.promise.until <= w.now() }) // an extension changes the lock
		if failed || exec.held || changed && !done {
			return
		}
		for i := range held {
			told[i](done && list[0] == int64(len(held)), "an EXEC")
		}
	}
	_, _ = s.await(&request{words: []string{"MULTI"}}, &request{words: append([]string{"DEL"}, namesOf(held)...)}, exec)
}

// exchangeSpoken puts a value in the place of another, or takes a value away, and is told the former value.
func (s *speaker) exchangeSpoken() {
	w, k := s.world, &s.world.checker
	s.tries++
	ttl := w.plan.TTLMost.Truncate(time.Millisecond)
	x := &exchange{client: s.client, key: fmt.Sprintf("v%d", 1+s.severally.IntN(2)), put: fmt.Sprintf("%s-x%d", s.name, s.tries)}
	set, all := []string{"SET", x.key, x.put, "PX", millis(ttl)}, []*request(nil)
	switch s.severally.IntN(5) {
	case 0:
		set, x.put = []string{"GETDEL", x.key}, ""
	case 1:
		set, ttl = []string{"GETSET", x.key, x.put}, w.plan.of(s.at.id).TTLMax
	case 2:
		set = append(set, "GET")
	case 3:
		set = append(set, "GET", "XX")
	case 4:
		all = []*request{{words: []string{"MULTI"}}, {words: []string{"GET", x.key}}, {words: set}}
		set = []string{"EXEC"}
	}
	q := &request{words: set}
	q.on = func() {
		told, many := q.reply.([]any)
		was := q.reply
		if many && len(told) == 2 {
			was = told[0]
		}
		_, failed := was.(fault)
		x.told, _ = was.(string)
		x.done, x.ended = !failed && many == (all != nil), w.now()
		x.until = q.sent + rules.Validity(ttl, 0, w.plan.loosest().DriftFactor) - (w.asleep() - q.slept)
		if was == nil && slices.Contains(q.words, "XX") {
			x.put = ""
		}
	}
	w.do(func() {
		x.began = w.now()
		k.exchanges = append(k.exchanges, x)
	})
	_, _ = s.await(append(all, q)...)
}

func namesOf(all []*wanted) []string {
	var names []string
	for _, l := range all {
		names = append(names, l.resource)
	}
	return names
}

// setWords are the words of an MSETNX.
func setWords(all []*wanted) []string {
	words := []string{"MSETNX"}
	for _, l := range all {
		words = append(words, l.resource, l.token)
	}
	return words
}

// evalWords are the words of an EVAL.
func evalWords(text string, keys []string, args ...string) []string {
	return slices.Concat([]string{"EVAL", text, strconv.Itoa(len(keys))}, keys, args)
}

func isOne(r reply) bool { return r == int64(1) }

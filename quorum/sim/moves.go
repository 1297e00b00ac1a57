package sim

import (
	"math/rand/v2"
	"time"

	"lockproxy/quorum"
)

// Moves: in worlds of the class Moved, clients that hold a lock also rename and copy the lock by scripts that run by
// vote, to another free resource. All random draws for this are from streams of their own.

func (p *Plan) moves(r *rand.Rand) {
	p.Moves, p.Votes, p.Constant = pick(r, 0.1, 0.3, 0.6), max(p.Votes, 0.5), false
	p.Resources = max(p.Resources, 2+r.IntN(4))
}

// moves says whether the client now moves its lock.
func (c *client) moves(h *votedHold) bool {
	return c.world.plan.Moves > 0 && h.lock.rename.script != nil && chance(c.moving, c.world.plan.Moves)
}

// moveByVote renames the lock, or copies it and uses the copy. It returns false if the client does not go on using the
// lock.
func (c *client) moveByVote(h *votedHold) bool {
	w, k := c.world, &c.world.checker
	lock := h.promises[0]
	name := resourceName(c.moving.IntN(w.plan.Resources))
	s := pick(c.moving, &h.lock.rename, &h.lock.copy)
	renames := s == &h.lock.rename
	if name == lock.resource || w.plan.key(name).DB != w.plan.key(lock.resource).DB {
		return true
	}
	moved := *h
	moved.names, moved.promises = []string{name}, []*promise{{resource: name, token: h.token, client: c}}
	both := moved
	both.names = []string{lock.resource, name}
	began, slept := w.now(), w.asleep()
	var before []promise
	w.do(func() {
		k.voted[h.token] = true
		before = append(before, *lock)
		lock.over = lock.over || renames // deleted keys stay deleted, even where no quorum agrees
	})
	gone := false
	granted, _, _ := c.askByVote(s, &both, func(l *life, r quorum.Ran, granted bool) {
		k.moved(&both, l, granted)
		switch {
		case granted:
			k.forgets(moved.names, h.token)
			told := moved
			told.ttl = time.Duration(r.Reply.Int) * time.Millisecond
			c.promiseByVote(&told, r, began, slept)
		case r.Err == nil && r.Reply.Int == notMine:
			gone = true
			c.goneByVote(h, before, "a script that moves it")
		}
	})
	switch {
	case granted && renames:
		*h = moved
	case granted:
		c.useByVote(&moved)
	case renames:
		w.do(func() { k.astray[h.token] = true })
	}
	return !gone && (granted || !renames)
}

// moved notes the outcome of a move. A client with one token for everything may have the lock by another attempt, by an
// earlier move, or by a copy.
func (k *checker) moved(both *votedHold, l *life, granted bool) {
	id := both.names[1] + " " + both.token
	if f := k.attempts[id]; both.names[1] != both.taken && !both.promises[0].client.keeps && (f == nil || f.failed) {
		k.attempt(id, fate{life: l, failed: !granted})
	}
}

func cmdRename(s *server, c *session, args []string) reply {
	it, ok := s.get(c, args[1])
	if !ok {
		return fault("ERR no such key")
	}
	s.remove(c, args[1])
	s.moved(c, args[2], it)
	return status("OK")
}

func cmdCopy(s *server, c *session, args []string) reply {
	it, ok := s.get(c, args[1])
	_, taken := s.get(c, args[2])
	switch {
	case args[1] == args[2]:
		return fault("ERR source and destination objects are the same")
	case !ok || taken:
		return int64(0)
	}
	s.moved(c, args[2], it)
	return int64(1)
}

// moved sets a key with the expiry of another key. The expiry was checked when it was chosen.
func (s *server) moved(c *session, key string, it item) {
	it.by = c.life
	s.store.do(mutation{at: s.now(), db: c.db, kind: put, key: key, item: it})
}

package sim

import (
	"time"

	"lockproxy/quorum"
)

// Clients of another kind: they take a lock by MULTI, SETNX, EXPIRE, EXEC, or release it by WATCH, GET, MULTI, DEL,
// EXEC. All rules hold for them as for the others.

// patience is how many InstanceTimeouts an EXEC takes at most: ten until the last try begins, and a try is two rounds and an undo.
const patience = 14

// take chooses how to make an attempt, and returns its longest duration in InstanceTimeouts.
func (c *client) take(req quorum.AcquireRequest) (func(*quorum.Engine, func(quorum.Acquired)), int) {
	if req.Fenced {
		return func(e *quorum.Engine, done func(quorum.Acquired)) { e.Acquire(req, done) }, 4 // three rounds and an undo
	}
	if req.WantHolder {
		return func(e *quorum.Engine, done func(quorum.Acquired)) { e.Acquire(req, done) }, 3 // a round, an undo, and a look at the holder
	}
	if req.Reentrant || !chance(c.rng, c.world.plan.Transactions) {
		return func(e *quorum.Engine, done func(quorum.Acquired)) { e.Acquire(req, done) }, 2
	}
	return func(e *quorum.Engine, done func(quorum.Acquired)) {
		e.Exec(quorum.ExecRequest{DB: req.Key.DB, Keys: []string{req.Key.Name}, Plan: func(now []quorum.View) []quorum.Edit {
			if now[0].Exists {
				return nil
			}
			return []quorum.Edit{{Kind: quorum.Put, Value: req.Token, TTL: req.TTL}}
		}}, func(x quorum.Executed) {
			done(quorum.Acquired{Err: x.Err, Lock: x.Lock, Refused: x.Err == nil && x.Lock == nil})
		})
	}, patience * (1 + c.world.plan.Clients) // transactions on one resource have their turns
}

// give chooses how to release a lock.
func (c *client) give(name, token string) func(*quorum.Engine, func(quorum.Released)) {
	key := c.world.plan.key(name)
	// With a constant token a transaction that comes late takes the next client's lock, as on Redis.
	if c.constant || !chance(c.rng, c.world.plan.Transactions) {
		return func(e *quorum.Engine, done func(quorum.Released)) { e.Release(key, token, done) }
	}
	return func(e *quorum.Engine, done func(quorum.Released)) {
		held, absent := false, false
		e.Exec(quorum.ExecRequest{DB: c.world.plan.key(name).DB, Keys: []string{name}, Plan: func(now []quorum.View) []quorum.Edit {
			if held, absent = now[0].Value == token, !now[0].Exists; !held {
				return nil
			}
			return []quorum.Edit{{Kind: quorum.Delete}}
		}}, func(x quorum.Executed) {
			done(quorum.Released{Err: x.Err, Held: x.Done && held, Absent: absent})
		})
	}
}

// swap is GETSET: the resource has another value afterwards, whoever holds it.
func (c *client) swap(name, value string, ttl time.Duration) {
	_, _ = ask(c.proxy, func(*life, quorum.Executed) {}, func(e *quorum.Engine, done func(quorum.Executed)) {
		e.Exec(quorum.ExecRequest{DB: c.world.plan.key(name).DB, Keys: []string{name}, Plan: func([]quorum.View) []quorum.Edit {
			return []quorum.Edit{{Kind: quorum.Put, Value: value, TTL: ttl}}
		}}, done)
	})
}

package resp

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

// tokenBytes is the size of LOCK's own tokens, in bytes before the hex encoding.
const tokenBytes = 16

// waitMax is the longest WAIT of LOCK.
const waitMax = 24 * time.Hour

func runLock(c *call) Reply {
	ttl, refused := lockTTL(c, c.args[2])
	if refused != nil {
		return refused
	}
	o, refused := parseLockOptions(c.args[3:])
	if refused != nil {
		return refused
	}
	if o.token == "" {
		o.token = randomHex(tokenBytes)
	}
	if o.hold && c.session.holds.full() {
		return errHoldsMax
	}
	// overlapNone: later commands of the client on this key rely on the lock, and on its fence.
	sl := c.claim(overlapNone, c.args[1], func(out *outcome) Reply {
		if out.done == 0 {
			return Null{}
		}
		return Map{Bulk("token"), Bulk(o.token), Bulk("fence"), Int(out.fence), Bulk("validity"), Int(out.ttl.Milliseconds())}
	})
	if sl == nil {
		return nil
	}
	sl.waits, sl.token = o.wait > 0 || o.hold, o.token
	req, done := quorum.AcquireRequest{Key: c.key(c.args[1]), Token: o.token, TTL: ttl, Fenced: true}, sl.acquired
	if o.hold {
		h := c.session.holds.expect(req)
		if h == nil {
			sl.acquired(quorum.Acquired{Err: errMemory})
			return nil
		}
		sl.hold, req = h, h.req
		done = func(a quorum.Acquired) {
			h.acquired(a)
			sl.acquired(a)
		}
	}
	if o.wait > 0 {
		awaitLock(c, sl, req, o.wait, done)
	} else {
		req.Insist = sl.insist
		c.server.engine.Acquire(req, done)
	}
	return nil
}

// lockTTL reads the TTL of LOCK and EXTEND. A TTL that leaves no validity is an error: a LOCK would wait in vain, and an EXTEND
// would shorten the lock. (SET … NX has no error for a short TTL, and is refused as if somebody held the lock.)
func lockTTL(c *call, text string) (time.Duration, Reply) {
	ttl, refused := readTTL(c.cmd.full, c.server.cfg.TTLMax, millis, text)
	if refused == nil && ttl < c.server.cfg.TTLMin {
		refused = errTTLMin(ttl, c.server.cfg.TTLMin)
	}
	return ttl, refused
}

type lockOptions struct {
	token string
	wait  time.Duration
	hold  bool
}

func parseLockOptions(args []string) (o lockOptions, refused Reply) {
	for i := 0; i < len(args); i++ {
		switch opt := args[i]; {
		case wire.EqualFold(opt, "token") && i+1 < len(args):
			i++
			if o.token = args[i]; o.token == "" {
				return o, Error("ERR LOCK needs a TOKEN that is not empty; leave it out to have one made")
			}
		case wire.EqualFold(opt, "wait") && i+1 < len(args):
			i++
			ms, ok := wire.ParseInt(args[i])
			if !ok {
				return o, errNotInt
			}
			if ms < 0 || ms > waitMax.Milliseconds() {
				return o, errWaitRange
			}
			o.wait = time.Duration(ms) * time.Millisecond
		case wire.EqualFold(opt, "hold"):
			o.hold = true
		default:
			return o, errSyntax
		}
	}
	return o, nil
}

// awaitLock acquires when the client's turn has come.
func awaitLock(c *call, sl *slot, req quorum.AcquireRequest, patience time.Duration, done func(quorum.Acquired)) {
	s := c.session
	if c.server.cfg.Audit != nil {
		granted := done
		done = func(a quorum.Acquired) {
			if a.Lock == nil {
				s.tell(Event{What: Refused, Key: req.Key, Token: req.Token, Cause: refusalOf(a)})
			}
			granted(a)
		}
	}
	sl.timing.forget() // a wait in line is not slow
	done = s.waits.begin(sl, done)
	c.session.waits.entered(sl, c.server.gates.Acquire(req, patience, done))
}

// runUnlock is for DELIFEQ, too.
func runUnlock(c *call) Reply {
	return release(c, c.args[1], c.args[2], script.Alien{}, counted)
}

// release gives a lock back, for UNLOCK, other commands and scripts. HOLD of this connection no longer extends the lock,
// even if the release fails.
func release(c *call, name, token string, alien script.Alien, answer func(*outcome) Reply) Reply {
	return c.begin(overlapAny, name, answer, func(sl *slot) {
		sl.alien = alien
		//mutant: a held lock that was given back is extended
		c.session.holds.end(sl.key, token)
		c.server.release(sl.key, token, c.session.tellReleased(Event{Key: sl.key, Token: token}, sl.released))
	})
}

func runExtend(c *call) Reply {
	ttl, refused := lockTTL(c, c.args[3])
	if refused != nil {
		return refused
	}
	return extend(c, quorum.ExtendRequest{Key: c.key(c.args[1]), Token: c.args[2], TTL: ttl, Fenced: true}, script.Alien{}, func(o *outcome) Reply {
		if o.done == 0 {
			return Int(0)
		}
		return Int(o.ttl.Milliseconds())
	})
}

func extend(c *call, req quorum.ExtendRequest, alien script.Alien, answer func(*outcome) Reply) Reply {
	o := overlapLater
	if req.Add {
		o = overlapNone
	}
	return c.begin(o, req.Key.Name, answer, func(sl *slot) {
		sl.alien, sl.token = alien, req.Token
		if h := c.session.holds.find(req.Key, req.Token); h != nil {
			h.extendBy(req, sl.extended)
		} else {
			c.server.engine.Extend(req, sl.extended)
		}
	})
}

// runFence answers 1 if a quorum knows the number as the newest fence of the key, else 0.
func runFence(c *call) Reply {
	n, ok := wire.ParseInt(c.args[2])
	if !ok {
		return errNotInt
	}
	return c.begin(overlapAny, c.args[1], counted, func(sl *slot) {
		c.server.engine.Fence(sl.key, func(v quorum.FenceView) {
			//mutant: an older fence is the newest
			sl.resolve(outcome{err: v.Err, done: count(n > 0 && v.Fence == n)})
		})
	})
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b)
}

package resp

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"lockproxy/quorum"
)

// tokenBytes is the size of the tokens that LOCK makes, in bytes before they are written as hex.
const tokenBytes = 16

func runLock(c *call) Reply {
	ttl, refused := c.lockTTL(c.args[2])
	if refused != nil {
		return refused
	}
	token, refused := parseLockOptions(c.args[3:])
	if refused != nil {
		return refused
	}
	if token == "" {
		token = randomHex(tokenBytes)
	}
	sl := c.claim(oneRound, c.args[1], func(o *outcome) Reply {
		if o.done == 0 {
			return Null{}
		}
		return Map{Bulk("token"), Bulk(token), Bulk("validity"), Remaining(o.until)}
	})
	if sl == nil {
		return wait
	}
	c.engine().Acquire(quorum.AcquireRequest{Key: c.key(c.args[1]), Token: token, TTL: ttl}, sl.acquired)
	return later
}

func parseLockOptions(args []string) (token string, refused Reply) {
	for i := 0; i < len(args); i++ {
		switch opt := args[i]; {
		case equalFold(opt, "token") && i+1 < len(args):
			i++
			if token = args[i]; token == "" {
				return "", Error("ERR LOCK needs a TOKEN that is not empty; leave it out to have one made")
			}
		case equalFold(opt, "wait") && i+1 < len(args), equalFold(opt, "hold"):
			return "", Error("ERR LOCK does not support " + upper(opt) + " yet; ask again until the lock is free")
		default:
			return "", errSyntax
		}
	}
	return token, nil
}

func runDelIfEqual(c *call) Reply { return c.release(c.args[1], c.args[2], counted) }

func runUnlock(c *call) Reply { return c.release(c.args[1], c.args[2], counted) }

func (c *call) release(name, token string, answer func(*outcome) Reply) Reply {
	sl := c.claim(oneRound, name, answer)
	if sl == nil {
		return wait
	}
	c.engine().Release(c.key(name), token, sl.released)
	return later
}

func runExtend(c *call) Reply {
	ttl, refused := c.lockTTL(c.args[3])
	if refused != nil {
		return refused
	}
	return c.extend(quorum.ExtendRequest{Key: c.key(c.args[1]), Token: c.args[2], TTL: ttl}, func(o *outcome) Reply {
		if o.done == 0 {
			return Int(0)
		}
		return Remaining(o.until)
	})
}

func (c *call) extend(req quorum.ExtendRequest, answer func(*outcome) Reply) Reply {
	sl := c.claim(oneRound, req.Key.Name, answer)
	if sl == nil {
		return wait
	}
	c.engine().Extend(req, sl.extended)
	return later
}

// lockTTL reads a TTL in milliseconds.
func (c *call) lockTTL(text string) (time.Duration, Reply) { return c.setTTL(millis, text) }

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b)
}

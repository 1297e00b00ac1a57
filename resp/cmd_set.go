package resp

import (
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// setOptions are the options of SET as the client gave them.
type setOptions struct {
	nx, xx, get, keepTTL bool
	expires              bool
	expiry               expiry
	amount               string
	compare              comparison
	operand              string // of compare
}

// A comparison is a condition of SET on the key's value, as of Redis 8.4.
type comparison uint8

const (
	compareNone  comparison = iota
	compareEqual            // IFEQ
	compareOther            // IFNE
)

// parseSetOptions reads SET's options in any order and case. As in Redis, an option may be repeated but not contradicted, and
// numbers are checked after all options have proved well formed.
func parseSetOptions(args []string) (setOptions, bool) {
	var o setOptions
	for i := 0; i < len(args); i++ {
		conditional := o.nx || o.xx || o.compare != compareNone
		switch opt := cString(args[i]); {
		case wire.EqualFold(opt, "nx") && (!conditional || o.nx):
			o.nx = true
		case wire.EqualFold(opt, "xx") && (!conditional || o.xx):
			o.xx = true
		case wire.EqualFold(opt, "ifeq") && !conditional && i+1 < len(args):
			i++
			o.compare, o.operand = compareEqual, args[i]
		case wire.EqualFold(opt, "ifne") && !conditional && i+1 < len(args):
			i++
			o.compare, o.operand = compareOther, args[i]
		case wire.EqualFold(opt, "get"):
			o.get = true
		case wire.EqualFold(opt, "keepttl") && !o.expires:
			o.keepTTL = true
		default:
			if i++; o.keepTTL || !o.expire(opt, args[i:]) {
				return o, false
			}
		}
	}
	return o, true
}

// expire takes an option and the number behind the option. expire returns false if the option is no expiry, lacks the number, or
// contradicts an earlier expiry.
func (o *setOptions) expire(opt string, args []string) bool {
	e, ok := expiryOption(opt)
	if !ok || o.expires && e != o.expiry || len(args) == 0 {
		return false
	}
	o.expires, o.expiry, o.amount = true, e, args[0]
	return true
}

// ttl returns the TTL in the options, or else ttlMax.
func (o *setOptions) ttl(command string, ttlMax time.Duration) (time.Duration, Reply) {
	if !o.expires {
		return ttlMax, nil
	}
	return readTTL(command, ttlMax, o.expiry, o.amount)
}

func runSet(c *call) Reply {
	o, ok := parseSetOptions(c.args[3:])
	if !ok {
		return errSyntax
	}
	ttl, refused := o.ttl(c.cmd.full, c.server.cfg.TTLMax)
	if refused != nil {
		return refused
	}
	switch {
	case o.compare != compareNone:
		return runPlanned(c)
	case o.nx && o.get:
		return acquire(c, quorum.AcquireRequest{TTL: ttl, WantHolder: true}, nullOrHolder)
	case o.nx:
		return acquire(c, quorum.AcquireRequest{TTL: ttl}, okOrNull)
	case ttl <= 0:
		return setExpired(c, o)
	}
	return writeKey(c, quorum.WriteRequest{Value: c.args[2], TTL: ttl, KeepTTL: o.keepTTL, WantOld: o.get, IfExists: o.xx})
}

// acquire takes args[1] for the token args[2].
func acquire(c *call, req quorum.AcquireRequest, answer func(*outcome) Reply) Reply {
	return c.begin(overlapAny, c.args[1], answer, func(sl *slot) {
		switch past := req.TTL <= 0; { // a Unix time in the past: nothing can be held until then
		case past && req.WantHolder:
			c.server.engine.Get(sl.key, func(v quorum.View) {
				sl.acquired(quorum.Acquired{Err: v.Err, Refused: v.Err == nil, Holder: v.Value})
			})
		case past:
			sl.acquired(quorum.Acquired{Refused: true})
		default:
			req.Key, req.Token, req.Insist = sl.key, c.args[2], sl.insist
			sl.token = req.Token
			c.server.engine.Acquire(req, sl.acquired)
		}
	})
}

// writeKey sets args[1].
func writeKey(c *call, req quorum.WriteRequest) Reply {
	o, answer := overlapAny, okOrNull
	if req.IfExists || req.KeepTTL || req.WantOld {
		o = overlapNone
	}
	if req.WantOld {
		answer = oldValue
	}
	return c.begin(o, c.args[1], answer, func(sl *slot) {
		req.Key = sl.key
		done := sl.written
		if held := c.session.holds.endUnless(req.Key, req.Value); held {
			s := c.session
			done = func(w quorum.Written) {
				if w.Done && !req.KeepTTL {
					s.holds.setTTL(req.Key, req.TTL)
				}
				sl.written(w)
			}
		}
		c.server.engine.Write(req, done)
	})
}

// setExpired is SET with a Unix time in the past: the key is removed. With GET, the old value is read and removed at one
// moment.
func setExpired(c *call, o setOptions) Reply {
	if o.get {
		return runPlanned(c)
	}
	answer := okOrNull
	if !o.xx {
		answer = func(*outcome) Reply { return okReply }
	}
	return c.begin(overlapNone, c.args[1], answer, func(sl *slot) {
		c.session.holds.endUnless(sl.key, "")
		c.server.engine.Remove(sl.key, sl.changed)
	})
}

// nullOrHolder answers SET NX GET. Null means an acquired lock, so a refusal is never null, even if the holder is
// unknown.
func nullOrHolder(o *outcome) Reply {
	if o.done > 0 {
		return Null{}
	}
	return Bulk(o.text)
}

func okOrNull(o *outcome) Reply {
	if o.done > 0 {
		return okReply
	}
	return Null{}
}

func oldValue(o *outcome) Reply {
	if o.hasOld {
		return Bulk(o.text)
	}
	return Null{}
}

func counted(o *outcome) Reply { return Int(o.done) }

func runSetNX(c *call) Reply {
	return acquire(c, quorum.AcquireRequest{TTL: c.server.cfg.TTLMax}, counted)
}

func runSetEX(e expiry) func(*call) Reply {
	return func(c *call) Reply {
		ttl, refused := readTTL(c.cmd.full, c.server.cfg.TTLMax, e, c.args[2])
		if refused != nil {
			return refused
		}
		return writeKey(c, quorum.WriteRequest{Value: c.args[3], TTL: ttl})
	}
}

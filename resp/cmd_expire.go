package resp

import (
	"slices"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

func runExpire(e expiry) func(*call) Reply {
	return func(c *call) Reply {
		ttl, condition, refused := readExpire(c.cmd.full, c.server.cfg.TTLMax, e, c.args)
		if refused != nil {
			return refused
		}
		return setRemaining(c, ttl, condition)
	}
}

// readExpire reads the arguments of EXPIRE and its variants: first the options, then the number, as Redis does.
func readExpire(command string, ttlMax time.Duration, e expiry, args []string) (time.Duration, quorum.ExpireCondition, Reply) {
	condition, refused := parseExpireOptions(args[3:])
	if refused != nil {
		return 0, 0, refused
	}
	n, ok := wire.ParseInt(args[2])
	if !ok {
		return 0, 0, errNotInt
	}
	ttl, ok := e.ttl(n, time.Now)
	if !ok {
		return 0, 0, errExpire(command)
	}
	return ttl, condition, e.checkMax(args[2], ttl, ttlMax)
}

// runPersist gives the key the longest TTL there is: without a TTL, the key of a forgotten owner would stay for ever.
func runPersist(c *call) Reply { return setRemaining(c, c.server.cfg.TTLMax, 0) }

func setRemaining(c *call, ttl time.Duration, condition quorum.ExpireCondition) Reply {
	return c.begin(overlapNone, c.args[1], counted, func(sl *slot) {
		s, key := c.session, sl.key
		done := func(changed quorum.Changed) {
			if changed.Applied {
				s.holds.setTTL(key, ttl)
				s.tell(Event{What: Extended, Key: key})
			}
			sl.changed(changed)
		}
		if ttl <= 0 && condition&(quorum.IfNoTTL|quorum.IfGreater) == 0 { // the lock is deleted: each lock has a TTL, so only NX and GT keep the lock
			c.session.holds.endUnless(key, "")
		}
		c.server.engine.Expire(quorum.ExpireRequest{Key: key, TTL: ttl, Condition: condition}, done)
	})
}

func parseExpireOptions(args []string) (quorum.ExpireCondition, Reply) {
	var cond quorum.ExpireCondition
	for _, arg := range args {
		opt := cString(arg)
		switch wire.Lower(opt) {
		case "nx":
			cond |= quorum.IfNoTTL
		case "xx":
			cond |= quorum.IfTTL
		case "gt":
			cond |= quorum.IfGreater
		case "lt":
			cond |= quorum.IfLess
		default:
			return 0, errUnsupportedOption(opt)
		}
	}
	switch {
	case cond&quorum.IfNoTTL != 0 && cond != quorum.IfNoTTL:
		return 0, Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	case cond&quorum.IfGreater != 0 && cond&quorum.IfLess != 0:
		return 0, Error("ERR GT and LT options at the same time are not compatible")
	}
	return cond, nil
}

// runDel removes each name once, also a name given several times.
func runDel(c *call) Reply {
	names := slices.Compact(slices.Sorted(slices.Values(c.args[1:])))
	sl := c.claimPieces(overlapNone, names, len(names), counted)
	if sl == nil {
		return nil
	}
	changed := sl.changed // the slot is not ours any more once the last outcome has come
	for _, name := range names {
		c.session.holds.endUnless(c.key(name), "")
	}
	s, db := c.session, c.session.identity.db
	c.server.engine.RemoveAll(db, names, func(name string, is quorum.Changed) {
		if is.Applied {
			s.tell(Event{What: Deleted, Key: quorum.Key{DB: db, Name: name}, Token: is.Token})
		}
		changed(is)
	})
	return nil
}

package resp

import (
	"time"
)

func runGet(c *call) Reply { return c.get(valueOrNull) }

func runStrlen(c *call) Reply {
	return c.get(func(o *outcome) Reply { return Int(len(o.text)) })
}

func (c *call) get(answer func(*outcome) Reply) Reply {
	sl := c.claim(oneRound, c.args[1], answer)
	if sl == nil {
		return wait
	}
	c.engine().Get(c.key(c.args[1]), sl.viewed)
	return later
}

func valueOrNull(o *outcome) Reply {
	if o.done > 0 {
		return Bulk(o.text)
	}
	return Null{}
}

// runExists counts, as Redis does, a name that is given twice as two.
func runExists(c *call) Reply {
	names := c.args[1:]
	sl := c.claimAll(oneRound, names, counted)
	if sl == nil {
		return wait
	}
	for _, name := range names {
		c.engine().Read(c.key(name), sl.viewed)
	}
	return later
}

func runType(c *call) Reply {
	return c.read(func(o *outcome) Reply {
		if o.done == 0 {
			return Status("none")
		}
		return Status(o.kind)
	})
}

// The answers of the TTL family for a key that nobody holds; one without a TTL (−1) does not occur.
const noKey = Int(-2)

func runTTL(c *call) Reply {
	return c.readTTL(func(ms int64) Int { return Int((ms + 500) / 1000) })
}

func runPTTL(c *call) Reply {
	return c.readTTL(func(ms int64) Int { return Int(ms) })
}

func runExpireTime(c *call) Reply {
	return c.readTTL(func(ms int64) Int { return Int((time.Now().UnixMilli() + ms + 500) / 1000) })
}

func runPExpireTime(c *call) Reply {
	return c.readTTL(func(ms int64) Int { return Int(time.Now().UnixMilli() + ms) })
}

func (c *call) readTTL(reply func(ms int64) Int) Reply {
	return c.read(func(o *outcome) Reply {
		if o.done == 0 {
			return noKey
		}
		return reply(o.ttl.Milliseconds())
	})
}

func (c *call) read(answer func(*outcome) Reply) Reply {
	sl := c.claim(oneRound, c.args[1], answer)
	if sl == nil {
		return wait
	}
	c.engine().Read(c.key(c.args[1]), sl.viewed)
	return later
}

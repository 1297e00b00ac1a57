package resp

import (
	"time"

	"lockproxy/quorum"
)

func runGet(c *call) Reply { return c.look(Engine.Get, valueOrNull) }

func runStrlen(c *call) Reply {
	return c.look(Engine.Get, func(o *outcome) Reply { return Int(len(o.text)) })
}

// runGetRange cuts as Redis does: both ends are included, and negative ones count from the end of the value.
func runGetRange(c *call) Reply {
	start, end, refused := rangeOf(c.args)
	if refused != nil {
		return refused
	}
	return c.look(Engine.Get, func(o *outcome) Reply { return Bulk(cut(o.text, start, end)) })
}

func rangeOf(args []string) (start, end int64, refused Reply) {
	start, ok1 := parseInt(args[2])
	end, ok2 := parseInt(args[3])
	if !ok1 || !ok2 {
		return 0, 0, errNotInt
	}
	return start, end, nil
}

func cut(s string, start, end int64) string {
	n := int64(len(s))
	if start < 0 && end < 0 && start > end {
		return ""
	}
	if start < 0 {
		start = max(0, start+n)
	}
	if end < 0 {
		end = max(0, end+n)
	}
	end = min(end, n-1)
	if start > end {
		return ""
	}
	return s[start : end+1]
}

// look reads the key by Engine.Get, which is for strings, or Engine.Read.
func (c *call) look(read func(Engine, quorum.Key, func(quorum.View)), answer func(*outcome) Reply) Reply {
	return c.begin(overlapAny, c.args[1], answer, func(sl *slot) { read(c.engine(), sl.key, sl.viewed) })
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
	sl := c.claimAll(overlapAny, names, counted)
	if sl == nil {
		return wait
	}
	for _, name := range names {
		c.engine().Read(c.key(name), sl.viewed)
	}
	return later
}

func runType(c *call) Reply {
	return c.look(Engine.Read, func(o *outcome) Reply {
		if o.done == 0 {
			return Status("none")
		}
		return Status(o.kind)
	})
}

// The answers of the TTL family for a key that nobody holds; one without a TTL (−1) does not occur.
const noKey = Int(-2)

func inSeconds(ms int64, _ time.Time) Int         { return Int((ms + 500) / 1000) }
func inMillis(ms int64, _ time.Time) Int          { return Int(ms) }
func asUnixSeconds(ms int64, asked time.Time) Int { return inSeconds(asked.UnixMilli()+ms, asked) }
func asUnixMillis(ms int64, asked time.Time) Int  { return Int(asked.UnixMilli() + ms) }

// runTTL counts from when it was asked, so that an instant is never later than the masters tell.
func runTTL(reply func(ms int64, asked time.Time) Int) func(*call) Reply {
	return func(c *call) Reply {
		asked := time.Now()
		return c.look(Engine.Read, func(o *outcome) Reply {
			if o.done == 0 {
				return noKey
			}
			return reply(o.ttl.Milliseconds(), asked)
		})
	}
}

package resp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

func runGet(c *call) Reply {
	return c.begin(overlapAny, c.args[1], valueOrNull, func(sl *slot) { c.server.engine.Get(sl.key, sl.viewed) })
}

func runStrlen(c *call) Reply {
	return peek(c, func(v *quorum.View) Reply {
		if v.Exists && v.Type != "string" {
			return errWrongType
		}
		return Int(v.Length)
	})
}

// runGetRange asks for the part alone.
func runGetRange(c *call) Reply {
	if _, _, refused := rangeOf(c.args); refused != nil {
		return refused
	}
	return askMasters(c, quorum.AskRequest{Part: true}, func(r any) Reply {
		part, _ := r.(string)
		return Bulk(part)
	})
}

func rangeOf(args []string) (start, end int64, refused Reply) {
	start, ok1 := wire.ParseInt(args[2])
	end, ok2 := wire.ParseInt(args[3])
	if !ok1 || !ok2 {
		return 0, 0, errNotInt
	}
	return start, end, nil
}

// cut is GETRANGE as in Redis: start and end are included, and a negative index counts from the end of the value.
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

// peek reads all of a key's state except the value.
func peek(c *call, answer func(*quorum.View) Reply) Reply {
	return begunInPieces(c, c.args[1:2], func(sl *slot, names []string) {
		c.server.engine.Peek(sl.key.DB, names, func(views []quorum.View, err error) {
			o := outcome{err: err, done: 1}
			if err == nil {
				o.reply = answer(&views[0])
			}
			sl.resolve(o)
		})
	})
}

// begunInPieces begins a read of several different keys with one outcome, the reply.
func begunInPieces(c *call, names []string, run func(sl *slot, names []string)) Reply {
	names = slices.Clone(names)
	sl := c.claimPieces(overlapAny, names, 1, made)
	if sl == nil {
		return nil
	}
	run(sl, names)
	return nil
}

// runMGet answers null for a key of another type than string.
func runMGet(c *call) Reply {
	given := slices.Clone(c.args[1:])
	limits := &c.server.cfg.Limits
	return begunInPieces(c, distinct(given), func(sl *slot, names []string) {
		req := quorum.GetAllRequest{DB: sl.key.DB, Names: names, Most: limits.Output - len(given)*mgetOverhead}
		c.server.engine.GetAll(req, func(views []quorum.View, err error) {
			if tooLong, ok := errors.AsType[*quorum.TooLong](err); ok {
				err = fmt.Errorf("ERR %w, which max_output (%s) has room for: ask for fewer keys at a time, or raise max_output",
					tooLong, wire.SizeText(limits.Output))
			}
			o := outcome{err: err, done: 1}
			if err == nil {
				o.reply = valuesOf(given, indexed(names), views)
			}
			sl.resolve(o)
		})
	})
}

// mgetOverhead is a value's size in a reply beside the value's bytes.
const mgetOverhead = 32

func valuesOf(given []string, names nameIndex, views []quorum.View) Reply {
	all := make(Array, len(given))
	for i, name := range given {
		if v := &views[names.index(name)]; v.Exists {
			all[i] = Bulk(v.Value)
		} else {
			all[i] = Null{}
		}
	}
	return all
}

func valueOrNull(o *outcome) Reply {
	if o.done > 0 {
		return Bulk(o.text)
	}
	return Null{}
}

// runExists counts a name given twice as two, as Redis does.
func runExists(c *call) Reply {
	given := slices.Clone(c.args[1:])
	return begunInPieces(c, distinct(given), func(sl *slot, names []string) {
		c.server.engine.Present(sl.key.DB, names, func(present []bool, err error) {
			if err != nil {
				sl.resolve(outcome{err: err})
				return
			}
			n, places := 0, indexed(names)
			for _, name := range given {
				n += count(present[places.index(name)])
			}
			sl.resolve(outcome{done: 1, reply: Int(n)})
		})
	})
}

func runType(c *call) Reply {
	return peek(c, func(v *quorum.View) Reply {
		if !v.Exists {
			return Status("none")
		}
		return Status(v.Type)
	})
}

// noKey is the TTL family's answer for a key that nobody holds. The answer for a key without a TTL, −1, does not occur.
const noKey = Int(-2)

func inSeconds(ms int64, _ time.Time) Int         { return Int((ms + 500) / 1000) }
func inMillis(ms int64, _ time.Time) Int          { return Int(ms) }
func asUnixSeconds(ms int64, asked time.Time) Int { return inSeconds(asked.UnixMilli()+ms, asked) }
func asUnixMillis(ms int64, asked time.Time) Int  { return Int(asked.UnixMilli() + ms) }

// runTTL counts from the command's arrival, so an instant is never later than the masters' answers.
func runTTL(reply func(ms int64, asked time.Time) Int) func(*call) Reply {
	return func(c *call) Reply {
		asked := time.Now()
		return peek(c, func(v *quorum.View) Reply {
			if !v.Exists {
				return noKey
			}
			return reply(v.TTL.Milliseconds(), asked)
		})
	}
}

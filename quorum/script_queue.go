package quorum

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A fair lock is granted by a master to whoever is first in its queue there. Clients that come through several proxies reach the
// masters in different orders, and a master that was away lacks places, or has some too many. Where then another is first on each
// master, nobody has a quorum, and the lock stays free until places time out. So who is refused looks who is first, and where
// it is not the same everywhere, all masters are told who is to be. Whoever sees the same queues tells the same. The lock itself does not
// hang on this: who holds it is in another key. What a queue may cost is a turn.

// A Queue is one of clients that wait, in the order in which they are to have a lock: KEYS[2] is a list of their fields in the hash
// KEYS[1], and KEYS[3] a sorted set of them by when their places time out.
type Queue struct {
	Wake string // is followed by a client's field in the name of the channel on which it is told that its turn has come
}

// luaQueue KEYS=a lock, its queue, when places time out. It returns who holds the lock, or the queue.
var luaQueue = newLua(`
local holder = redis.call('HKEYS', KEYS[1])[1]
return {holder or '', holder and {} or redis.call('LRANGE', KEYS[2], 0, -1)}`)

// luaFirst ARGV=who is to be first, the channel and the message that tell him. He stays away where he has no place. Those that he
// overtakes move one place back each: the n-th place times out when it did before.
var luaFirst = newLua(`
local queue, at = redis.call('LRANGE', KEYS[2], 0, -1), 0
for i, who in ipairs(queue) do
  if who == ARGV[1] then at = i break end
end
if redis.call('EXISTS', KEYS[1]) == 1 or at == 0 and #queue > 0 then return 0 end
if at > 1 then
  local function move(who, ends)
    local was = redis.call('ZSCORE', KEYS[3], who) or ends
    redis.call('ZADD', KEYS[3], ends, who)
    return was
  end
  local ends = redis.call('ZSCORE', KEYS[3], ARGV[1]) or redis.call('ZSCORE', KEYS[3], queue[at - 1])
  for i = at - 1, 1, -1 do ends = move(queue[i], ends) end
  move(ARGV[1], ends)
  redis.call('LREM', KEYS[2], 1, ARGV[1])
  redis.call('LPUSH', KEYS[2], ARGV[1])
end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`)

// luaLeave ARGV=who leaves the queue. Those behind him move one place up each.
var luaLeave = newLua(`
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return redis.call('LREM', KEYS[2], 0, ARGV[1]) end
local ends
for _, who in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  local was = redis.call('ZSCORE', KEYS[3], who)
  if ends then redis.call('ZADD', KEYS[3], ends, who) end
  if ends or who == ARGV[1] then ends = was end
end
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('LREM', KEYS[2], 0, ARGV[1])`)

// lineUp sees to it that the same is first on all masters, where the lock is free. If it is the caller, or it is not done
// yet, the script is run again.
func (r *voting) lineUp(otherwise func()) {
	e, me, quorum := r.engine, r.req.Rule.Field, Quorum(len(r.entries))
	r.pollQueue(luaQueue, func(p Polled) {
		who, everywhere := firstOf(p.Replies)
		switch {
		case everywhere && who == me:
			r.again()
		case everywhere:
			otherwise()
		default:
			r.pollQueue(luaFirst, func(p Polled) {
				done := 0
				for _, reply := range p.Replies {
					if reply == int64(1) {
						done++
					}
				}
				if done < quorum || who == me {
					r.again()
				} else {
					otherwise()
				}
			}, who, r.req.Rule.Queue.Wake+who, seal(e.labels.next(), 0, "0"))
		}
	})
}

// leave takes the caller, who has the lock, out of the queues of masters that refused it, or have yet to answer: he may not be first
// there. It is called before he is answered, so that his next place stays.
func (r *voting) leave() {
	r.pollQueue(luaLeave, func(Polled) {}, r.req.Rule.Field)
}

// pollQueue runs one of the above on all masters. It waits for each, so that two who ask at once see the same.
func (r *voting) pollQueue(l *lua, done func(Polled), argv ...any) {
	p := &polling{all: true, done: done}
	r.engine.begin(&p.round, p, Key{r.req.DB, r.req.Keys[0]}, l.whole(r.req.Keys[:3], argv...))
}

// A standing is how somebody stands in the queues of several masters.
type standing struct {
	who                           string
	holds, firsts, places, before int // has the lock; is first, or has it; has a place; is behind so many others, in all
}

// firstOf returns who is to be first, given the answers of luaQueue, and whether he is, wherever somebody waits: some of these
// masters may be in quarantine, so that a quorum of them may not be one. It is nobody where somebody has the lock, or nobody waits.
// Who has a place on few masters only may have given up.
func firstOf(replies []any) (who string, everywhere bool) {
	all, waiting := make(map[string]*standing), 0
	for _, reply := range replies {
		list, ok := reply.([]any)
		if !ok || len(list) != 2 {
			continue
		}
		queue, _ := list[1].([]any)
		holder, _ := list[0].(string)
		if holder != "" {
			queue = []any{holder}
		}
		if len(queue) > 0 {
			waiting++
		}
		for i, x := range queue {
			name, _ := x.(string)
			s := all[name]
			if s == nil {
				s = &standing{who: name}
				all[name] = s
			}
			if s.places, s.before = s.places+1, s.before+i; i == 0 {
				s.firsts++
			}
			if holder != "" {
				s.holds++
			}
		}
	}
	if waiting == 0 {
		return "", true
	}
	best := slices.MinFunc(slices.Collect(maps.Values(all)), func(a, b *standing) int {
		return cmp.Or(b.firsts-a.firsts, b.places-a.places, a.before-b.before, strings.Compare(a.who, b.who))
	})
	if best.holds >= Quorum(len(replies)) {
		return "", true
	}
	return best.who, best.firsts == waiting
}

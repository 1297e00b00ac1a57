package quorum

import (
	"math"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// A master grants a fair lock to the client that is first in the master's queue. The queues may differ: clients of several
// proxies reach the masters in different orders, and a master that was away lacks places, or has some too many. If each
// master has another client first, nobody gets a quorum, and the lock stays free until places time out.
//
// So a proxy whose client was refused reads all queues. If the masters differ in the first client, the proxy chooses a client
// (firstOf), and tells all masters to put the client first. Proxies that read the same queues choose the same client. The
// chosen client is told that its turn has come, even by masters on which the client was first already: the former holder may
// have told another client, or have died. No promise rests on the queue, because another key names the holder of the lock. A
// wrong queue costs a client its turn, and nothing else.

// luaQueue KEYS=a lock, its queue, the timeouts of places. It returns {holder, {}, remaining ms} of a held lock, and {"", the
// queue, 0} of a free lock.
var luaQueue = newLua(`
local holder = redis.call('HKEYS', KEYS[1])[1]
if holder then return {holder, {}, redis.call('PTTL', KEYS[1])} end
return {'', redis.call('LRANGE', KEYS[2], 0, -1), 0}`)

// luaFirst ARGV=the client to put first, the channel and the message that wake the client. A master changes nothing if only
// other clients wait there. Each client that is overtaken moves one place back. Timeouts stay with the places: the n-th place
// keeps its timeout.
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

// luaLeave ARGV=the client that leaves the queue. Each client behind moves one place up.
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

// A fairQueue is the queue of a fair lock, kept in order by a script that asks for the lock.
type fairQueue struct {
	of   *scriptRound
	free int64 // vote.FreeIn of the queues when last read
}

// lineUp puts the same client first on all masters, if the lock is free. The script is run again if the chosen client is the
// caller, or if too few masters have put the client first. In all other cases lineUp calls otherwise.
func (q *fairQueue) lineUp(otherwise func()) {
	q.poll(luaQueue, func(p Polled) {
		switch who, everywhere := q.first(p); {
		case who == "":
			otherwise()
		case everywhere && who == q.of.req.Rule.Field:
			q.of.again()
		default:
			q.putFirst(who, otherwise)
		}
	})
}

// first is vote.FirstOf for the masters' replies to luaQueue. It also sets free.
func (q *fairQueue) first(p Polled) (who string, everywhere bool) {
	q.free = vote.FreeIn(p.Replies)
	q.of.mu.Lock()
	grants := q.of.tally.Granted // all put back by now
	q.of.mu.Unlock()
	return vote.FirstOf(p.Replies, q.of.req.Rule.Field, grants)
}

// sooner returns a refusal after which the client asks again when the lock may be free. A master that had lost the client's
// place tells the client to wait as long as the clients before it. If the holder died then, or the first client of a free lock
// did, nothing might wake the client. A master that has the client's place tells the client to ask again sooner.
func (q *fairQueue) sooner(refusal vote.Value) vote.Value {
	switch {
	case refusal.Kind != vote.IntValue:
	case q.free > 0:
		refusal.Int = min(refusal.Int, q.free)
	case q.free == 0:
		//mutant: who waits for a lock that is free sleeps for as long as one master says
		refusal.Int = min(refusal.Int, q.leastTold())
	}
	return refusal
}

// leastTold returns the least integer with which a master refused the script.
func (q *fairQueue) leastTold() int64 {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	least := int64(math.MaxInt64)
	for _, a := range q.of.all {
		if a != nil && a.Vote == rules.Refused && a.Value.Kind == vote.IntValue {
			least = min(least, a.Value.Int)
		}
	}
	return least
}

// putFirst tells all masters the client to put first, and goes on as lineUp says.
func (q *fairQueue) putFirst(who string, otherwise func()) {
	q.tellFirst(who, func(p Polled) {
		done := 0
		for _, reply := range p.Replies {
			if reply == int64(1) {
				done++
			}
		}
		if done < rules.Quorum(len(q.of.entries)) || who == q.of.req.Rule.Field {
			q.of.again()
		} else {
			otherwise()
		}
	})
}

// wakeFirst is for a script that may not be run again. If the lock is free, the client to put first, even the caller, is told
// to ask anew: each client was told to wait for grants of others, and all these grants may be put back by now. At the end
// wakeFirst calls then.
func (q *fairQueue) wakeFirst(then func()) {
	q.poll(luaQueue, func(p Polled) {
		if who, _ := q.first(p); who != "" {
			q.tellFirst(who, func(Polled) { then() })
		} else {
			then()
		}
	})
}

// tellFirst has all masters put a client first, and wake the client.
func (q *fairQueue) tellFirst(who string, done func(Polled)) {
	q.poll(luaFirst, done, who, q.of.req.Rule.Queue.Wake+who, seal(q.of.engine.labels.next(), 0, "0"))
}

// leave takes the caller, which now has the lock, out of all queues: masters that refused the caller, or have yet to answer,
// may still list the caller. leave is called before the caller gets the answer, so that a place taken afterwards stays.
func (q *fairQueue) leave() {
	q.poll(luaLeave, func(Polled) {}, q.of.req.Rule.Field)
}

// poll runs a script of this file on all masters, and waits for each master, so that proxies that ask at once see the same
// queues.
func (q *fairQueue) poll(l *lua, done func(Polled), argv ...any) {
	p := &pollRound{all: true, changes: true, done: done}
	begin(q.of.engine, p, Key{q.of.req.DB, q.of.req.Keys[0]}, l.whole(q.of.req.Keys[:3], argv...))
}

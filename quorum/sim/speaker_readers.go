package sim

import (
	"fmt"
	"time"
)

// Speaking clients that take locks which readers share, in worlds of the class Moved, too. The scripts are those of
// Redisson's RReadWriteLock. A lock is a hash. Each hold of a reader has a key beside the lock, whose name the script
// makes, and whose TTL is the hold's. All holds have one TTL, as with Redisson: a reader that renews its hold renews
// all.
const (
	readText = "local mode = redis.call('hget', KEYS[1], 'mode'); " +
		"if (mode == false) then redis.call('hset', KEYS[1], 'mode', 'read'); redis.call('hset', KEYS[1], ARGV[2], 1); " +
		"redis.call('set', KEYS[2] .. ':1', 1); redis.call('pexpire', KEYS[2] .. ':1', ARGV[1]); " +
		"redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; " +
		"if (mode == 'read') or (mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 1) then " +
		"local ind = redis.call('hincrby', KEYS[1], ARGV[2], 1); " +
		"local key = KEYS[2] .. ':' .. ind;redis.call('set', key, 1); redis.call('pexpire', key, ARGV[1]); " +
		"local remainTime = redis.call('pttl', KEYS[1]); redis.call('pexpire', KEYS[1], math.max(remainTime, ARGV[1])); " +
		"return nil; end;return redis.call('pttl', KEYS[1]);"
	rereadText = "local counter = redis.call('hget', KEYS[1], ARGV[2]); if (counter ~= false) then redis.call('pexpire', KEYS[1], ARGV[1]); " +
		"if (redis.call('hlen', KEYS[1]) > 1) then local keys = redis.call('hkeys', KEYS[1]); " +
		"for n, key in ipairs(keys) do counter = tonumber(redis.call('hget', KEYS[1], key)); " +
		"if type(counter) == 'number' then for i=counter, 1, -1 do " +
		"redis.call('pexpire', KEYS[2] .. ':' .. key .. ':rwlock_timeout:' .. i, ARGV[1]); end; end; end; end; return 1; end; return 0;"
	unreadText = "local mode = redis.call('hget', KEYS[1], 'mode'); if (mode == false) then redis.call('publish', KEYS[2], ARGV[1]); " +
		"return 1; end; local lockExists = redis.call('hexists', KEYS[1], ARGV[2]); " +
		"if (lockExists == 0) then return nil;end; local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1); " +
		"if (counter == 0) then redis.call('hdel', KEYS[1], ARGV[2]); end;redis.call('del', KEYS[3] .. ':' .. (counter+1)); " +
		"if (redis.call('hlen', KEYS[1]) > 1) then local maxRemainTime = -3; local keys = redis.call('hkeys', KEYS[1]); " +
		"for n, key in ipairs(keys) do counter = tonumber(redis.call('hget', KEYS[1], key)); " +
		"if type(counter) == 'number' then for i=counter, 1, -1 do " +
		"local remainTime = redis.call('pttl', KEYS[4] .. ':' .. key .. ':rwlock_timeout:' .. i); " +
		"maxRemainTime = math.max(remainTime, maxRemainTime);end; end; end; " +
		"if maxRemainTime > 0 then redis.call('pexpire', KEYS[1], maxRemainTime); return 0; " +
		"end;if mode == 'write' then return 0;end; end; redis.call('del', KEYS[1]); " +
		"redis.call('publish', KEYS[2], ARGV[1]); return 1; "
	writeText = "local mode = redis.call('hget', KEYS[1], 'mode'); if (mode == false) then redis.call('hset', KEYS[1], 'mode', 'write'); " +
		"redis.call('hset', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; " +
		"if (mode == 'write') then if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('hincrby', KEYS[1], ARGV[2], 1); " +
		"local currentExpire = redis.call('pttl', KEYS[1]); redis.call('pexpire', KEYS[1], currentExpire + ARGV[1]); return nil; " +
		"end; end;return redis.call('pttl', KEYS[1]);"
	unwriteText = "local mode = redis.call('hget', KEYS[1], 'mode'); if (mode == false) then redis.call('publish', KEYS[2], ARGV[1]); " +
		"return 1; end;if (mode == 'write') then local lockExists = redis.call('hexists', KEYS[1], ARGV[3]); " +
		"if (lockExists == 0) then return nil;else local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); " +
		"if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; else redis.call('hdel', KEYS[1], ARGV[3]); " +
		"if (redis.call('hlen', KEYS[1]) == 1) then redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); " +
		"else redis.call('hset', KEYS[1], 'mode', 'read'); end; return 1; end; end; end; return nil;"
)

// readOrWrite takes a lock to read or to write, renews it, and gives it back.
func (s *speaker) readOrWrite(l *wanted) {
	w := s.world
	l.resource, l.ttl = fmt.Sprintf("w%d", 1+s.moving.IntN(2)), w.plan.TTLMost.Truncate(time.Millisecond)
	l.grants, l.shared = func(r reply) bool { return r == nil }, chance(s.moving, 0.6)
	rw := newReadWrite(l)
	w.do(func() {
		w.checker.voted[l.token] = true
		l.renewals = w.checker.renewals[l.resource]
	})
	take := &request{words: rw.take, lock: l, most: s.mostAgain(), punctual: true}
	all := []*request{take}
	if chance(s.moving, w.plan.Batches) {
		all = []*request{s.echo(), take, s.echo(), s.gives(l, rw), s.echo()}
	}
	if _, ok := s.await(all...); !ok || l.promise == nil {
		return
	}
	for chance(s.moving, w.plan.Touches) {
		s.pause(between(s.moving, 0, min(w.plan.Hold, l.ttl)))
		if !s.renew(l, rw) {
			return
		}
	}
	s.pause(between(s.moving, 0, min(w.plan.Hold, 2*l.ttl)))
	if chance(s.moving, 0.9) { // otherwise the client forgets the lock
		_, _ = s.await(s.gives(l, rw))
	}
}

// A readWrite has a client's commands for a lock to read or to write.
type readWrite struct{ take, renew, give []string }

func newReadWrite(l *wanted) readWrite {
	name, channel, ms, id := l.resource, "redisson_rwlock:{"+l.resource+"}", millis(l.ttl), l.token
	prefix := "{" + name + "}"
	timeout := prefix + ":" + id + ":rwlock_timeout"
	if l.shared {
		return readWrite{
			take:  evalWords(readText, []string{name, timeout}, ms, id, id+":write"),
			renew: evalWords(rereadText, []string{name, prefix}, ms, id),
			give:  evalWords(unreadText, []string{name, channel, timeout, prefix}, "0", id),
		}
	}
	l.token += ":write"
	return readWrite{
		take:  evalWords(writeText, []string{name}, ms, l.token),
		renew: evalWords(renewHash, []string{name}, ms, l.token),
		give:  evalWords(unwriteText, []string{name, channel}, "1", ms, l.token),
	}
}

// renew extends the lock, if it is not over. On one Redis, too, a reader may renew a hold that is over while others
// hold the lock. The hold then ends with theirs: its own key is not made anew. A renewal may come between the attempt
// of a gone client and its undo, and give the attempt's key another expiry, so that the undo does not know the key. On
// one Redis such a key would stay in any case.
func (s *speaker) renew(l *wanted, rw readWrite) bool {
	w, p, k := s.world, l.promise, &s.world.checker
	q := &request{words: rw.renew, most: 6}
	w.do(func() { k.renewals[l.resource]++ })
	q.on = func() {
		k.renewals[l.resource]++
		switch n, is := q.reply.(int64); {
		case w.now() >= p.until:
			p.over = true
		case is && n == 1:
			p.until = q.until(w, l.ttl, 0)
			k.granted(p)
		case is && !q.held:
			k.gone(p, "an extension")
			p.over = true
		}
	}
	_, ok := s.await(q)
	if !ok { // the renewal may be on its way
		w.do(func() { k.prolonged[l.resource] = true })
	}
	return ok && !p.over
}

// gives is a command that gives the lock back. The reply is 1 if nobody holds the lock now, 0 if others do, and null if
// the client did not hold the lock.
func (s *speaker) gives(l *wanted, rw readWrite) *request {
	told := s.lets(l)
	q := &request{words: rw.give, most: 6}
	q.on = func() {
		if _, is := q.reply.(int64); is || q.reply == nil && !q.held {
			told(is, "a release")
		}
	}
	return q
}

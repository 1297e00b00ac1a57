package quorum

import (
	"slices"
	"strconv"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// luaValue defines valueOf(key): the content of a key, or false for an absent key. The DUMP of an embedded master knows only
// strings. There valueOf reads a hash with HGETALL, and a changed hash is not put back.
const luaValue = `
local function valueOf(key)
  local value = call('DUMP', key)
  if type(value) ~= 'table' then return value or false end
  return 'HGETALL ' .. table.concat(call('HGETALL', key), ' ')
end`

// luaRestoreAll KEYS=the keys that a script created or changed, and for each key four in ARGV: the value that the script left
// (see vote.Effect), the expiry that the script left, the former value by DUMP, and the former expiry. A key with the value and the
// expiry that the script left becomes as before. The reply is 1 if there was such a key, or the error if a key could not be
// written, as on a master that does not write now.
//
// A former expiry of 'release' means a late release of the keys: a key that several clients hold by now stays.
//
// Three more in ARGV, if any, name a hash that several clients hold at once, the caller's field in the hash, and the value
// that the script left in the field. Other clients may have changed the hash since. The script also made a key for the
// caller's hold alone, which ends and is renewed with the hold. If this key was as the script left the key, so is the hold,
// and the hold is taken out of the hash.
var luaRestoreAll = newLua(`local call = redis.pcall` + luaValue + luaExpires + `
local function shared(key)
  local held, holders = call('HGETALL', key), 0
  if held.err then return not string.find(held.err, 'WRONGTYPE', 1, true) end
  for i = 2, #held, 2 do holders = holders + (tonumber(held[i]) and 1 or 0) end
  --mutant: a late release takes the lock of other readers
  return holders > 1
end
local put, beside, hash, field, count = 0, false, unpack(ARGV, 4 * #KEYS + 1)
for i, key in ipairs(KEYS) do
  local digest, ends, before, was = ARGV[4 * i - 3], tonumber(ARGV[4 * i - 2]), ARGV[4 * i - 1], ARGV[4 * i]
  local now = valueOf(key)
  --mutant: a late release by vote goes by the expiry
  if now and (#now > 64 and redis.sha1hex(now) or now) == digest then
    local at, slack = expires(key)
    --mutant: a late release by vote goes by the content
    if math.abs(at - ends) <= slack then
      if put == 0 then put = 1 end
      if key == hash then hash = nil end
      if was == 'release' and shared(key) then
        -- the others keep it
      elseif before == '' then
        beside = true
        redis.pcall('PUBLISH', '` + BellPrefix + `' .. key, '')
        redis.call('DEL', key)
      elseif string.sub(before, 1, 8) ~= 'HGETALL ' then
        local reply = call('RESTORE', key, string.format('%.0f', math.max(tonumber(was), 0)), before, 'REPLACE', 'ABSTTL')
        if reply.err then put = reply end
        if tonumber(was) >= 0 and at > tonumber(was) then redis.pcall('PUBLISH', '` + BellPrefix + `' .. key, '') end -- as luaProlong
      end
    end
  end
end
if hash and beside and call('HGET', hash, field) == count then
  if count == '1' then redis.call('HDEL', hash, field) else redis.call('HINCRBY', hash, field, -1) end
  local held = false
  for _, value in ipairs(redis.call('HVALS', hash)) do held = held or tonumber(value) end
  if not held then
    redis.pcall('PUBLISH', '` + BellPrefix + `' .. hash, '')
    redis.call('DEL', hash)
  end
end
return put`)

// putBack puts back the effects outside the decision, and calls after when the masters have confirmed, or one
// InstanceTimeout has passed.
func (r *scriptRound) putBack(d rules.Decision, after func()) {
	var certain []*undo
	r.mu.Lock()
	if d != rules.Won && r.req.Rule.Merge.PutsBack() {
		r.revoked = d != rules.Lost || !r.count.Queues()
	}
	for i, a := range r.all {
		//mutant: what a script that lost has done stays
		if a != nil && r.count.IsWrong(a, d) {
			certain = r.undoAt(certain, &r.entries[i])
		}
	}
	r.mu.Unlock()
	pushUndos(r.engine, certain, after)
}

// undo puts back the effects of a script that took a lock, on all masters, because no client will know of the lock. The
// effects of any other script stay.
func (r *scriptRound) undo(after func()) {
	var certain []*undo
	r.mu.Lock()
	//mutant: what an abandoned script has done stays
	if r.takes() {
		r.revoked = true
		for i, a := range r.all {
			if a != nil && a.Vote == rules.Granted {
				certain = r.undoAt(certain, &r.entries[i])
			}
		}
	}
	r.mu.Unlock()
	pushUndos(r.engine, certain, after)
}

// takes says that the script took a lock for its client. The caller holds round.mu.
func (r *scriptRound) takes() bool {
	if r.req.Rule.Merge != vote.Agreeing {
		return r.req.Rule.Merge == vote.Taking
	}
	return slices.ContainsFunc(r.all, func(a *vote.Answer) bool { return a != nil && a.Creates() })
}

// appendUndos appends the undo of all keys that the script created or changed on one master. The undo is exact: a key is
// touched only if the value and the expiry, in milliseconds of the master's clock, are as the script left them.
func (r *scriptRound) appendUndos(to []*undo, en *entry) []*undo {
	a := r.all[en.master]
	var keys []string
	var argv []any
	longest, once := time.Duration(0), false
	for _, e := range a.Effects {
		if e.Kind == vote.Deleted {
			continue
		}
		keys = append(keys, e.Name)
		argv = append(argv, e.Digest, e.Ends, e.Before, e.Was)
		longest = max(longest, e.TTL)
		//mutant: what was put anew is put back
		once = once || e.TTL == 0 // as of an execRound that keeps a TTL
	}
	if len(keys) == 0 {
		return to
	}
	//mutant: a reader is put back only where no other came or went
	if rule := &r.req.Rule; rule.Derived && rule.Field != "" { // as Redisson's read lock
		argv = append(argv, r.req.Keys[0], rule.Field, a.Field)
	}
	if longest == 0 { // only values were changed
		longest = r.engine.cfg.TTLMax
	}
	u := &undo{lane: en.lane, kept: r.engine.cfg.kept(longest), once: once}
	u.Args = luaRestoreAll.whole(keys, argv...)
	return append(to, u)
}

// isPutBack says that no effect of the script is left, so that the script may run once more. A script that counts would go on
// from an effect that is left, and then neither run could be put back. The effects on a late master are put back before the
// next run reaches the master, because the next run waits in the same lane.
func (r *scriptRound) isPutBack() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.entries {
		if en := &r.entries[i]; en.fate == unknown || !en.isUndone() {
			return false
		}
	}
	//mutant: a script is asked again on what an earlier run has left
	return r.before == nil || r.before.isPutBack()
}

// settled puts back the effects on a late master if they do not belong to the decision, or if the attempt was undone.
func (r *scriptRound) settled(en *entry) {
	r.fillLate(en)
	var late []*undo
	r.mu.Lock()
	if a := r.all[en.master]; a != nil {
		//mutant: what a script has done late stays
		if r.count.IsWrong(a, r.decision) || r.revoked && a.Vote == rules.Granted {
			late = r.undoAt(late, en)
		}
		//mutant: a release by vote is not made late where the lock is late
		r.eachExpiry(a, func(sig signature, _ int64) { en.releaseOwed(sig) })
		//mutant: a release by vote that no quorum has answered is not made late
		r.releaseMissed()
	}
	r.mu.Unlock()
	pushUndos(r.engine, late, func() {})
}

// A script that gives a lock back may miss a master, too; see ledger.go. The script is not run late, because nobody
// knows the script's other effects there. But a key that the script has deleted on other masters is deleted late on the missed master,
// on two conditions: the content by DUMP is the same, and the key expires in the very millisecond that a script through this
// engine is known to have set. The content names the holder, and the number of holds. So the lock stays if the same client
// holds the lock once more. The lock also stays if several clients hold the lock there, as readers do: on the master that
// deleted the key, the other holds were over, and only other keys tell of the end of holds.

// eachExpiry calls f for each key to which a granted script gave an expiry on a master.
func (r *scriptRound) eachExpiry(a *vote.Answer, f func(sig signature, at int64)) {
	if a == nil || a.Vote != rules.Granted {
		return
	}
	for i := range a.Effects {
		e := &a.Effects[i]
		if at, err := strconv.ParseInt(e.Ends, 10, 64); err == nil && at > 0 && e.TTL > 0 {
			f(signatureOf(e), at)
		}
	}
}

func (r *scriptRound) missed(en *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteMissed(en)
}

// noteMissed notes that the script has not run on a master, or may not have run there. The caller holds round.mu.
func (r *scriptRound) noteMissed(en *entry) {
	if !en.missed {
		en.missed = true
		if r.decision != rules.Undecided {
			r.releaseAt(en)
		}
	}
}

// releaseMissed makes the release late on the masters that have missed the script: when the round is over, and again with each late
// answer, because even a client that hears of no quorum has given the lock up. The caller holds round.mu.
func (r *scriptRound) releaseMissed() {
	for i := range r.entries {
		r.releaseAt(&r.entries[i])
	}
}

// releaseAt makes the release late on a master that has missed the script, once the round is over. By then the master may have granted
// the lock to another client: the other grant stays. The caller holds round.mu.
func (r *scriptRound) releaseAt(en *entry) {
	//mutant: a release by vote that a master missed is not made late
	//mutant: whatever a script deletes is deleted late
	if !en.missed || r.req.Rule.Merge != vote.Releasing {
		return
	}
	for _, a := range r.all {
		if a == nil {
			continue
		}
		for i := range a.Effects {
			if e := &a.Effects[i]; e.Kind == vote.Deleted {
				//mutant: a release by vote that was not sent is not owed
				if en.fate != answered { // the fate of an entry that is being dropped is not set yet
					en.lane.ledger.owe(signatureOf(e), r.place.Load())
				}
				en.lane.ledger.releaseLate(signatureOf(e), r.place.Load())
			}
		}
	}
}

// signatureOf returns the signature of a key as a script left the key, or as the key was when the script deleted it. The
// content is the signature.
func signatureOf(e *vote.Effect) signature { return signature{name: e.Name, dump: e.Digest} }

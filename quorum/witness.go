package quorum

import (
	"cmp"
	"sync/atomic"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// A durable master is trusted after a restart only if it has loaded all of its append-only file. Redis before version 8.6 skips each
// command of a transaction that its default user may not run, and counts the skipped commands in INFO. The count can be reset before a
// proxy reads it. So a durable master also carries a witness: a key that a transaction of several commands has written. If the master
// skips a part of the transaction, the witness is gone or different.
//
// The witness is first deleted, by a single command, which every version loads. It is written anew in each life of the server, and when
// the file has a new base: the base has the witness as data, and the transactions of locks come after the base.

// witnessLasts is for how long the witness lives: for ever. The witness has a TTL because PEXPIREAT is a command to be tried.
const witnessLasts = 100 * 365 * 24 * 3600 * 1000 // ms

var (
	witnessKeys = []string{witnessKey, witnessHash}

	// luaWitness KEYS[1]=witness KEYS[2]=its hash ARGV[1]=their TTL, ms: writes both, after they were deleted. Each command
	// matters: without DEL, SET NX would do nothing. The hash is written where this user may use hashes.
	luaWitness = newLua(`
local function may(...)
  local known, yes = pcall(redis.acl_check_cmd, ...)
  return known and yes
end
local kind = 'string'
if may('HSET', KEYS[2], 'f', '1') and may('HINCRBY', KEYS[2], 'f', '1') and may('HGET', KEYS[2], 'f') then
  kind = 'hash'
  redis.call('HSET', KEYS[2], 'f', '1')
  redis.call('HINCRBY', KEYS[2], 'f', '1')
end
redis.call('SET', KEYS[1], '')
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], kind, 'NX')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`)

	// luaWitnessed KEYS as luaWitness: 1 if the keys are as luaWitness has written them.
	luaWitnessed = newLua(`
local kind = redis.call('GET', KEYS[1])
if kind ~= 'string' and kind ~= 'hash' or redis.call('PTTL', KEYS[1]) < 0 then return 0 end
if kind == 'hash' and redis.pcall('HGET', KEYS[2], 'f') ~= '2' then return 0 end
return 1`)
)

// witnessCalls are the commands that write the witness.
func witnessCalls() []*masters.Call {
	return []*masters.Call{{Args: []any{"DEL", witnessKey, witnessHash}}, {Args: luaWitness.whole(witnessKeys, int64(witnessLasts))}}
}

// A filed is the file in which a witness stands, and the life of the server.
type filed struct {
	runID string
	file  masters.File
}

// A witness is a lane's knowledge of the witness in its database.
type witness struct {
	stands filed       // where the witness was written last; of the loop
	due    filed       // where the witness is to be written; of the loop
	owed   atomic.Bool // the witness is to be written
}

// look finds out, from the master's statements about itself and its canary, whether the witness is to be written.
func (w *witness) look(info *masters.Info, canary string) {
	is, ok := vouch.ParseCanary(canary)
	now := filed{info.RunID, info.File}
	//mutant: the witness is not written anew for a new file
	if ok && is.Durable && is.Process == info.RunID && w.stands != now {
		w.due = now
		w.owed.Store(true)
	}
}

// write has the witness written, if the witness is owed.
func (w *witness) write(l examiner) {
	if !w.owed.Swap(false) {
		return
	}
	calls := witnessCalls()
	l.ask(calls[0].Args, nil)
	l.ask(calls[1].Args, func(any) { w.stands = w.due })
}

// isWitnessed says that the witness is there.
func isWitnessed(c masters.Conn) (bool, error) {
	asked := &masters.Call{Args: luaWitnessed.whole(witnessKeys)}
	err := c.Exec([]*masters.Call{asked})
	return asked.Reply == int64(1), err
}

// leaveWitness writes the witness at once.
func leaveWitness(c masters.Conn) error {
	calls := witnessCalls()
	return cmp.Or(c.Exec(calls), calls[0].Err, calls[1].Err)
}

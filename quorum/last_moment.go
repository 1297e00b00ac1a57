package quorum

// Some commands take a lock from any holder, and compare nothing: Break, and scripts that are unconditional. Such a command must not
// take a lock that was granted after the command's client had been answered. But a command that was sent may be long on its way, or
// wait in front of a master that stands still. So the command names the last moment, by the master's clock, at which it may run: a
// moment before the end of its round, as far as the clock is known. If the clock is set back meanwhile, the command may run late all
// the same. Where the connection broke before the answer, the round waits until its end: the command may still arrive, and run.

// luaInTime ARGV[1]=the latest time that the master's clock may show, in ms.
const luaInTime = `
local t = redis.call('TIME')
--mutant: FORCEUNLOCK runs late
if t[1] * 1000 + math.floor(t[2] / 1000) > tonumber(ARGV[1]) then return redis.error_reply('` + lateError + `') end`

// lateError is the answer of a master that was reached too late.
const lateError = "LATE its client had been answered before it came"

// lastMoment returns the earliest time, in ms, that the master's clock may show when the round ends at its deadline. It is called
// when the entry is about to be written.
func (en *entry) lastMoment() int64 {
	clock := &en.lane.clock
	return clock.earliest(clock.gathered + en.round.deadline.since(en.round.engine.waited()))
}

package quorum

// Some commands take a lock from whoever holds it, and compare nothing: Break, and scripts that are blind. Such a command
// must not take a lock that was granted after its own client had been answered. But a command that was sent may be long on
// its way, or wait in front of a master that stands still. So it names the last moment, by the master's clock, at which it
// may run: a moment before the end of its round, by what is known of that clock. If the clock is set back meanwhile, the
// command may run late all the same. And where the connection broke before the answer, the round waits until its end: what is
// on its way may still arrive, and run.

// luaInTime ARGV[1]=what the master's clock may show at most, in ms.
const luaInTime = `
local t = redis.call('TIME')
--mutant: FORCEUNLOCK runs late
if t[1] * 1000 + math.floor(t[2] / 1000) > tonumber(ARGV[1]) then return redis.error_reply('` + lateError + `') end`

// lateError is the answer of a master that was reached too late.
const lateError = "LATE its client had been answered before it came"

// lastMoment returns what the master's clock shows at least when the round ends at its deadline, in ms. It is called when the
// entry is about to be written.
func (en *entry) lastMoment() int64 {
	clock := &en.lane.clock
	return clock.earliest(clock.gathered + en.round.deadline.since(en.round.engine.waited()))
}

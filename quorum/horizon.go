package quorum

import (
	"strconv"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// Each master carries a horizon: a key that lives as long as any lock granted there (rule 7). A batch that may set a key beyond the
// horizon begins by extending the horizon. Both keys live by the master's clock, so the proxy compares them by the master's clock.

const (
	// So that extensions are rare, each goes beyond the lock's time: by one headRoom-th of the time, and at least by leastHeadRoom.
	// Quarantines are longer by as much.
	headRoom      = 4
	leastHeadRoom = time.Second
)

// A horizon is a lane's knowledge of its master's horizon. A horizon belongs to the lane's loop.
type horizon struct {
	clock *laneClock
	until int64 // the horizon lasts at least so long, ms of the master's clock; 0 if nothing is known in this epoch
	ends  ends  // the knowledge over all connections
}

// extend returns the command that is to stand at the head of a batch; its Args are nil if none is needed. keeps is for how long the
// longest key lives that the batch may set.
func (h *horizon) extend(keeps time.Duration) (extension masters.Call) {
	if keeps == 0 {
		return extension
	}
	// The batch may take as long as a vote may take, and the clock may run fast.
	since := h.clock.now - h.clock.heard + h.clock.engine.cfg.InstanceTimeout.Milliseconds()
	need := keeps.Milliseconds() + since
	if h.clock.heard+need <= h.until {
		return extension
	}
	ms := need + max(need/headRoom, leastHeadRoom.Milliseconds())
	extension.Args = luaHorizon.whole([]string{horizonKey}, ms)
	return extension
}

// learn takes the answer to the extension: the horizon's remaining TTL, ms. The answer was true at some moment after the end of the
// batch before, and after this batch was sent. Of these two lower bounds, by the master's clock, the smaller one is used: the
// clock may have been set back since the batch before. shows is the clock at the end of this batch.
func (h *horizon) learn(extension *masters.Call, p *proof, shows, epoch int64) {
	if extension.Args == nil {
		return
	}
	if ms, ok := extension.Reply.(int64); ok {
		sent := shows - (p.received - p.sent).Milliseconds() - 1
		//mutant: a horizon is known by a clock that was set back since
		h.until = min(h.clock.heard, sent) + ms
		h.ends.learn(h.until, epoch)
	}
}

// covers says that the horizon lasts as long as a key that the master keeps from now on.
func (h *horizon) covers(keeps time.Duration) bool {
	return h.clock.heard+keeps.Milliseconds() <= h.until
}

// The end of the horizon is evidence of losses while nobody looked. Beside the horizon, which expires, stands a key that does not
// expire: the instant at which the horizon is to end. So there are two questions at each assessment:
//
//   - Is the horizon gone before its end? Then the master's clock stood ahead for a while, or keys were evicted or deleted, and locks
//     may be gone as well.
//   - Is the end earlier than this proxy has seen it? Then the data is older than it was.
//
// The end does not tell of a clock that stood ahead by less than the horizon lasts, nor of data that is older by less than the time
// since the horizon was last extended.

// endSlack is how far the end may be wrong: the script that writes the end takes time.
const endSlack = time.Second

// Earlier is why a master may have forgotten locks: the horizon is gone before its end.
const earlier = "its horizon was over too early: its clock stood ahead meanwhile, or keys were deleted"

// An ends is a lane's knowledge of the end of its master's horizon, over all connections.
type ends struct {
	latest int64 // the end is no earlier, ms of the master's clock; 0 if nothing is known
	epoch  int64 // in which latest was learnt
}

// An endLook asks for the end. The answers to the first questions can only be too early.
type endLook struct{ end, left, time masters.Call }

func lookForEnd() *endLook {
	return &endLook{
		end:  masters.Call{Args: []any{"GET", endKey}},
		left: masters.Call{Args: []any{"PTTL", horizonKey}},
		time: masters.Call{Args: clockArgs},
	}
}

func (l *endLook) calls() []*masters.Call { return []*masters.Call{&l.end, &l.left, &l.time} }

// evidence returns why the master may have forgotten locks, by the end that is found in an epoch; "" if nothing says so.
func (e *ends) evidence(found *endLook, epoch int64) string {
	text, end := endIn(found.end.Reply)
	left, ok1 := found.left.Reply.(int64)
	now, ok2 := millis(&found.time)
	slack := endSlack.Milliseconds()
	switch {
	case !ok1 || !ok2:
		return ""
	//mutant: a horizon that is gone too early is not missed
	case left == -2 && end > now+slack:
		return earlier
	case text == "0" && epoch > e.epoch: // a new mark has begun it anew
		e.latest = 0
	//mutant: an end of the horizon that is known is forgotten
	case e.latest > end+slack && e.latest > now:
		return vouch.Older
	}
	return ""
}

// learn takes an end that was true in an epoch.
func (e *ends) learn(end, epoch int64) { e.latest, e.epoch = max(e.latest, end), epoch }

// hear takes the end as told by the master: another proxy may have written the end.
func (e *ends) hear(reply any, epoch int64) {
	_, end := endIn(reply)
	e.learn(end-endSlack.Milliseconds(), epoch)
}

func endIn(reply any) (text string, end int64) {
	text, _ = reply.(string)
	end, _ = strconv.ParseInt(text, 10, 64)
	return text, end
}

// luaOutlast defines a function that makes the horizon last so many ms from now, and writes its end beside it.
const luaOutlast = `
local function outlast(horizon, ms)
  redis.call('SET', horizon, '1', 'PX', string.format('%.0f', ms))
  local time = redis.call('TIME')
  redis.call('SET', '` + endKey + `', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ms))
end
`

// luaRestartEnd follows a new mark: a horizon that is gone is missed no longer.
const luaRestartEnd = `
if redis.call('EXISTS', '` + horizonKey + `') == 0 then redis.call('SET', '` + endKey + `', '0') end`

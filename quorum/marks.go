package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// Our own keys on every master, in every database with locks. Clients cannot touch these keys.
const (
	canaryKey     = "lockproxy:canary"     // a vouch.Canary: as long as the canary is unchanged, nothing was forgotten
	quarantineKey = "lockproxy:quarantine" // there while the master's grants do not count: the beginning, and the reason
	horizonKey    = "lockproxy:horizon"    // its remaining TTL is never less than that of any lock granted there
	endKey        = horizonKey + ":end"    // when the horizon is to be over; see horizon.go
	rosterKey     = "lockproxy:roster"     // the epochs of all masters, as far as this master was told
	fenceKey      = "lockproxy:fence"      // the largest fence seen here, and the epoch in which none was missed; see fence.go
	witnessKey    = "lockproxy:witness"    // there if a durable master has loaded all of its file; see witness.go
	witnessHash   = "lockproxy:witness:hash"
	trialKey      = "lockproxy:trial" // set and deleted at once, to see whether keys can be written
	namesKey      = "lockproxy:names" // in database 0: the names of locks, as the latest proxy told them; see monitor.go
	recordPrefix  = fenceKey + ":"    // a resource's name follows: the resource's newest fence, and the fence's epoch
)

// Reserved says that name is a key of lockproxy's own.
func Reserved(name string) bool {
	if !strings.HasPrefix(name, "lockproxy:") {
		return false
	}
	switch name {
	case canaryKey, quarantineKey, horizonKey, endKey, rosterKey, fenceKey, witnessKey, witnessHash, trialKey, namesKey:
		return true
	}
	return strings.HasPrefix(name, recordPrefix)
}

// marks prove a master's memory; "" for each mark that is not there.
type marks struct{ canary, roster, quarantine string }

var marksArgs = []any{"MGET", canaryKey, rosterKey, quarantineKey}

var errNoMarks = errors.New("it answers as no Redis does")

// parseMarks reads the reply to marksArgs, or returns why no marks can be read.
func parseMarks(c *masters.Call) (marks, error) {
	list, ok := c.Reply.([]any)
	if !ok || !c.Answered || len(list) != 3 {
		return marks{}, cmp.Or(c.Err, errNoMarks)
	}
	var m marks
	m.canary, _ = list[0].(string)
	m.roster, _ = list[1].(string)
	m.quarantine, _ = list[2].(string)
	return m, nil
}

// Members names a deployment in the canaries of its masters, by its name or by the masters.
func Members(ms []masters.Master, deployment string) string {
	h := fnv.New64a()
	names := []string{deployment}
	if deployment == "" {
		names = names[:0]
		for _, m := range ms {
			names = append(names, m.Addr())
		}
		slices.Sort(names)
	}
	_, _ = h.Write([]byte(strings.Join(names, "\n"))) // it never fails
	return fmt.Sprintf("%d-%016x", len(ms), h.Sum64())
}

// quarantineText is the text of a quarantine key.
func quarantineText(reason string) string {
	return strconv.FormatInt(time.Now().UnixMilli(), 10) + " " + reason
}

// reasonOf returns the reason in a quarantine key's text.
func reasonOf(text string) string {
	_, reason, _ := strings.Cut(text, " ")
	return reason
}

// quarantinedAt returns when a quarantine key's text was written, by the clock of the proxy that wrote it.
func quarantinedAt(text string) time.Time {
	at, _, _ := strings.Cut(text, " ")
	ms, _ := strconv.ParseInt(at, 10, 64)
	return time.UnixMilli(ms)
}

// canaryNow is the mark that a master would get now, in an epoch later than known. b are the bounds in the master's present mark.
func (a *assessor) canaryNow(k *connection, known int64, b vouch.Bounds) vouch.Canary {
	own := *a.engine.bounds.Load()
	now := accountOf(&k.info, max(own.Patience, b.Patience))
	now.DB, now.Slot, now.Members, now.Bounds = a.db, a.master.slot, a.engine.members, own
	now.Watched, now.Epoch = k.durable, a.nextEpoch(known, k.info.RunID)
	return now
}

// isDurable says that a master may be marked as durable, by its statements about itself.
func (a *assessor) isDurable(info *masters.Info) bool {
	return info.Durable(a.engine.bounds.Load().Patience)
}

// accountOf returns a server's account of itself, as the fields of a canary have it. patience is as in masters.Info.Durable.
func accountOf(info *masters.Info, patience time.Duration) vouch.Canary {
	return vouch.Canary{
		Process: cmp.Or(info.RunID, "-"), Lineage: cmp.Or(info.Lineage, "-"), Durable: info.Durable(patience), MayBeDurable: info.MayBeDurable(),
		Incomplete: info.LoadErrors > 0, FirstFile: info.Files.IsFirst(), Rewriting: info.Files.Rewriting(),
		Past: vouch.Past{Evicted: info.Evicted, Copies: info.Files.Copies(), Databases: info.Files.Databases, Place: info.Files.Place()},
	}
}

// luaMakeRoom goes before the first SET of a mark: a script that has written once may go on to write where memory is used up, and DEL
// needs no memory. If the script may not go on, the mark is gone.
const luaMakeRoom = `
--mutant: a mark needs memory
redis.call('DEL', KEYS[1])
`

// Scripts on our own keys are sent as a whole: the scripts are rare, and must not fail for a flushed script cache.
var (
	// luaMark KEYS[1]=canary KEYS[2]=quarantine KEYS[3]=roster ARGV[1]=the canary that was seen, '' for none ARGV[2]=the next
	// canary ARGV[3]=the quarantine's text, '' for no quarantine: 1, or 0 if another proxy was faster. A master that is not
	// quarantined keeps its fences in the next epoch. If the canary that was seen is another database's, so is the roster, which has
	// that database's epochs: the roster is deleted.
	luaMark = newLua(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
` + luaFences + `
if string.match(ARGV[1], '%d*$') ~= string.match(ARGV[2], '%d*$') then redis.call('DEL', KEYS[3]) end
` + luaMakeRoom + `
redis.call('SET', KEYS[1], ARGV[2])
` + luaRestartEnd + `
--mutant: the quarantine is not written on the master
if ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[3]) end
local to = string.match(ARGV[2], '^%S+ (%d+) ')
--mutant: an epoch without a quarantine forgets the fences
if ARGV[3] == '' and seeded and to ~= epoch then keep(largest, to) end
return 1`)

	// luaQuarantineAll KEYS[1]=canary KEYS[2]=quarantine ARGV[1]=the next epoch, 0 for none ARGV[2]=the quarantine's text
	// ARGV[3]=this database ARGV[4]=the number of databases ARGV[5]=how many keys the server has evicted: quarantines every
	// database that has a canary, but this database only if its epoch is earlier. Another database may be in a later epoch, if a
	// proxy whose wall clock is ahead has marked the database, which then comes to the epoch after its own. A database that has
	// another database's canary loses the canary, which would be right again if the databases were swapped again.
	luaQuarantineAll = newLua(`
local function sentence(db)
  local mark = redis.call('GET', KEYS[1])
  if not mark then return end
  local head, epoch, tail, owner = string.match(mark, '^(%S+) (%d+) (.* (%d+))$')
  if not head then return end
  if tonumber(owner) ~= tonumber(db) then redis.call('DEL', KEYS[1]) return end
  if ARGV[1] == '0' or db == ARGV[3] and tonumber(epoch) >= tonumber(ARGV[1]) then return end
  local to = math.max(tonumber(epoch) + 1, tonumber(ARGV[1]))
  tail = string.gsub(tail, ' evicted:%d+ ', ' evicted:' .. ARGV[5] .. ' ')
` + luaMakeRoom + `
  redis.call('SET', KEYS[1], head .. ' ' .. string.format('%.0f', to) .. ' ' .. tail)
` + luaRestartEnd + `
  redis.call('SET', KEYS[2], ARGV[2])
end
sentence(ARGV[3])
for db = 0, tonumber(ARGV[4]) - 1 do
  if db ~= tonumber(ARGV[3]) then
    local selected = redis.pcall('SELECT', db)
    if type(selected) == 'table' and selected.err then break end
    sentence(db)
  end
end
redis.pcall('SELECT', ARGV[3])
return 1`)

	// luaHorizon KEYS[1]=horizon ARGV[1]=ms: how long the horizon lasts now, at least so many ms.
	luaHorizon = newLua(luaOutlast + `
local left, ms = redis.call('PTTL', KEYS[1]), tonumber(ARGV[1])
if left >= ms then return left end
outlast(KEYS[1], ms)
return ms`)

	// luaSurvey KEYS[1]=roster KEYS[2]=horizon KEYS[3]=quarantine ARGV=the epochs of all masters that the asker knows:
	// adds them to the roster, and replies {ms of the horizon, 1 if quarantined, the roster, the largest fence, 1 if seeded}.
	luaSurvey = newLua(luaMerge + luaFences + `
return {math.max(redis.call('PTTL', KEYS[2]), 0), redis.call('EXISTS', KEYS[3]), roster, largest, seeded and 1 or 0}`)

	// luaEndQuarantine KEYS[1]=roster KEYS[2]=canary KEYS[3]=quarantine ARGV=epochs, then the fence that it is to be seeded with, or 0,
	// and the canary and the quarantine that were seen: ends the quarantine, and makes the master remember the roster and the
	// fences again. 0 if the canary or the quarantine is another by now.
	luaEndQuarantine = newLua(`
if redis.call('GET', KEYS[3]) ~= table.remove(ARGV) then return 0 end
if redis.call('GET', KEYS[2]) ~= table.remove(ARGV) then return 0 end
local fence = tonumber(table.remove(ARGV))
` + luaMerge + luaFences + `
--mutant: a cleared master is seeded with what it has
if fence > 0 then keep(math.max(largest, fence), epoch) end
redis.call('DEL', KEYS[3])
return 1`)

	// luaTrial KEYS[1]=a key that nobody needs: an error if nothing can be written, else 1, and nothing is left.
	luaTrial = newLua(`
redis.call('SET', KEYS[1], '', 'PX', 1)
redis.call('DEL', KEYS[1])
return 1`)

	// luaInitialise KEYS[1]=canary KEYS[2]=quarantine ARGV[1]=the next canary ARGV[2]=the canary, and ARGV[3]=the quarantine, that were
	// seen, or neither: 1, or 0 if they are others by now.
	luaInitialise = newLua(`
--mutant: init: auto marks a master whatever it carries by then
if ARGV[2] and (redis.call('GET', KEYS[1]) ~= ARGV[2] or redis.call('GET', KEYS[2]) ~= ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
` + luaRestartEnd + `
return 1`)
)

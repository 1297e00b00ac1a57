package quorum

// luaMakeRoom goes before the first SET of a mark: a script that has written once may go on to write where memory is used up, and DEL
// needs no memory. If the script may not go on, the mark is gone.
const luaMakeRoom = `
--mutant: a mark needs memory
redis.call('DEL', KEYS[1])
`

// Scripts on our own keys are sent as a whole: they are rare, and must not fail for a flushed script cache.
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

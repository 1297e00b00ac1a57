package quorum

// luaFences defines a master's knowledge of fences: the largest fence so far (largest), the canary's epoch, and whether the master is known
// to have missed no fence in this epoch (seeded). Numbers are written out: Lua would write large numbers with an exponent.
const luaFences = `
local known = redis.call('MGET', '` + canaryKey + `', '` + fenceKey + `')
local epoch = string.match(known[1] or '', '^%S+ (%d+) ') or '-'
local largest, since = string.match(known[2] or '', '^(%d+) (%d+)$')
largest, since = tonumber(largest or 0), since or '0'
--mutant: once seeded is seeded for ever
local seeded = since == epoch
local function keep(fence, from)
  redis.call('SET', '` + fenceKey + `', string.format('%.0f', fence) .. ' ' .. from)
end
local function recorded(key)
  local from, fence = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
  --mutant: a record of another epoch counts
  if from == epoch then return fence end
  return false
end
local function record(key, fence, at)
  redis.call('SET', key, epoch .. ' ' .. string.format('%.0f', fence), 'PXAT', at)
end
`

var (
	// luaTakeFenced KEYS[1]=resource KEYS[2]=its record ARGV[1]=token ARGV[2]=the lock's expiry ARGV[3]=the proposed fence:
	// {1, the fence, 1 if seeded} if taken, else {0, the remaining ms, or -1}.
	luaTakeFenced = newLua(`
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) then return {0, redis.call('PTTL', KEYS[1])} end
` + luaFences + `
--mutant: a fence is what the clock shows
local fence = math.max(largest + 1, tonumber(ARGV[3]))
keep(fence, since)
--mutant: an unseeded master keeps records
if seeded then record(KEYS[2], fence, ARGV[2]) end
return {1, fence, seeded and 1 or 0}`)

	// luaRaiseFence KEYS[1]=resource KEYS[2]=its record ARGV[1]=token ARGV[2]=the lock's expiry ARGV[3]=fence ARGV[4]=the epoch
	// in which the master took the lock, or -1 ARGV[5]=1 to seed the master: 1 if the key is the lock's, and the fence is kept
	// beside the key. A larger fence there is replied, and stays: a later lock may have had the larger fence before a late
	// command took this lock anew.
	luaRaiseFence = newLua(luaFences + `
local fence = tonumber(ARGV[3])
--mutant: a raise in another epoch
local same = epoch == ARGV[4]
if same and ARGV[5] == '1' then since, seeded = epoch, true end
keep(math.max(largest, fence), since)
if not same or not seeded then return 0 end
--mutant: a raise keeps a fence beside any lock
` + luaIsOurs + `
local newer = tonumber(recorded(KEYS[2]) or 0)
--mutant: a late raise replaces a newer record
if newer > fence then return newer end
record(KEYS[2], fence, ARGV[2])
return 1`)

	// luaHearFences KEYS[1]=roster ARGV=the epochs of all masters, as the asker knows: adds the epochs to the roster, and replies
	// {the largest fence, 1 if seeded}.
	//mutant: who is asked for fences is not told the epochs
	luaHearFences = newLua(luaMerge + luaFences + `
return {largest, seeded and 1 or 0}`)

	// luaNewestFence KEYS[1]=a record: its fence, if the record is of this epoch.
	luaNewestFence = newLua(luaFences + `
return recorded(KEYS[1])`)

	// luaNewestFences KEYS=records: luaNewestFence for each.
	luaNewestFences = newLua(luaFences + `
local all = {}
for i, key in ipairs(KEYS) do all[i] = recorded(key) end
return all`)

	// luaExtendFenced is luaExtend with KEYS[2]=the record of the resource.
	luaExtendFenced = newLua(luaProlong + luaIfHeld + `
--mutant: a fence runs out before its extended lock
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return prolong(KEYS[1], ARGV[2])`)
)

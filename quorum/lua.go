package quorum

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, not a safeguard
	"encoding/hex"
)

// A lua is a script. It is sent as a whole, as those are that take a lock or undo one (rule 13), or by SHA-1, as the program of a
// round; see program.go.
type lua struct {
	text string
	sha  string
}

// newLua makes a script of a text of ours, without the comments in it.
func newLua(text string) *lua { return wholeLua(shorten(text)) }

// wholeLua makes a script of a text as it stands: a client's may say the same with other lines, but not tell the same in its errors.
func wholeLua(text string) *lua { return &lua{text: text, sha: shaOf(text)} }

// shaOf returns the name that Redis gives a script.
func shaOf(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// The replies of scripts that compare.
const (
	didIt   = 1  // the comparison held
	other   = 0  // something else is there
	absent  = -1 // nothing is there
	tooLong = -2 // of luaAdd: it would last longer than it may
	sooner  = -3 // of luaProlong: didIt, and the key expires sooner now
)

// luaExpires defines when a key expires, in ms of the master's clock, and how inexactly that is known.
const luaExpires = `
local function expires(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then return at, 0 end
  local now = redis.call('TIME') -- before Redis 7
  return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call('PTTL', key), 2
end
`

// luaIsOurs is the head of an undo: it ends the script unless the key is the very one that was set.
const luaIsOurs = luaExpires + `
--mutant: an undo does not compare the token
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local at, slack = expires(KEYS[1])
--mutant: an undo does not compare the expiry
if math.abs(at - ARGV[2]) > slack then return 0 end
`

// luaFree deletes the key, and rings for those that wait for it, on whatever proxy. A master on which we may not publish
// leaves them to the key's TTL. It costs a master less than half a microsecond if nobody waits.
const luaFree = `redis.pcall('PUBLISH', '` + BellPrefix + `' .. KEYS[1], '') return redis.call('DEL', KEYS[1])`

// luaProlong sets the remaining TTL, or a little more: the key expires at an instant for extensions (see expiries.choose). It returns that
// instant, or 1 if the master does not tell; or, if the key is to expire sooner than before, what is below 0 by as much, or -3. Then it
// rings, too: those who wait for that were told the old time.
const luaProlong = luaExpires + `
local function prolong(key, ms)
  local sooner = redis.call('PTTL', key) > tonumber(ms)
  if sooner then redis.pcall('PUBLISH', '` + BellPrefix + `' .. key, '') end
  redis.call('PEXPIRE', key, ms)
  local at, slack = expires(key)
  local gap = 2 * slack + 1
  --mutant: a late release takes what an extension left at a guarded instant
  --mutant: an undo that is repeated takes what an extension left
  local to = at - at % (4 * gap) + 2 * gap
  if to < at then to = to + 4 * gap end
  if to > at then redis.call('PEXPIREAT', key, string.format('%.0f', to)) end
  if slack > 0 then to = 1 end
  if sooner then return to > 1 and -to or -3 end
  return to
end
`

// luaIfHeld KEYS[1]=resource ARGV[1]=token: ends the script unless the token holds it.
const luaIfHeld = `
local v = redis.call('GET', KEYS[1])
if not v then return -1 end
if v ~= ARGV[1] then return 0 end
`

var (
	// luaRelease KEYS[1]=resource ARGV[1]=token: delete it if the token holds it.
	//mutant: a release does not compare
	luaRelease = newLua(luaIfHeld + luaFree)

	// luaExtend KEYS[1]=resource ARGV[1]=token ARGV[2]=ms: set the remaining TTL if the token holds it, and reply as luaProlong.
	//mutant: an extension does not compare
	//mutant: an extension makes a lock that is gone
	luaExtend = newLua(luaProlong + luaIfHeld + `return prolong(KEYS[1], ARGV[2])`)

	// luaAdd KEYS[1]=resource KEYS[2]=horizon ARGV[1]=token ARGV[2]=ms to add ARGV[3]=the most that may result ARGV[4]=when it is to
	// expire at the earliest. It replies with the new remaining TTL, what luaProlong returns, and when the key expires, or with -2
	// if that would be too much.
	luaAdd = newLua(luaProlong + luaIfHeld + `
local left, most, at, slack = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3]), expires(KEYS[1])
local ms = math.max(left + ARGV[2], math.min(left + ARGV[4] - at, most))
if ms > most + 8 * slack + 4 then return -2 end -- a key may expire so much later than was asked for: other masters add to theirs
ms = math.min(ms, most)
` + luaOutlast + `
if redis.call('PTTL', KEYS[2]) < ms then outlast(KEYS[2], math.floor(ms * 1.25)) end
return {ms, prolong(KEYS[1], string.format('%.0f', ms)), (expires(KEYS[1]))}`)

	// luaUndo KEYS[1]=resource ARGV[1]=token ARGV[2]=when the key expires: delete it if it is that key.
	luaUndo = newLua(luaIsOurs + luaFree)

	// luaReenter KEYS[1]=resource ARGV[1]=token ARGV[2]=when it is to expire: 1 taken, 2 the token held it already and it was
	// extended. It is never shortened: it may be an earlier attempt that is late, through another proxy. But its end is moved
	// to a guarded instant, if it is not there: expiries.choose says why.
	luaReenter = newLua(luaExpires + `
local v = redis.call('GET', KEYS[1])
--mutant: a re-entrant attempt takes any lock
if v == ARGV[1] then
  local at, slack = expires(KEYS[1])
  local gap = 2 * slack + 1
  local guarded = at - at % (4 * gap) + 3 * gap
  if at > guarded + slack then guarded = guarded + 4 * gap end
  --mutant: a re-entrant attempt that is late shortens a lock
  if at < tonumber(ARGV[2]) then
    redis.call('PEXPIREAT', KEYS[1], ARGV[2])
  --mutant: a late undo takes what a re-entrant attempt counts on
  elseif at < guarded - slack then
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', guarded))
  end
  return 2
end
if v then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`)

	// luaTakeOrHolder KEYS[1]=resource ARGV[1]=token ARGV[2]=when it is to expire: {1} taken, or {0, who holds it}.
	luaTakeOrHolder = newLua(`
local v = redis.call('GET', KEYS[1])
if v then return {0, v} end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return {1}`)

	// luaTakeOrLeft KEYS[1]=resource ARGV[1]=token ARGV[2]=when it is to expire: {1} taken, or {0, the ms after which it expires, or -1}.
	luaTakeOrLeft = newLua(`
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then return {0, left} end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return {1}`)

	// luaReplace KEYS[1]=resource ARGV[1]=value ARGV[2]=ms: {1, the old value}, or {1} if there was none.
	luaReplace = newLua(`
local v = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if v then return {1, v} end
return {1}`)
)

// luaIfBlank KEYS[1]=resource KEYS[2]=canary ARGV[1]=what is to be there ARGV[2]=when that is to expire ARGV[3]=when nothing may be
// set any more ARGV[4]=the canary: the head of a fill.
const luaIfBlank = `
local time = redis.call('TIME')
--mutant: what was forgotten is filled
--mutant: a gap is filled when the validity is over
if time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[3]) or redis.call('GET', KEYS[2]) ~= ARGV[4]
  --mutant: a fill takes another's place
  or redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
`

var (
	luaFill = newLua(luaIfBlank + `
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`)

	// luaFillDump takes a dump, and ARGV[5]=the value or digest that it must come to: else somebody else has the lock by now. What
	// is not a string, or a hash of one field, may depend on other keys, as Redisson's read locks do; and what comes out as another
	// dump could not be undone.
	luaFillDump = newLua(luaSight + luaIfBlank + `
redis.call('RESTORE', KEYS[1], ARGV[2], ARGV[1], 'REPLACE', 'ABSTTL')
local kind, seen = look(KEYS[1], 'whole')
if seen == ARGV[5] and redis.call('DUMP', KEYS[1]) == ARGV[1]
  --mutant: a part of a lock is filled
  and (kind == 'string' or kind == 'hash' and #redis.call('HGETALL', KEYS[1]) == 2) then return 1 end
redis.call('DEL', KEYS[1])
return 0`)
)

// luaSight defines what a quorum agrees on about a key: its type and its value; of anything but a string, a digest of the
// value; and how long it is. What DUMP gives is no measure: it differs between versions of the server, and in a table of many
// entries between any two servers. Where a type has no command here, or that is not permitted, it has to do.
//
// A long value is brought as a whole only if somebody wants to have it. See read.go for what is brought else, and how it is compared.
var luaSight = sized(`local call = redis.pcall` + luaValue + `
local function digestOf(key, kind)
  local all
  if kind == 'hash' then all = call('HGETALL', key)
  elseif kind == 'set' then all = call('SMEMBERS', key)
  elseif kind == 'list' then all = call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then all = call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  if type(all) ~= 'table' or all.err then return redis.sha1hex(valueOf(key)) end
  local parts, step = {}, kind == 'hash' and 2 or 1
  for i = 1, #all, step do
    parts[#parts + 1] = redis.sha1hex(step == 2 and #all[i] .. ':' .. all[i] .. all[i + 1] or all[i])
  end
  if kind == 'hash' or kind == 'set' then table.sort(parts) end -- digests, because the order of texts depends on the locale
  return redis.sha1hex(table.concat(parts))
end
local counts = {string = 'STRLEN', hash = 'HLEN', set = 'SCARD', list = 'LLEN', zset = 'ZCARD'}
local function sizeOf(key, kind)
  local n = counts[kind] and call(counts[kind], key)
  return type(n) == 'number' and n or 0
end
local function look(key, how, kind, n)
  kind = kind or redis.call('TYPE', key).ok
  if kind == 'none' then return kind, '', 0 end
  n = n or sizeOf(key, kind)
  if kind ~= 'string' then
    if n > @MANY@ then return kind, ':' .. n, n end
    return kind, digestOf(key, kind), n
  end
  if how == 'sample' and n > @LONG@ then
    local parts = {n}
    for i = 0, 3 do
      local at = math.floor(i * (n - @HEAD@) / 3)
      parts[i + 2] = redis.call('GETRANGE', key, at, at + @HEAD@ - 1)
    end
    return '@SAMPLED@', table.concat(parts, ':'), n
  end
  local value = redis.call('GET', key)
  if how == 'whole' or #value <= @SHORT@ then return kind, value, #value end
  return '@DIGESTED@', redis.sha1hex(value) .. ':' .. #value, #value
end
`)

// A change of what a quorum holds names what it saw there, and applies only where that still is.
var luaIfSeen = luaSight + `local kind, seen = look(KEYS[1])
if kind == 'none' then return -1 end
if kind ~= ARGV[1] or seen ~= ARGV[2] then return 0 end
`

var (
	// luaDeleteSeen KEYS[1]=resource ARGV[1]=type ARGV[2]=value or digest.
	luaDeleteSeen = newLua(luaIfSeen + luaFree)

	// luaExpireSeen as luaDeleteSeen, and ARGV[3]=ms. It replies as luaProlong.
	//mutant: a release of a lock that EXPIRE extended is not made late
	luaExpireSeen = newLua(luaIfSeen + luaProlong + `return prolong(KEYS[1], ARGV[3])`)
)

var (
	// luaLook KEYS ARGV=how to look at each of them (see the constants of read.go), ARGV[#KEYS + 1]=how much there is room for
	// ARGV[#KEYS + 2]='part' to tell of as many keys as there is room for, and of one at least. It returns for each key, in an
	// array: {type, value or digest, length, remaining ms, when it expires, how inexactly that is known}, the first bytes of a long
	// value if they are asked for, or {"none"}. Where not all of them have room, and all are asked for, it returns how much they take.
	luaLook = newLua(luaSight + luaExpires + sized(`
local all, room, part, took, kinds, sizes = {}, tonumber(ARGV[#KEYS + 1]), ARGV[#KEYS + 2] == 'part', 0, {}, {}
local last = #KEYS
for i, key in ipairs(KEYS) do
  local kind, how = redis.call('TYPE', key).ok, ARGV[i]
  local n = kind == 'none' and 0 or sizeOf(key, kind)
  kinds[i], sizes[i] = kind, n
  local cost = n
  if kind ~= 'string' then cost = (not part or n <= @MANY@) and n * @ENTRY@ or 0
  elseif n <= @SHORT@ or n > @LONG@ and (how == 'sample' or how == 'head') then cost = 0 end
  took = took + cost
  if took > room and (i > 1 or kind ~= 'string') then
    if part and i > 1 then last = i - 1 break end
    if not part then last = 0 end
  end
end
if last == 0 then return took end
for i = 1, last do
  local key, how = KEYS[i], ARGV[i]
  local kind, seen, n = look(key, how == 'head' and 'sample' or how, kinds[i], sizes[i])
  if kind == 'none' then all[i] = {kind} else
    local at, slack = expires(key)
    all[i] = {kind, seen, n, redis.call('PTTL', key), at, slack}
    if how == 'head' and kinds[i] == 'string' and n > @SHORT@ then all[i][7] = call('GETRANGE', key, 0, @HEAD@ - 1) end
  end
end
return all`))

	// luaEdit KEYS, and for each of them five in ARGV: the type ('none' if absent) and the value or digest that are to
	// be there, what to do, the new value, and when it is to expire, at the earliest if it is to replace what expires later. It
	// does nothing and replies 0 if anything else is there; else it replies with 1 and when each key was to expire, 0 if never.
	luaEdit = newLua(luaSight + luaExpires + `
for i, key in ipairs(KEYS) do
  local kind, seen = look(key)
  --mutant: an Exec does not compare
  if kind ~= ARGV[5 * i - 4] or seen ~= ARGV[5 * i - 3] then return 0 end
end
local reply = {1}
for i, key in ipairs(KEYS) do
  local edit, value, at = ARGV[5 * i - 2], ARGV[5 * i - 1], ARGV[5 * i]
  reply[i + 1] = redis.call('PTTL', key) >= 0 and (expires(key)) or 0
  --mutant: each master keeps the TTL that it has
  if edit == 'replace' and reply[i + 1] > tonumber(at) then at = string.format('%.0f', reply[i + 1]) end
  if edit == 'delete' or at ~= '0' and reply[i + 1] > tonumber(at) then
    redis.pcall('PUBLISH', '` + BellPrefix + `' .. key, '') -- as luaFree and luaProlong
  end
  if edit == 'put' or edit == 'replace' then redis.call('SET', key, value, 'PXAT', at)
  elseif edit == 'expire' then redis.call('PEXPIREAT', key, at)
  elseif edit == 'delete' then redis.call('DEL', key) end
end
return reply`)

	// luaRepair KEYS ARGV[1]=1 if it is to put where nothing is, too, and then for each key: the value to put, when it is to
	// expire, or 0 to delete the key; how many versions follow, and for each of these its digest and when it expires. What is
	// there is replaced, or deleted, if it is one of these. It replies 1 if it has put anything.
	luaRepair = newLua(luaExpires + `
local next, did = 2, 0
for _, key in ipairs(KEYS) do
  local value, at, first = ARGV[next], ARGV[next + 1], next + 3
  next = first + 2 * ARGV[next + 2]
  local kind, ends, slack = redis.call('TYPE', key).ok, expires(key)
  local stale = kind == 'none' and at ~= '0' and ARGV[1] == '1'
  for i = first, math.min(next - 2, #ARGV - 1), 2 do
    --mutant: a repair takes whatever is there
    --mutant: a repair does not compare the expiry
    stale = stale or kind == 'string' and math.abs(ends - ARGV[i + 1]) <= 2 * slack and redis.sha1hex(redis.call('GET', key)) == ARGV[i]
  end
  if stale and kind ~= 'none' and (at == '0' or ends > tonumber(at)) then
    redis.pcall('PUBLISH', '` + BellPrefix + `' .. key, '')
  end
  if stale and at == '0' then
    redis.call('DEL', key)
  elseif stale then
    redis.call('SET', key, value, 'PXAT', at)
    did = 1
  end
end
return did`)

	// luaPutBack as luaUndo, and ARGV[3]=the value that was there before ARGV[4]=when that was to expire. It rings as luaProlong.
	luaPutBack = newLua(luaIsOurs + `
if at > tonumber(ARGV[4]) then redis.pcall('PUBLISH', '` + BellPrefix + `' .. KEYS[1], '') end
redis.call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
return 1`)

	// luaRestore KEYS[1]=resource ARGV[1]=the value that was deleted ARGV[2]=when it was to expire: set it again if nothing
	// is there.
	luaRestore = newLua(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`)
)

// loadedScripts are loaded into every master by the handshake.
var loadedScripts = []*lua{
	luaRelease, luaExtend, luaReplace, luaDeleteSeen, luaExpireSeen,
}

// whole returns the command that runs the script, wherever it is sent.
func (l *lua) whole(keys []string, argv ...any) []any {
	args := append(make([]any, 0, 3+len(keys)+len(argv)), "EVAL", l.text, int64(len(keys)))
	for _, key := range keys {
		args = append(args, key)
	}
	return append(args, argv...)
}

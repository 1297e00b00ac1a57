package quorum

import (
	"crypto/sha1" //nolint:gosec // SHA-1 is Redis's name of a script, not a safeguard
	"encoding/hex"
)

// A lua is a script. A script that takes a lock, or undoes one, is sent whole (rule 13). The program of a round is sent by
// SHA-1; see program.go.
type lua struct {
	text string
	sha  string
}

// newLua makes a script of a text of ours, and leaves out its comments.
func newLua(text string) *lua { return wholeLua(shorten(text)) }

// wholeLua makes a script of a text, unchanged. A client's text must keep its lines, because its errors name them.
func wholeLua(text string) *lua { return &lua{text: text, sha: shaOf(text)} }

// shaOf returns the name that Redis gives a script.
func shaOf(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// The replies of scripts that compare.
const (
	didIt   = 1  // the comparison held
	other   = 0  // the key holds something else
	absent  = -1 // the key is absent
	tooLong = -2 // of luaAdd: the resulting TTL would be above the limit
	sooner  = -3 // of luaProlong: didIt, and the key expires sooner now
)

// luaExpires defines expires(key): the expiry in ms of the master's clock, and the possible error of the expiry.
const luaExpires = `
local function expires(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then return at, 0 end
  local now = redis.call('TIME') -- before Redis 7
  return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call('PTTL', key), 2
end
`

// luaIsOurs is the head of an undo. It ends the script unless the key has the token and the expiry that were set.
const luaIsOurs = luaExpires + `
--mutant: an undo does not compare the token
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local at, slack = expires(KEYS[1])
--mutant: an undo does not compare the expiry
if math.abs(at - ARGV[2]) > slack then return 0 end
`

// luaFree deletes the key, and rings for the clients that wait for the key, on any proxy. Where we may not publish, these
// clients wait for the end of the key's TTL. Without waiting clients, the ring costs a master less than half a microsecond.
const luaFree = `redis.pcall('PUBLISH', '` + BellPrefix + `' .. KEYS[1], '') return redis.call('DEL', KEYS[1])`

// luaProlong sets the remaining TTL, or a little more: the key expires at an instant for extensions (see expiries.choose).
//
// It returns the instant, or 1 if the master does not tell the instant. If the key now expires sooner than before, it returns
// the negated instant, or -3. Then it rings, too, because waiting clients know only the old time.
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

// luaIfHeld KEYS[1]=resource ARGV[1]=token: ends the script unless the token holds the resource.
const luaIfHeld = `
local v = redis.call('GET', KEYS[1])
if not v then return -1 end
if v ~= ARGV[1] then return 0 end
`

var (
	// luaRelease KEYS[1]=resource ARGV[1]=token: delete the resource if the token holds it.
	//mutant: a release does not compare
	luaRelease = newLua(luaIfHeld + luaFree)

	// luaHandOver KEYS[1]=resource ARGV[1]=token ARGV[2]=the bell's name: luaRelease, with a bell that says whose release the bell is.
	luaHandOver = newLua(luaIfHeld + `
redis.pcall('PUBLISH', '` + BellPrefix + `' .. KEYS[1], ARGV[2]) return redis.call('DEL', KEYS[1])`)

	// luaExtend KEYS[1]=resource ARGV[1]=token ARGV[2]=ms: set the remaining TTL if the token holds the resource, and reply as
	// luaProlong.
	//mutant: an extension does not compare
	//mutant: an extension makes a lock that is gone
	luaExtend = newLua(luaProlong + luaIfHeld + `return prolong(KEYS[1], ARGV[2])`)

	// luaAdd KEYS[1]=resource KEYS[2]=horizon ARGV[1]=token ARGV[2]=ms to add ARGV[3]=the largest allowed TTL ARGV[4]=the
	// earliest expiry. It replies with the new remaining TTL, the result of luaProlong, and the expiry; or with -2 if the TTL
	// would be above the limit.
	luaAdd = newLua(luaProlong + luaIfHeld + `
local left, most, at, slack = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3]), expires(KEYS[1])
local ms = math.max(left + ARGV[2], math.min(left + ARGV[4] - at, most))
if ms > most + 8 * slack + 4 then return -2 end -- a key may expire so much after the requested time: other masters add to their own expiries
ms = math.min(ms, most)
` + luaOutlast + `
if redis.call('PTTL', KEYS[2]) < ms then outlast(KEYS[2], math.floor(ms * 1.25)) end
return {ms, prolong(KEYS[1], string.format('%.0f', ms)), (expires(KEYS[1]))}`)

	// luaUndo KEYS[1]=resource ARGV[1]=token ARGV[2]=expiry: delete the resource if token and expiry are the same.
	luaUndo = newLua(luaIsOurs + luaFree)

	// luaReenter KEYS[1]=resource ARGV[1]=token ARGV[2]=expiry: 1 if the resource was taken, 2 if the token held the resource
	// already and the lock was extended. A lock is never shortened, because this attempt may be an earlier attempt that is
	// late, through another proxy. But an expiry that is not at a guarded instant is moved to one: expiries.choose says why.
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

	// luaTakeOrHolder KEYS[1]=resource ARGV[1]=token ARGV[2]=expiry: {1} if taken, else {0, the holder's token}.
	luaTakeOrHolder = newLua(`
local v = redis.call('GET', KEYS[1])
if v then return {0, v} end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return {1}`)

	// luaTakeOrLeft KEYS[1]=resource ARGV[1]=token ARGV[2]=expiry: {1} if taken, else {0, the remaining ms, or -1 for no
	// expiry}.
	luaTakeOrLeft = newLua(`
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then return {0, left} end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return {1}`)

	// luaReplace KEYS[1]=resource ARGV[1]=value ARGV[2]=ms: {1, the old value}, or {1} if the key was absent.
	luaReplace = newLua(`
local v = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if v then return {1, v} end
return {1}`)
)

// luaIfBlank is the head of a fill. KEYS[1]=resource KEYS[2]=canary ARGV[1]=the value to set ARGV[2]=its expiry ARGV[3]=the
// end of the time in which a fill may set anything ARGV[4]=the canary.
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

	// luaFillDump takes a dump in place of the value, and ARGV[5]=the value or digest that the restored key must have; any
	// other means that the lock has another holder by now. Only a string, or a hash of one field, is filled: any other value
	// may depend on other keys, as Redisson's read locks do. A restored key with another dump is deleted, because no undo
	// could recognise the key.
	luaFillDump = newLua(luaSight + luaIfBlank + `
redis.call('RESTORE', KEYS[1], ARGV[2], ARGV[1], 'REPLACE', 'ABSTTL')
local kind, seen = look(KEYS[1], 'whole')
if seen == ARGV[5] and redis.call('DUMP', KEYS[1]) == ARGV[1]
  --mutant: a part of a lock is filled
  and (kind == 'string' or kind == 'hash' and #redis.call('HGETALL', KEYS[1]) == 2) then return 1 end
redis.call('DEL', KEYS[1])
return 0`)
)

// luaSight defines the sight of a key on which a quorum agrees: the type, the value of a string or a digest of any other
// value, and the length. The digest is not of a DUMP, because dumps differ between versions of the server, and for a table
// of many entries between any two servers. A DUMP is used only if the type has no command here, or the command is not
// permitted.
//
// A long value is brought whole only on request. read.go says how other long values are brought and compared.
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

// A change of a key that a quorum holds names the type and value that the quorum told. The change applies only where the key
// still has both.
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
	// luaLook KEYS ARGV=how to look at each key (see the constants of read.go) ARGV[#KEYS + 1]=the room in bytes ARGV[#KEYS +
	// 2]='part' to tell of as many keys as have room, and of at least one.
	//
	// It returns an array with an item for each key: {type, value or digest, length, remaining ms, expiry, possible error of
	// the expiry, first bytes of a long value if requested}, or {"none"}. If all keys are requested and the room is too small,
	// it returns the room that they need.
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

	// luaPresent KEYS and ARGV as luaLook, always in part. It returns an array with an item for each key: the value of a short
	// string, nil for an absent key, else {type, digest, length}. A short string costs one command, where luaLook needs five.
	luaPresent = newLua(luaSight + sized(`
local all, room, took = {}, tonumber(ARGV[#KEYS + 1]), 0
for i, key in ipairs(KEYS) do
  local value = call('GETRANGE', key, 0, @SHORT@)
  if type(value) == 'string' and value ~= '' and #value <= @SHORT@ then
    all[i] = value
  else
    local kind, how = redis.call('TYPE', key).ok, ARGV[i]
    local n = kind == 'none' and 0 or sizeOf(key, kind)
    if kind ~= 'string' then took = took + (n <= @MANY@ and n * @ENTRY@ or 0)
    elseif how ~= 'sample' or n <= @LONG@ then took = took + n end
    if took > room and i > 1 then break end
    all[i] = kind ~= 'none' and {look(key, how, kind, n)}
  end
end
return all`))

	// luaEdit KEYS, and for each key five in ARGV: the expected type ('none' if absent), the expected value or digest, the
	// edit, the new value, and the new expiry. A 'replace' keeps the former expiry if later.
	//
	// It does nothing and replies 0 if any key has another type or value. Else it replies with 1 and the former expiry of each
	// key, 0 for no expiry.
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

	// luaRepair KEYS ARGV[1]=1 to set absent keys, too; and then for each key: the value to set, its expiry, or 0 to delete
	// the key, the number of stale versions, and for each stale version its digest and its expiry. A key that holds a stale
	// version is replaced, or deleted. The reply is 1 if any key was set.
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

	// luaPutBack as luaUndo, and ARGV[3]=the former value ARGV[4]=the former expiry, to be set again. It rings as luaProlong.
	luaPutBack = newLua(luaIsOurs + `
if at > tonumber(ARGV[4]) then redis.pcall('PUBLISH', '` + BellPrefix + `' .. KEYS[1], '') end
redis.call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
return 1`)

	// luaRestore KEYS[1]=resource ARGV[1]=the deleted value ARGV[2]=its expiry: set the value again if the key is absent.
	luaRestore = newLua(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`)
)

// loadedScripts are loaded into every master by the handshake.
var loadedScripts = []*lua{
	luaRelease, luaExtend, luaReplace, luaDeleteSeen, luaExpireSeen,
}

// whole returns the command that runs the script, with the whole text, on any master.
func (l *lua) whole(keys []string, argv ...any) []any {
	args := append(make([]any, 0, 3+len(keys)+len(argv)), "EVAL", l.text, int64(len(keys)))
	for _, key := range keys {
		args = append(args, key)
	}
	return append(args, argv...)
}

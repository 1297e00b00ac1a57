-- The text that a master runs for a client's script. script_wrapper.go has the contract, and sends:
--
--   local __lockproxy,redis,server,… = {redis,false,_G},{} __lockproxy[2]=function() <the client's text>
--   end local last=<the number of lines of the client's text>
--   <this file>
--
-- script_wrapper.go leaves out comments, indentation and empty lines, and fills in --[[NAMES]] and '@NAMES@'.
--
-- script_own.lua has the replacements for Lua's math, tostring and the like.

local real, script, all, raise = __lockproxy[1], __lockproxy[2], __lockproxy[3], error
__lockproxy = nil -- else the client's text could name __lockproxy
local call, find, sub, lower, floor = real.pcall, string.find, string.sub, string.lower, math.floor
if not real.REDIS_VERSION_NUM then -- before Redis 7, errors name a line of the wrapper, and lack their code
  call = function(...)
    local reply = real.pcall(...)
    local text = type(reply) == 'table' and type(reply.err) == 'string' and string.match(reply.err, '^@user_script: %d+: (.*)')
    if text then reply.err = 'ERR ' .. string.gsub(text, '[fF]rom Lua script', 'from script') end
    return reply
  end
end

-- Our own arguments are the last seven.
local n = #ARGV
local mode, factor, extra = ARGV[n - 6], tonumber(ARGV[n - 5]), tonumber(ARGV[n - 4])
local most, label, probe, latest = tonumber(ARGV[n - 3]), ARGV[n - 2], ARGV[n - 1], tonumber(ARGV[n])
for i = n - 6, n do ARGV[i] = nil end

-- before: by key, the value and the expiry when the script first wrote the key
--
-- written: the keys of before, in the order of the first writes
--
-- origin: by key, the source of its expiry: 'script', a command of the script; or 'other', another key, as by RENAME
--
-- holds: by the name of a key outside KEYS, without the number at its end: whether such a key was there to be extended
local keys, own, before, written, origin, holds, parts, line, stop, three, began = {}, {}, {}, {}, {}, {}, 0, 0, nil, false, nil
for i, k in ipairs(KEYS) do keys[i], own[k] = k, true end
local reading = find(mode, 'r', 1, true)

local function now()
  local t = call('TIME')
  return t[1] * 1000 + floor(t[2] / 1000)
end
--mutant: a forced unlock by vote runs late
if latest and now() > latest then return {err = '@LATE@'} end
local function expiry(key)
  local at = call('PEXPIRETIME', key)
  if type(at) ~= 'number' then -- before Redis 7
    at = call('PTTL', key)
    began = began or now()
    if at >= 0 then at = at + began end
  end
  return at
end
local function same(a, b) -- two expiries; a calculated expiry varies by up to 2 ms
  return a == b or began and a > 0 and b > 0 and a - b < 3 and b - a < 3
end
--[[VALUE]]

-- ends the script. The client's text may catch the error. Even so the script is stopped, because the wrapper looks at stop at
-- the end.
local function refuse(why)
  stop = stop or why
  raise(why, 0)
end

local function text(x) -- a number as Redis takes the number
  return type(x) == 'number' and string.format('%.17g', x) or x
end

-- counts the bytes that the script has read, or is about to change. The count has a bound, because a master does nothing else
-- until the script ends.
local moved = 0
local function weigh(reply)
  if type(reply) == 'string' then moved = moved + #reply
  elseif type(reply) == 'table' then
    for _, item in ipairs(reply) do
      if type(item) == 'string' then moved = moved + #item end
    end
  end
  if moved > @SCRIPTMAX@ then
    refuse('it reads or changes more than @SCRIPTMAX@ bytes at one moment; make several scripts of it')
  end
end

-- is called for each key of each command, before the command runs
local function touch(key, kind)
  if not own[key] then
    key = text(key)
    if type(key) ~= 'string' then return end -- Redis says it in its own words
    local found = own[key]
    for _, k in ipairs(find(mode, 'd', 1, true) and keys or {}) do
      found = found or k ~= 'lockproxy' and sub(key, 1, #k + 1) == k .. ':'
    end
    if not found then refuse("it uses the key '" .. key .. "', which is not one of its KEYS") end
  end
  if kind == 'w' and not before[key] then
    local value = valueOf(key)
    weigh(value)
    before[key] = {value, value and expiry(key) or -2}
    written[#written + 1] = key
  end
end

-- is called after a command that may give a key an expiry, and notes whether the command did. The new expiry alone does not
-- tell, because the new expiry may equal the old one.
local function expires(name, reply, key, ...)
  if type(reply) == 'table' and reply.err then return end
  if name == 'pexpire' and not own[key] then
    local hold = string.match(text(key), '^(.*):')
    --mutant: a reader extends where its own hold is over
    holds[hold] = holds[hold] or reply == 1
  end
  local done, arg, i = reply and reply ~= 0, {...}, name == 'set' and 2 or 1
  if name == 'rename' or name == 'renamenx' or name == 'copy' then
    if done then origin[text(arg[1])] = origin[text(key)] or 'other' end
    return
  end
  local ttl = name ~= 'set' and name ~= 'getex'
  if not ttl then
    local get, met = false, true -- with GET, SET replies with the old value; whether SET wrote follows from the old value
    while arg[i] do
      local option = lower(text(arg[i]))
      if option == 'ex' or option == 'px' or option == 'exat' or option == 'pxat' then ttl, i = true, i + 1
      elseif option == 'get' then get = true
      elseif option == 'nx' then met = not reply
      elseif option == 'xx' then met = reply
      elseif option == 'ifeq' then met, i = reply == text(arg[i + 1]), i + 1
      elseif option == 'ifne' then met, i = reply ~= text(arg[i + 1]), i + 1
      elseif sub(option, 1, 3) == 'ifd' then met, i = false, i + 1 -- compares a digest: only the expiry tells whether SET wrote
      end
      i = i + 1
    end
    if get then done = met end
  end
  if done and ttl then origin[text(key)] = 'script' end
end

-- says whether the script gave the key this expiry. If so, the expiry lacks our addition.
local function given(key, ends)
  --mutant: a script's new expiry is known by its time alone
  return origin[key] == 'script' or not same(before[key][2], ends) and (ends < 0 or origin[key] ~= 'other')
end

-- returns a TTL that the script reads, without our addition
local function shown(name, key, left)
  if type(left) ~= 'number' or left == -2 then return left end
  if before[key] and given(key, expiry(key)) then return left end
  left = call('PTTL', key)
  --mutant: the TTL that a script reads is that of the key
  local late = real.REDIS_VERSION_NUM and 3 or 19 -- the most by which the key expires after the requested time: see expiry.go
  left = left < 0 and most or math.max(1, floor((left - extra - late) / (1 + factor)))
  if find(name, 'expiretime', 1, true) then left = left + now() end
  if sub(name, 1, 1) ~= 'p' then left = floor((left + 500) / 1000) end
  return left
end

-- clock: the TTLs and times that the script has read. Replies that differ only in these numbers count as equal; see vote/seen.go
local clock = {}
local function timed(reply)
  for _, v in ipairs(type(reply) == 'table' and reply or {reply}) do
    if type(v) == 'string' or v >= 0 then clock[v], clock[tonumber(v)], clock[tostring(v)] = true, true, true end
  end
  return reply
end
local function time(reply) -- and the numbers that scripts make of TIME: seconds, milliseconds or microseconds
  if reply.err then return reply end
  local s, us = unpack(reply)
  timed({s + us / 1000000, s * 1000 + us / 1000, s * 1000 + floor(us / 1000), s * 1000000 + us})
  return timed(reply)
end

local readOnly = 'ERR Write commands are not allowed from read-only scripts.'

local differs = 'gives a different result on every master'

-- The functions that few scripts need are made when first needed.
local rarely
local function rare()
  if rarely then return rarely end
  rarely = {}
  function rarely.touch(kind, spec, ...) -- specs: script_wrapper.go
    local from, to, step, arg = 1, select('#', ...), 1, {...}
    if spec == '2' then to = math.min(to, 2)
    elseif spec == '%' then step = 2
    elseif spec == 'b' then from = 2
    elseif spec == 'o' then
      local what = lower(tostring(arg[1]))
      if what == 'idletime' or what == 'freq' then refuse("it calls 'object " .. what .. "', which " .. differs) end
      from, to = 2, math.min(to, 2)
    elseif spec == 'c' then
      for i = 3, to do
        if type(arg[i]) == 'string' and lower(arg[i]) == 'db' then refuse('it copies to another database') end
      end
      to = math.min(to, 2)
    elseif spec == 'n' then from, to = 2, math.min(to, 1 + (tonumber(arg[1]) or 0))
    elseif spec == 'd' then
      touch(arg[1], kind)
      from, to = 3, math.min(to, 2 + (tonumber(arg[2]) or 0))
    end
    for i = from, to, step do touch(arg[i], kind) end
  end
  function rarely.malformed(name, ...) -- Redis refuses such a command before it checks for writes
    for i = 1, select('#', ...) do
      local t = type((select(i, ...)))
      if t ~= 'string' and t ~= 'number' then return true end
    end
    local info = call('COMMAND', 'INFO', name)
    local n, wants = 1 + select('#', ...), info[1] and info[1][2]
    return wants and (n < math.abs(wants) or wants > 0 and n > wants)
  end
  function rarely.unknown(name, ...) -- refuses the command, unless Redis itself refuses the command
    local info, writes = call('COMMAND', 'INFO', name), false
    if not info.err and not info[1] then return end
    for k, v in pairs(info[1] and (info[1][3].set or info[1][3]) or {}) do
      local flag = type(v) == 'table' and v.ok or type(k) == 'table' and k.ok or k
      if flag == 'noscript' then return end
      if flag == 'write' then writes = true end
    end
    if rarely.malformed(name, ...) then return end
    if reading and writes then return {err = readOnly} end
    refuse("it calls '" .. name .. "', which blocks, scans, administers, or " .. differs)
  end
  function rarely.publish(name, ...)
    local channel, message = ...
    message = text(message)
    if select('#', ...) ~= 2 or type(channel) ~= 'string' or type(message) ~= 'string' then return call(name, ...) end
    if sub(channel, 1, 10) == 'lockproxy:' then refuse("it publishes to '" .. channel .. "', a channel of lockproxy's own") end
    if parts > 65535 then refuse('it publishes more than 65536 messages') end
    if name == 'spublish' then channel = 'lockproxy:shard:' .. channel end
    parts = parts + 1
    return call('PUBLISH', channel, label .. string.format('%04x', parts - 1) .. ':' .. message)
  end
  -- Redis replies to some commands in no order. Here such a reply gets one order, the same on every master, because a script may
  -- take the first item, or join all items. Integers come as in Redis's own small sets. Other items come by their digests,
  -- because the order of texts depends on the locale.
  local function sorted(words)
    local by, at, numbers = {}, {}, true
    for i = 1, #words do
      local word = words[i]
      numbers = numbers and (word == '0' or find(word, '^-?[1-9]%d*$') and string.format('%.0f', word) == word)
    end
    for i, word in ipairs(words) do
      local sign = numbers and tonumber(word) or real.sha1hex(word)
      by[i], at[sign] = sign, word
    end
    table.sort(by)
    for i, sign in ipairs(by) do by[i] = at[sign] end
    return by
  end
  local function fields(hash) -- the names of the fields, in order, and the values by name
    local names, values = {}, hash.map or {}
    for i = 1, #hash, 2 do names[#names + 1], values[hash[i]] = hash[i], hash[i + 1] end
    for name in pairs(hash.map or {}) do names[#names + 1] = name end
    return sorted(names), values
  end
  function rarely.inOrder(name, reply, key)
    local out = {}
    if reply.set or reply.map then -- the order of pairs follows the order of insertion into a table
      local names, values = fields({map = reply.set or reply.map})
      for _, k in ipairs(names) do out[k] = values[k] end
      return reply.set and {set = out} or {map = out}
    end
    local hash = name == 'hvals' and call('HGETALL', key) or name == 'hgetall' and reply -- values come in the order of HKEYS
    if not hash or hash.err then return sorted(reply) end
    local names, values = fields(hash)
    for i, k in ipairs(names) do
      if name == 'hvals' then out[i] = values[k]
      else out[2 * i - 1], out[2 * i] = k, values[k] end
    end
    return out
  end
  function rarely.select(...) -- allows only the database in which the script runs
    local db, own = tostring((...)), string.match(mode, '%d+')
    if not tonumber(db) or select('#', ...) > 1 then return call('SELECT', ...) end -- Redis says it in its own words
    if db ~= own then refuse("it selects database '" .. db .. "', and its client is in " .. own .. '; let the client select it') end
    return {ok = 'OK'}
  end
  return rarely
end

-- likely: the rows of script_wrapper.go for the commands that the text names; commands: all rows
local likely, commands = {--[[LIKELY]]}, '@COMMANDS@'

-- is the script's redis.pcall
local function run(name, ...)
  local command, how = name, likely[name]
  if not how then
    command = type(name) == 'string' and lower(name) or ''
    local _, at = find(commands, ' ' .. command .. '=', 1, true)
    if not at or find(command, ' ', 1, true) then
      local refusal = command ~= '' and rare().unknown(name, ...)
      if refusal then return refusal end
      if name == nil and select('#', ...) == 0 then return call() end
      return call(name, ...)
    end
    how = sub(commands, at + 1, at + 2)
  end
  local kind, spec = sub(how, 1, 1), sub(how, 2, 2)
  local sets = kind == 'e'
  if sets then kind = 'w' end
  if reading and (kind == 'w' or kind == 'p') then
    if rare().malformed(name, ...) then return call(name, ...) end
    return {err = readOnly}
  end
  if kind == 'p' then return rare().publish(lower(command), ...) end
  if kind == 's' then return rare().select(...) end
  if spec == '1' or spec == '*' and select('#', ...) == 1 then touch((...), kind)
  elseif spec ~= '0' then rare().touch(kind, spec, ...) end
  if kind == 't' then
    command = lower(command)
    if command == 'time' then return time(call(name, ...)) end
    return timed(shown(command, (...), call(name, ...)))
  end
  local reply = call(name, ...)
  if kind == 'u' and type(reply) == 'table' and (reply[2] or reply.map or reply.set) then return rare().inOrder(lower(command), reply, ...) end
  if sets then expires(lower(command), reply, ...) end
  if kind == 'r' then weigh(reply) end
  return reply
end

server = redis
redis.pcall = run
redis.call = function(name, ...)
  local how, reply = likely[name]
  if how == 'r1' and own[(...)] or how == 'w1' and before[(...)] then -- only the size needs a guard
    reply = call(name, ...)
    if how == 'r1' then weigh(reply) end
  else reply = run(name, ...) end
  if type(reply) == 'table' and reply.err then raise(reply, 0) end
  return reply
end
--[[SETRESP]]
setmetatable(redis, {__newindex = real, __metatable = false, __index = function(_, name)
  if name == 'set_repl' then refuse('it would keep what it does from the append-only file') end
  if name ~= 'call' and name ~= 'pcall' then return real[name] end -- call and pcall are ours, or absent
end})
--[[OWN]]
--[[GLOBALS]]

-- writes a reply in a form from which Go reads the whole reply; value.go has the form
local function encode(v, depth)
  local t = type(v)
  if t == 'string' then return (clock[v] and '@$' or '$') .. #v .. ':' .. v end
  if t == 'number' then return (clock[v] and '@:' or ':') .. string.format('%.17g', v) .. ';' end
  if t == 'boolean' and three then return v and 't' or 'f' end
  if t == 'boolean' then return v and ':1;' or '_' end
  if t ~= 'table' then return '_' end
  if depth > 100 then return '-27:ERR reached lua stack limit' end
  local function field(name, kind)
    local x = rawget(v, name)
    return type(x) == kind and x
  end
  local x = field('err', 'string')
  if x then return '-' .. #x .. ':' .. x end
  x = field('ok', 'string')
  if x then return '+' .. #x .. ':' .. x end
  x = field('double', 'number')
  if x then return ',' .. string.format('%.17g', x) .. ';' end
  local out, n = {}, 0
  x = field('map', 'table')
  if x then
    for k, y in pairs(x) do
      out[n + 1], out[n + 2], n = encode(k, depth + 1), encode(y, depth + 1), n + 2
    end
    return '%' .. n / 2 .. ';' .. table.concat(out)
  end
  x = field('set', 'table')
  if x then
    for k in pairs(x) do out[n + 1], n = encode(k, depth + 1), n + 1 end
    return '~' .. n .. ';' .. table.concat(out)
  end
  x = field('big_number', 'string')
  if x then return '(' .. #x .. ':' .. x end
  x = field('verbatim_string', 'table')
  if x and type(rawget(x, 'format')) == 'string' and type(rawget(x, 'string')) == 'string' then
    x = sub(x.format .. '   ', 1, 3) .. x.string
    return '=' .. #x .. ':' .. x
  end
  while true do
    x = rawget(v, n + 1)
    if x == nil then break end
    out[n + 1], n = encode(x, depth + 1), n + 1
  end
  return '*' .. n .. ';' .. table.concat(out)
end

-- Run the client's text.
local raised
local ok, result = xpcall(script, function(what)
  raised = what
  for level = 3, 12 do -- up to a function of the client's: the guard's lines come after the client's last line
    local _, at = pcall(raise, '', level)
    at = tonumber(string.match(at, '^user_script:(%d+):'))
    if at and at <= last then
      line = at
      return
    end
  end
end)
local answer, longest, size = {'', ''}, 0, 2

-- Redisson extends a lock of readers even if the caller's own hold on this master is over, because the master has missed an
-- extension. Such a lock ends when the other readers leave. So the reply is no yes. The reply is no refusal either: the client
-- counts on the hold, and other threads of the caller may hold the lock. KEYS are pairs: a lock, and the prefix of the names
-- of its holds. ARGV names the caller, or one caller for each thread. Holds under other names do not count here, as the holds
-- of the same thread's write lock, because these have no time of their own.
for hold, there in pairs(ok and holds or {}) do
  for i = 2, #keys, 2 do
    for _, caller in ipairs(there and {} or ARGV) do
      --mutant: a reader's holds are known by how their names begin
      if hold == keys[i] .. ':' .. caller .. ':rwlock_timeout' then
        local over = {err = '@OVER@'}
        if type(result) == 'table' then result[i / 2] = over else result = over end -- of several locks only this lock
      end
    end
  end
end
if ok then
  answer[1] = encode(result, 0)
else
  if type(raised) ~= 'table' then raised = 'ERR ' .. tostring(raised)
  else -- no code of the client's may run any more, such as a __tostring
    local err = rawget(raised, 'err')
    raised = (type(err) == 'string' or type(err) == 'number') and tostring(err) or 'ERR unknown error'
  end
  answer[1] = '!' .. line .. ';' .. #raised .. ':' .. raised
end

-- runs a command of the wrapper's. If the command fails, the script is stopped, because its keys would end before the promised
-- time.
local function must(...)
  local reply = call(...)
  if type(reply) == 'table' and reply.err then stop = stop or reply.err end
end

-- Report each written key that has changed. A key to which the script gave a TTL gets our addition to the TTL.
for _, key in ipairs(written) do
  if stop then break end
  local was, is = before[key], valueOf(key)
  local ends = is and expiry(key) or -2
  local new = is and given(key, ends)
  if is ~= was[1] or new or not same(ends, was[2]) then
    local effect, ttl, left, lasts = not was[1] and 'c' or is ~= was[1] and 'm' or 'e', 0, 0, 0
    if not is then
      effect, ends = 'd', 0
      call('PUBLISH', '@BELL@' .. key, '') -- for clients that wait with LOCK
    elseif ends < 0 then -- for ever
      ttl, ends = most, now() + most
      lasts = ttl
    elseif find(mode, 'q', 1, true) and (key == keys[2] or key == keys[3]) then -- a changed queue gets the whole time anew
      lasts, ends = most, now() + most
    else
      left = call('PTTL', key)
      if new then ttl = left
      elseif not same(ends, was[2]) then ttl = -math.max(1, floor((left - extra) / (1 + factor))) end
      lasts = ttl
    end
    -- A longer TTL that another proxy has allowed may be read, and set again.
    --mutant: a TTL above the longest is refused where it was there
    if ttl > most and ends > was[2] then stop = 'it sets a TTL above ttl_max, ' .. most .. ' ms; ask for less, or raise ttl_max on every lockproxy' end
    if lasts > 0 then
      --mutant: a script's keys are kept without drift and grace
      local more = math.ceil(lasts * factor) + extra
      ends, left = ends + more, lasts + more
      -- An undo recognises a key by its value and its expiry. So an extension leaves an expiry other than the former one.
      local gap, late = began and 5 or 1, was[2] - ends
      --mutant: an extension by vote leaves the expiry that it found
      if effect == 'e' and late > -gap and late < 8 * gap then ends, left = was[2] + gap, left + late + gap end
      --mutant: a script does not look whether its keys are kept
      must('PEXPIREAT', key, ends)
    end
    if is and ends < was[2] then call('PUBLISH', '@BELL@' .. key, '') end -- as luaProlong
    if left > longest then longest = left end
    answer[size + 1], answer[size + 2], answer[size + 3], answer[size + 4] = key, effect, math.abs(ttl), ends
    local content = is or was[1]
    answer[size + 5], answer[size + 6], answer[size + 7] = #content > 64 and real.sha1hex(content) or content, is and was[1] or '', was[2]
    size = size + 7
  end
end

-- The horizon lasts as long as the keys set here, with head-room.
--mutant: a script does not extend the horizon
if longest > 0 and call('PTTL', '@HORIZON@') < longest then
  --mutant: a script does not look whether the horizon lasts
  longest = floor(math.max(longest * 1.25, longest + 1000))
  must('SET', '@HORIZON@', '1', 'PX', longest)
  must('SET', '@HORIZON@:end', now() + longest)
end

-- Read the field that a quorum must agree on, if any.
if probe ~= '' and not stop then
  local field = call('HGET', keys[1], probe) or ''
  if type(field) == 'string' then answer[2] = field
  elseif not find(field.err, 'WRONGTYPE', 1, true) then stop = 'HGET: ' .. field.err end
end

-- Put back all that a stopped script wrote.
if stop then
  for i = #written, 1, -1 do
    local key = written[i]
    local was = before[key]
    if was[1] then call('RESTORE', key, math.max(was[2], 0), was[1], 'REPLACE', 'ABSTTL')
    else call('DEL', key) end
  end
  return {'?' .. #stop .. ':' .. stop, ''}
end
return answer

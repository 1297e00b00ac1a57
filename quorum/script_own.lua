-- The replacements for the functions of Lua that differ between processes. The wrapper has this part only for texts that name
-- such a function.

-- math.random gives Redis's numbers. But all masters share one seed, and each attempt has another seed.
local hi, lo
local function seed(n) hi, lo = floor(n / 256) % 16777216, n % 256 * 65536 + 13070 end -- 24 bits each
seed(tonumber(sub(real.sha1hex(label), 1, 8), 16))
local function integer(x, at, name)
  local n = tonumber(x)
  if not n then raise('bad argument #' .. at .. " to '" .. name .. "' (number expected, got " .. (x == nil and 'no value' or type(x)) .. ')', 3) end
  return n < 0 and -floor(-n) or floor(n)
end
local function random(...)
  local n, from, to = select('#', ...), 1, nil
  local low = lo * 15525485 + 11
  hi = (hi * 15525485 + lo * 1502 + floor(low / 16777216)) % 16777216
  lo = low % 16777216
  local r = (hi * 128 + floor(lo / 131072)) % 2147483647 / 2147483647
  if n == 0 then return r end
  if n > 2 then raise('wrong number of arguments', 2) end
  to = integer((...), 1, 'random')
  if n == 2 then from, to = to, integer(select(2, ...), 2, 'random') end
  if from > to then raise('bad argument #' .. n .. " to 'random' (interval is empty)", 2) end
  return floor(r * (to - from + 1)) + from
end
local function randomseed(x) seed(integer(x, 1, 'randomseed') % 4294967296) end

-- An address is made of the label and a running number, and so is the same on every master.
local addresses, made = {}, 0
local function name(...)
  if select('#', ...) == 0 then raise("bad argument #1 to 'tostring' (value expected)", 2) end
  local x = ...
  local text, kind = tostring(x), type(x)
  if kind == 'string' or not find(text, '^' .. kind .. ': ') then return text end
  if not addresses[x] then
    made = made + 1
    addresses[x] = kind .. ': 0x' .. sub(real.sha1hex(label .. made), 1, 12)
  end
  return addresses[x]
end

local function traverse(...)
  local t, n, odd = (...), 0, false
  if type(t) ~= 'table' then
    raise("bad argument #1 to 'pairs' (table expected, got " .. (select('#', ...) == 0 and 'no value' or type(t)) .. ')', 2)
  end
  for k in pairs(t) do
    n, odd = n + 1, odd or type(k) ~= 'string' and type(k) ~= 'number' and type(k) ~= 'boolean'
  end
  if odd and n > 1 then refuse('it goes through a table whose keys are tables or functions: their order is another on every master') end
  return pairs(t)
end

local function collect(what, ...)
  local does = what == nil or what == 'collect' or what == 'stop' or what == 'restart'
  if not does then refuse("it calls 'collectgarbage', which " .. differs) end
  return all.collectgarbage(what, ...)
end

local mine = {math = setmetatable({random = random, randomseed = randomseed}, {__index = math, __metatable = false}), tostring = name,
  pairs = traverse, collectgarbage = collect, gcinfo = function() refuse("it calls 'gcinfo', which " .. differs) end}
mine.os = setmetatable({}, {__metatable = false, __index = function(_, what)
  if not rawget(all, 'os') then raise("Script attempted to access nonexistent global variable 'os'", 2) end
  if what == 'clock' then return function() refuse("it calls 'os.clock', which " .. differs) end end
end})
lend(mine)

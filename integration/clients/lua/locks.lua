-- One client of redis-lua, by commands; see ../go/remote.

local redis = require 'redis'
local socket = require 'socket'

local RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'
local EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end'
local DOUBLE = 'return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))'

local function connect() return redis.connect(os.getenv('PROXY_HOST'), tonumber(os.getenv('PROXY_PORT'))) end

local client, locks = connect(), {}

local function random()
  local source = assert(io.open('/dev/urandom', 'rb'))
  local bytes = source:read(16)
  source:close()
  return bytes
end

local function unhex(digits)
  return (digits:gsub('%x%x', function(byte) return string.char(tonumber(byte, 16)) end))
end

local act = {}

function act.lock(id, name, ttl, token)
  locks[id] = {name = name, ttl = ttl, token = token == '-' and random() or unhex(token:sub(2))}
  return true
end

function act.acquire(id, wait)
  local lock, stop = locks[id], socket.gettime() + wait / 1000
  while not client:set(lock.name, lock.token, 'NX', 'PX', lock.ttl) do
    if socket.gettime() >= stop then return false end
    socket.sleep(0.05)
  end
  assert(client:get(lock.name) == lock.token, 'GET tells another token')
  return true
end

function act.release(id)
  local sha = client:script('LOAD', RELEASE)
  return client:evalsha(sha, 1, locks[id].name, locks[id].token) == 1
end

function act.extend(id, ttl)
  return client:eval(EXTEND, 1, locks[id].name, locks[id].token, ttl) == 1
end

-- Uses everything else that the library has, and returns what it has used.
local function use(name, piped)
  local used = {}
  local function step(what, got, wanted)
    assert(got == wanted, what .. ': ' .. tostring(got))
    used[#used + 1] = what
  end
  local text, number, fields, items = name .. ':text', name .. ':number', name .. ':fields', name .. ':items'
  client:mset(text, 'one', number, 2)
  step('strings', table.concat(client:mget(text, number), ' '), 'one 2')
  client:hset(fields, 'a', 1)
  step('hash', client:hgetall(fields).a, '1')
  client:rpush(items, 'x', 'y')
  step('list', table.concat(client:lrange(items, 0, -1), ' '), 'x y')
  client:rpush(name .. ':queue', 'z')
  step('BLPOP', table.concat(client:blpop(name .. ':queue', 20), ' '), name .. ':queue z')
  local replies = client:transaction({cas = true, watch = {number}}, function(t)
    t:get(number)
    t:multi()
    t:incr(number)
    t:hincrby(fields, 'a', 1)
  end)
  step('WATCH, MULTI', table.concat(replies, ' '), '3 2')
  replies = client:pipeline(function(p)
    p:set(text, 'two')
    p:set(piped, 't', 'NX', 'PX', 30000)
    p:get(text)
    p:del(piped)
  end)
  step('pipeline', replies[3] .. ' ' .. tostring(replies[4]), 'two 1')
  local listener, heard = connect(), nil
  for message, stop in listener:pubsub({subscribe = {name .. ':news'}}) do
    if message.kind == 'subscribe' then client:publish(name .. ':news', 'hello') end
    if message.kind == 'message' then
      heard = message.payload
      stop()
    end
  end
  step('pub/sub', heard, 'hello')
  step('scripts', client:eval(DOUBLE, 1, number), 6)
  return table.concat(used, ', ')
end

io.stdout:setvbuf('line')
print('ready ' .. redis._VERSION:match('[%d.]+') .. ' extends tokens data')
for line in io.lines() do
  local words = {}
  for word in line:gmatch('%S+') do words[#words + 1] = word end
  local verb = table.remove(words, 1)
  local answer
  local went, result = pcall(verb == 'data' and use or act[verb], unpack(words))
  if not went then
    answer = 'error ' .. tostring(result):gsub('[\r\n]', ' ')
    local again, fresh = pcall(connect) -- the library does not connect again by itself
    if again then client = fresh end
  elseif verb == 'data' then
    answer = 'used ' .. result
  else
    answer = result and 'yes' or 'no'
  end
  print(answer)
end

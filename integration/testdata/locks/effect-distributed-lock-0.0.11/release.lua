
local key = KEYS[1]
local channel = KEYS[2]
local permits = tonumber(ARGV[1])
local holderId = ARGV[2]
local shouldPublish = tonumber(ARGV[3]) == 1
local args = {}

for i = 0, permits - 1 do
  table.insert(args, holderId .. '_' .. i)
end

local released = redis.call('zrem', key, unpack(args))

-- Notify waiters that permits may be available
if released > 0 and shouldPublish then
  redis.call('publish', channel, released)
end

return released

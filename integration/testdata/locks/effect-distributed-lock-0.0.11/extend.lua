
local key = KEYS[1]
local limit = tonumber(ARGV[1])
local permits = tonumber(ARGV[2])
local holderId = ARGV[3]
local ttlMs = tonumber(ARGV[4])
local now = tonumber(ARGV[5])
local expiredTimestamp = now - ttlMs

-- Remove expired entries
redis.call('zremrangebyscore', key, '-inf', expiredTimestamp)

-- Check if we still hold the first permit (indicator that we still own it)
if redis.call('zscore', key, holderId .. '_0') then
  -- Update all permits with new timestamp
  local args = {}
  for i = 0, permits - 1 do
    table.insert(args, now)
    table.insert(args, holderId .. '_' .. i)
  end
  redis.call('zadd', key, unpack(args))
  redis.call('pexpire', key, ttlMs)
  return 1
else
  return 0
end

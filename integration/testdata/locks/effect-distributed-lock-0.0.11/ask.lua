
local key = KEYS[1]
local ttlMs = tonumber(ARGV[1])
local now = tonumber(ARGV[2])
local expiredTimestamp = now - ttlMs

-- Remove expired entries
redis.call('zremrangebyscore', key, '-inf', expiredTimestamp)

return redis.call('zcard', key)


        local key = KEYS[1]
        local ownerId = ARGV[1]
        local ttl = tonumber(ARGV[2])

        if redis.call('GET', key) == ownerId then
          return redis.call('EXPIRE', key, ttl)
        else
          return 0
        end
      
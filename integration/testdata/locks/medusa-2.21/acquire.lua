
        local key = KEYS[1]
        local ownerId = ARGV[1]
        local ttl = tonumber(ARGV[2])
        local awaitQueue = ARGV[3] == 'true'

        local setArgs = {key, ownerId, 'NX'}
        if ttl > 0 then
            table.insert(setArgs, 'EX')
            table.insert(setArgs, ttl)
        end

        local setResult = redis.call('SET', unpack(setArgs))

        if setResult then
            return 1
        elseif not awaitQueue then
            -- Key already exists; retrieve the current ownerId
            local currentOwnerId = redis.call('GET', key)
            if currentOwnerId == '*' then
              return 0
            elseif currentOwnerId == ownerId then
                setArgs = {key, ownerId, 'XX'}
                if ttl > 0 then
                    table.insert(setArgs, 'EX')
                    table.insert(setArgs, ttl)
                end
                redis.call('SET', unpack(setArgs))
                return 1
            else
                return 0
            end
        else
            return 0
        end

      
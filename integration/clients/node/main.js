// Libraries of Node. Each has a name, a version, client(), close(client) and lock(client, name, ttl, { token, keep }),
// and says what it has: tells (release says whether the lock was still held), extends, tokens (the caller chooses the
// token), reenters, watchdog (the TTL of a lock that keep keeps alive), more(run) (uses what else its locks have), data(run,
// client, name, used) (uses everything else that the library has, under names that begin with name). Locks have acquire(wait), release() and extend(ttl), which
// resolve to whether they succeeded; an error that is not "somebody else has it" rejects.
'use strict'

const { randomBytes } = require('node:crypto')
const { run, ask, want, until, polling, versionOf, host, port, LONG } = require('./scenarios.js')

const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'
const DOUBLE = 'return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))'
const EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end'

function ioredis (major) {
  const Redis = require(`ioredis-${major}`)
  const library = {
    name: 'ioredis',
    version: versionOf(`ioredis-${major}`),
    tells: true,
    extends: true,
    tokens: true,
    async client () {
      const client = new Redis({ host, port, lazyConnect: true, connectionName: 'by-hand', retryStrategy: () => 50 })
      client.on('error', () => {}) // the scenarios see it as a rejected command
      client.defineCommand('release', { numberOfKeys: 1, lua: RELEASE })
      client.defineCommand('double', { numberOfKeys: 1, lua: DOUBLE })
      await client.connect()
      return client
    },
    async close (client) { client.disconnect() },
    data: useIoredis,
    lock (client, name, ttl, { token = randomBytes(16) }) {
      return {
        acquire: polling(async () => {
          const reply = await client.set(name, token, 'PX', ttl, 'NX')
          want(reply === 'OK' || reply === null, `SET: ${reply}`)
          if (reply === null) return false
          want(token.equals(await client.getBuffer(name)), 'GET tells another token')
          return true
        }),
        release: async () => await client.release(name, token) === 1, // EVALSHA, and EVAL on NOSCRIPT
        extend: async (ttl) => await client.eval(EXTEND, 1, name, token, ttl) === 1
      }
    }
  }
  return library
}

// same demands that two values are the same in JSON.
function same (what, got, expected) {
  want(JSON.stringify(got) === JSON.stringify(expected), `${what}: ${JSON.stringify(got)}`)
}

async function useIoredis (run, client, name, used) {
  const [text, number, fields, items] = ['text', 'number', 'fields', 'items'].map((s) => `${name}:${s}`)
  same('strings', await Promise.all([client.set(text, 'one', 'EX', 100), client.get(text), client.incrby(number, 2)]), ['OK', 'one', 2])
  used('strings')
  await client.hset(fields, 'a', 1)
  same('hash', await client.hgetall(fields), { a: '1' })
  used('hash')
  await client.rpush(items, 'x', 'y')
  same('list', await client.lrange(items, 0, -1), ['x', 'y'])
  used('list')
  const [waiter, listener] = [await run.client(), await run.client()]
  const popped = waiter.blpop(`${name}:queue`, 20)
  await client.rpush(`${name}:queue`, 'z')
  same('BLPOP', await popped, [`${name}:queue`, 'z'])
  used('BLPOP')
  await client.watch(number)
  same('MULTI', await client.multi().incr(number).hincrby(fields, 'a', 1).exec(), [[null, 3], [null, 2]])
  await client.watch(number)
  await waiter.incr(number)
  same('WATCH', await client.multi().set(number, 100).exec(), null)
  used('WATCH, MULTI')
  const piped = `${run.key}:piped`
  same('pipeline', await client.pipeline().set(text, 'two').set(piped, 't', 'PX', 30000, 'NX').get(text).get(piped).del(piped).incr(number).exec(),
    [[null, 'OK'], [null, 'OK'], [null, 'two'], [null, 't'], [null, 1], [null, 5]])
  used('pipeline')
  const message = new Promise((resolve) => listener.on('message', (channel, text) => resolve([channel, text])))
  await listener.subscribe(`${name}:news`)
  await until('heard', async () => await client.publish(`${name}:news`, 'hello') === 1)
  same('pub/sub', await message, [`${name}:news`, 'hello'])
  used('pub/sub')
  const found = []
  for await (const keys of client.scanStream({ match: `${name}:*` })) found.push(...keys)
  same('SCAN', found.sort(), [fields, items, number, text])
  used('SCAN')
  same('scripts', await client.double(number), 10)
  used('scripts')
}

async function useNodeRedis (run, client, name, used) {
  const [text, number, fields, items] = ['text', 'number', 'fields', 'items'].map((s) => `${name}:${s}`)
  same('strings', await Promise.all([client.set(text, 'one', { EX: 100 }), client.get(text), client.incrBy(number, 2)]), ['OK', 'one', 2])
  used('strings')
  await client.hSet(fields, { a: '1', b: '2' })
  same('hash', { ...await client.hGetAll(fields) }, { a: '1', b: '2' })
  used('hash')
  await client.rPush(items, ['x', 'y'])
  same('list', await client.lRange(items, 0, -1), ['x', 'y'])
  used('list')
  const [waiter, listener] = [await run.client(), await run.client()]
  const popped = waiter.blPop(`${name}:queue`, 20)
  await client.rPush(`${name}:queue`, 'z')
  same('BLPOP', (await popped).element, 'z')
  used('BLPOP')
  await client.watch(number)
  same('MULTI', await client.multi().incr(number).hIncrBy(fields, 'a', 1).exec(), [3, 2])
  await client.watch(number)
  await waiter.incr(number)
  want(await client.multi().set(number, '100').exec().then(() => false, () => true), 'WATCH')
  used('WATCH, MULTI')
  const piped = `${run.key}:piped`
  same('pipeline', await Promise.all([client.set(text, 'two'), client.set(piped, 't', { PX: 30000, NX: true }), client.get(text),
    client.get(piped), client.del(piped), client.incr(number)]), ['OK', 'OK', 'two', 't', 1, 5])
  used('pipeline')
  const message = new Promise((resolve) => listener.subscribe(`${name}:news`, (text) => resolve(text)))
  await until('heard', async () => await client.publish(`${name}:news`, 'hello') === 1)
  same('pub/sub', await message, 'hello')
  used('pub/sub')
  const found = []
  for await (const keys of client.scanIterator({ MATCH: `${name}:*` })) found.push(...[keys].flat())
  same('SCAN', found.sort(), [fields, items, number, text])
  used('SCAN')
  same('scripts', await client.eval(DOUBLE, { keys: [number] }), 10)
  used('scripts')
}

function nodeRedis (major) {
  const { createClient, commandOptions, RESP_TYPES } = require(`redis-${major}`)
  const get = (client, name) => commandOptions
    ? client.get(commandOptions({ returnBuffers: true }), name)
    : client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get(name)
  return {
    name: 'node-redis',
    version: versionOf(`redis-${major}`),
    tells: true,
    extends: true,
    tokens: true,
    async client () {
      const client = createClient({ socket: { host, port, reconnectStrategy: () => 50 }, name: 'by-hand' })
      client.on('error', () => {}) // the scenarios see it as a rejected command
      await client.connect()
      return client
    },
    async close (client) { await (client.destroy ? client.destroy() : client.disconnect()) },
    data: useNodeRedis,
    lock (client, name, ttl, { token = randomBytes(16) }) {
      let sha
      return {
        acquire: polling(async () => {
          const reply = await client.set(name, token, { NX: true, PX: ttl })
          want(reply === 'OK' || reply === null, `SET: ${reply}`)
          if (reply === null) return false
          want(token.equals(await get(client, name)), 'GET tells another token')
          return true
        }),
        release: async () => {
          sha ??= await client.scriptLoad(RELEASE)
          return await client.evalSha(sha, { keys: [name], arguments: [token] }) === 1
        },
        extend: async (ttl) => await client.eval(EXTEND, { keys: [name], arguments: [token, String(ttl)] }) === 1
      }
    }
  }
}

function glide () {
  const { GlideClient, Script, Decoder, TimeUnit } = require('@valkey/valkey-glide')
  const [release, extend] = [new Script(RELEASE), new Script(EXTEND)]
  return {
    name: 'valkey-glide',
    version: versionOf('@valkey/valkey-glide'),
    tells: true,
    extends: true,
    tokens: true,
    async client () {
      return GlideClient.createClient({
        addresses: [{ host, port }],
        clientName: 'by-hand',
        requestTimeout: 10000,
        connectionBackoff: { numberOfRetries: 5, factor: 50, exponentBase: 1 }
      })
    },
    async close (client) { client.close() },
    lock (client, name, ttl, { token = randomBytes(16) }) {
      const script = (text, ...args) => client.invokeScript(text, { keys: [name], args: [token, ...args] })
      return {
        acquire: polling(async () => {
          const reply = await client.set(name, token, { conditionalSet: 'onlyIfDoesNotExist', expiry: { type: TimeUnit.Milliseconds, count: ttl } })
          want(reply === 'OK' || reply === null, `SET: ${reply}`)
          if (reply === null) return false
          want(token.equals(await client.get(name, { decoder: Decoder.Bytes })), 'GET tells another token')
          return true
        }),
        release: async () => await script(release) === 1, // EVALSHA, and SCRIPT LOAD on NOSCRIPT
        extend: async (ttl) => await script(extend, String(ttl)) === 1
      }
    }
  }
}

// The locks of the old and the new redlock have release or unlock; extending makes a new one. One with keep is held in
// using(), which extends it until its function returns.
function redlock (pack, clients, name, keysOf) {
  const library = require(pack)
  const old = pack.startsWith('redlock-4')
  const Redlock = old ? library : library.Redlock ?? library.default
  const refused = old ? library.LockError : library.ExecutionError
  const orFalse = async (act) => {
    try {
      return await act()
    } catch (e) {
      if (e instanceof refused) return false
      throw e
    }
  }
  return {
    ...clients,
    data: undefined,
    name,
    version: versionOf(pack),
    tokens: false,
    watchdog: old ? undefined : SHORT_LEASE,
    lock (client, name, ttl, { keep }) {
      const redlock = new Redlock([client], { retryCount: 0, retryDelay: 50, retryJitter: 0 })
      const waiting = new Redlock([client], { retryCount: 300, retryDelay: 50, retryJitter: 0 })
      for (const r of [redlock, waiting]) r.on(old ? 'clientError' : 'error', () => {})
      const keys = keysOf(name)
      if (keep) return keptLock(redlock, keys, ttl)
      let held
      return {
        acquire: (wait = 0) => orFalse(async () => {
          held = await (wait ? waiting : redlock).acquire(keys, ttl)
          return true
        }),
        release: () => orFalse(async () => { await (held.release ?? held.unlock).call(held); return true }),
        extend: (ttl) => orFalse(async () => { held = await held.extend(ttl); return true })
      }
    }
  }
}

const SHORT_LEASE = 1000 // ms

function keptLock (redlock, keys, ttl) {
  let done, ended
  return {
    acquire: () => new Promise((resolve, reject) => {
      ended = redlock.using(keys, ttl, { automaticExtensionThreshold: ttl / 2 }, (signal) => {
        resolve(true)
        return new Promise((resolve) => { done = () => resolve(!signal.aborted) })
      })
      ended.catch(reject)
    }),
    release: () => { done(); return ended }
  }
}

function semaphore (clients) {
  const { Mutex } = require('redis-semaphore')
  return {
    ...clients,
    data: undefined,
    name: 'redis-semaphore Mutex',
    version: versionOf('redis-semaphore'),
    extends: false,
    tells: false,
    tokens: false,
    watchdog: SHORT_LEASE,
    lock (client, name, ttl, { keep }) {
      const mutexOf = (wait) => new Mutex(client, name, {
        lockTimeout: ttl,
        acquireTimeout: wait || ttl,
        acquireAttemptsLimit: wait ? Infinity : 1,
        retryInterval: 50,
        refreshInterval: keep ? ttl / 3 : 0
      })
      let mutex
      return {
        acquire: async (wait = 0) => {
          mutex = mutexOf(wait)
          return wait ? mutex.acquire().then(() => true) : mutex.tryAcquire()
        },
        release: async () => { await mutex.release(); return true }
      }
    }
  }
}

// warlock, over the node-redis that had callbacks.
function warlock () {
  const redis = require('redis-3')
  const promise = (act) => new Promise((resolve, reject) => act((err, result) => err ? reject(err) : resolve(result)))
  return {
    name: 'node-redis-warlock',
    version: versionOf('node-redis-warlock'),
    tells: true,
    extends: true,
    tokens: false,
    async client () {
      const client = redis.createClient({ host, port, retry_strategy: () => 50 })
      client.on('error', () => {}) // the scenarios see it as a rejected command
      await new Promise((resolve) => client.once('ready', resolve))
      return client
    },
    async close (client) { client.end(true) },
    lock (client, name, ttl) {
      const warlock = require('node-redis-warlock')(client)
      let id
      return {
        acquire: polling(() => new Promise((resolve, reject) => {
          warlock.lock(name, ttl, (err, unlock, made) => {
            if (unlock) id = made
            err ? reject(err) : resolve(Boolean(unlock))
          })
        })),
        release: async () => await promise((done) => warlock.unlock(name, id, done)) === 1,
        extend: async (ttl) => await promise((done) => warlock.touch(name, id, ttl, done)) === 'OK'
      }
    }
  }
}

// @redis-kit/lock, over the clients of node-redis.
function redisKit (name, keysOf) {
  const { Redlock } = require('@redis-kit/lock')
  const clients = nodeRedis(5)
  return {
    ...clients,
    data: undefined,
    name,
    version: versionOf('@redis-kit/lock'),
    tokens: false,
    watchdog: SHORT_LEASE,
    lock (client, name, ttl, { keep }) {
      const redlock = new Redlock([client], { maxRetryAttempts: 0 })
      const waiting = new Redlock([client], { maxRetryAttempts: 300, retryDelayMs: 50, retryJitterMs: 0 })
      let held
      return {
        acquire: async (wait = 0) => {
          const lock = await (wait ? waiting : redlock).acquire(keysOf(name), ttl)
          if (lock && keep) lock.startAutoExtension(ttl / 2)
          held = lock ?? held
          return lock !== null
        },
        release: () => held.release(),
        extend: (ttl) => held.extend(ttl)
      }
    }
  }
}

// node-redisson makes its own connections, over the ioredis that is beside it. When it waits for a message it leaves a timer
// behind, which uses the connection for messages: that one is left to the end of the program.
function nodeRedisson () {
  const { Redisson } = require('node-redisson')
  return {
    name: 'node-redisson',
    version: versionOf('node-redisson'),
    tells: true,
    extends: false,
    tokens: false,
    reenters: true,
    watchdog: SHORT_LEASE,
    async client () {
      const options = { host, port, retryStrategy: () => 50 }
      const redisson = new Redisson({ redis: { options }, lockWatchdogTimeout: BigInt(SHORT_LEASE) })
      for (const c of [redisson.redis, redisson.commandExecutor.subscribeRedis]) c.on('error', () => {}) // seen as a rejected command
      return redisson
    },
    async close (redisson) { redisson.redis.disconnect() },
    async more (run) {
      const redisson = await run.client()
      const [held, other] = [redisson, await run.client()].map((c) => c.getLock(run.key))
      const waiter = await run.lock()
      want(!await other.forceUnlock(), 'unlocked by force, and nobody held it')
      for (let i = 0; i < 2; i++) want(await held.tryLock(0n, BigInt(LONG)), 'not granted to its holder')
      const granted = waiter.acquire(LONG / 2)
      // The library does not try again once it has subscribed: it misses a release between its last try and SUBSCRIBE.
      await until('the waiter to subscribe', async () => {
        const [, subscribers] = await redisson.redis.pubsub('NUMSUB', held.getChannelName())
        return Number(subscribers) > 0
      })
      want(await other.forceUnlock(), 'not unlocked by force')
      want(await granted, 'not granted to the next')
      want(await waiter.release(), 'the next did not release')
      await ask('empty')
    },
    lock (redisson, name, ttl, { keep }) {
      const lock = redisson.getLock(name)
      return {
        acquire: (wait = 0) => lock.tryLock(BigInt(wait), keep ? true : BigInt(ttl)),
        release: () => lock.unlock().then(() => true, (e) => {
          if (/not locked by current client/.test(e.message)) return false
          throw e
        })
      }
    }
  }
}

function universal (clients) {
  const { createLock, IoredisAdapter, LockAcquisitionError, LockManager } = require('redlock-universal')
  const orFalse = (taken) => taken.then(() => true, (e) => {
    if (e instanceof LockAcquisitionError) return false
    throw e
  })
  return {
    ...clients,
    data: undefined,
    name: 'redlock-universal',
    version: versionOf('redlock-universal'),
    tells: true,
    extends: true,
    tokens: false,
    watchdog: SHORT_LEASE,
    async more (run) {
      const [first, second] = [await run.client(), await run.client()].map((c) => new LockManager({ nodes: [new IoredisAdapter(c)] }))
      const keys = ['a', 'b', 'c'].map((suffix) => `${run.key}:${suffix}`)
      const several = (manager, keys) => manager.acquireBatch(keys, { ttl: LONG, retryAttempts: 0 })
      const held = await several(first, keys.slice(0, 2))
      want(!await orFalse(several(second, keys.slice(1))), 'several locks were granted twice')
      await first.releaseBatch(held)
      await second.releaseBatch(await several(second, keys.slice(1)))
      await ask('empty')
    },
    lock (client, name, ttl, { keep }) {
      const adapter = new IoredisAdapter(client)
      const lockOf = (retryAttempts) => createLock({ adapter, key: name, ttl, retryAttempts, retryDelay: 50 })
      const [lock, waiting] = [lockOf(0), lockOf(300)]
      if (keep) return keptLock({ using: (keys, ttl, options, act) => lock.using(act) }, name, ttl)
      let held
      return {
        acquire: (wait = 0) => orFalse((wait ? waiting : lock).acquire().then((handle) => { held = handle })),
        release: () => lock.release(held),
        extend: (ttl) => lock.extend(held, ttl)
      }
    }
  }
}

async function main () {
  for (const major of [4, 5, 6]) await run(ioredis(major))
  for (const major of [4, 5, 6]) await run(nodeRedis(major))
  await run(glide())
  for (const pack of ['redlock-4.0', 'redlock-4']) await run(redlock(pack, ioredis(4), 'redlock', (name) => [name]))
  await run(redlock('redlock-5', ioredis(5), 'redlock', (name) => [name]))
  await run(redlock('redlock-5', ioredis(5), 'redlock, two resources', (name) => [`${name}:a`, `${name}:b`]))
  await run(redlock('@sesamecare-oss/redlock', ioredis(5), '@sesamecare-oss/redlock', (name) => [name]))
  await run(universal(ioredis(5)))
  await run(semaphore(ioredis(5)))
  await run(warlock())
  await run(redisKit('@redis-kit/lock', (name) => [name]))
  await run(redisKit('@redis-kit/lock, two resources', (name) => [`${name}:a`, `${name}:b`]))
  await run(nodeRedisson())
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1) })

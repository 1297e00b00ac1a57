// Locks through node-redis, in RESP2 and RESP3. usage: node-redis.js HOST PORT
'use strict'

const { createClient } = require('redis')
const { RELEASE, want } = require('./want.js')

async function lock (host, port, RESP, database) {
  const client = createClient({ socket: { host, port, reconnectStrategy: false }, RESP, database, name: 'locking' })
  client.on('error', (err) => { console.error(`node-redis: ${err}`); process.exit(1) })
  await client.connect()
  const key = `node-redis:${RESP}:${database}`
  await client.del(key)
  want('SET NX PX', await client.set(key, 'me', { NX: true, PX: 30000 }), 'OK')
  want('a second SET NX PX', await client.set(key, 'you', { NX: true, PX: 30000 }), null)
  want('GET', await client.get(key), 'me')
  const ttl = await client.pTTL(key)
  want('PTTL in range', ttl > 0 && ttl <= 30000, true)
  want('release by a stranger', await client.eval(RELEASE, { keys: [key], arguments: ['you'] }), 0)
  const sha = await client.scriptLoad(RELEASE)
  want('release by the owner', await client.evalSha(sha, { keys: [key], arguments: ['me'] }), 1)
  want('release again', await client.evalSha(sha, { keys: [key], arguments: ['me'] }), 0)
  want('commands sent at once', await Promise.all([
    client.set(key, 'me', { NX: true, PX: 30000 }),
    client.set(key, 'you', { NX: true, PX: 30000 }),
    client.get(key),
    client.del(key)
  ]), ['OK', null, 'me', 1])
  await client.close()
}

async function main (host, port) {
  for (const protocol of [2, 3]) {
    for (const database of [0, 1]) {
      await lock(host, port, protocol, database)
    }
  }
  console.log('ok node-redis')
}

main(process.argv[2], Number(process.argv[3])).catch((err) => { console.error(err); process.exit(1) })

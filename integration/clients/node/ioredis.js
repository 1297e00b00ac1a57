// Locks through ioredis. usage: ioredis.js HOST PORT
'use strict'

const Redis = require('ioredis')
const { RELEASE, want } = require('./want.js')

async function lock (host, port, db) {
  const client = new Redis({ host, port, db, connectionName: 'locking', retryStrategy: null, lazyConnect: true })
  client.on('error', (err) => { console.error(`ioredis: ${err}`); process.exit(1) })
  await client.connect() // resolves after the ready check, which reads INFO
  client.defineCommand('release', { numberOfKeys: 1, lua: RELEASE })
  const key = `ioredis:${db}`
  await client.del(key)
  want('SET PX NX', await client.set(key, 'me', 'PX', 30000, 'NX'), 'OK')
  want('a second SET PX NX', await client.set(key, 'you', 'PX', 30000, 'NX'), null)
  want('GET', await client.get(key), 'me')
  const ttl = await client.pttl(key)
  want('PTTL in range', ttl > 0 && ttl <= 30000, true)
  want('release by a stranger', await client.eval(RELEASE, 1, key, 'you'), 0)
  want('release by the owner', await client.release(key, 'me'), 1) // EVALSHA, and EVAL on NOSCRIPT
  want('release again', await client.release(key, 'me'), 0)
  want('a pipeline', await client.pipeline()
    .set(key, 'me', 'PX', 30000, 'NX').set(key, 'you', 'PX', 30000, 'NX').get(key).del(key).exec(),
  [[null, 'OK'], [null, null], [null, 'me'], [null, 1]])
  await client.quit()
}

async function main (host, port) {
  await lock(host, port, 0)
  await lock(host, port, 1)
  console.log('ok ioredis')
}

main(process.argv[2], Number(process.argv[3])).catch((err) => { console.error(err); process.exit(1) })

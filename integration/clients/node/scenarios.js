// What every library is put through. A library is an object (see main.js); run() reports how it fared.
'use strict'

const net = require('node:net')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')

const LONG = 30000 // ms: a TTL that no scenario outlives
const SHORT = 3000 // a TTL that a scenario waits for
const SOON = 20000 // within which what must happen happens, on a busy machine

const BINARY = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), Buffer.from('\r\n$-1\r\n')])

const absent = new Error('absent')

function want (condition, what) {
  if (!condition) throw new Error(what)
}

// ask sends a wish to the control port and waits until it is done.
function ask (wish) {
  return new Promise((resolve, reject) => {
    const conn = net.connect(Number(process.env.CONTROL_PORT), '127.0.0.1', () => conn.write(wish + '\n'))
    conn.on('error', reject)
    conn.on('data', (data) => {
      conn.end()
      const answer = data.toString().trim()
      answer === 'ok' ? resolve() : reject(new Error(`${wish}: ${answer}`))
    })
  })
}

// until polls until check resolves to true. Errors count as false, but the last one is told at the deadline.
async function until (what, check) {
  for (const end = performance.now() + SOON; ;) {
    let error
    try {
      if (await check()) return
    } catch (e) {
      error = e
    }
    want(performance.now() < end, `${what}: not within ${SOON} ms: ${error}`)
    await sleep(50)
  }
}

// fails says whether act is refused: it resolves to false or rejects.
async function fails (act) {
  try {
    return !await act()
  } catch {
    return true
  }
}

const scenarios = {
  async take (run) {
    const lock = await run.lock()
    want(await lock.acquire(), 'not granted')
    await ask('held')
    await lock.release()
  },

  async refuse (run) {
    want(await (await run.lock()).acquire(), 'not granted')
    const other = await run.lock()
    for (let i = 0; i < 3; i++) want(!await other.acquire(), 'granted twice')
  },

  async release (run) {
    const [first, second] = [await run.lock(), await run.lock()]
    for (const lock of [first, second, first]) {
      want(await lock.acquire(), 'not granted')
      want(await lock.release(), 'not released')
      await ask('empty')
    }
    await run.library.more?.(run)
  },

  async stranger (run) {
    const [late, holder] = [await run.lock(SHORT), await run.lock()]
    want(await late.acquire(), 'not granted')
    await until('the next holder', () => holder.acquire())
    want(await fails(() => late.release()) || !run.library.tells, 'a stranger released')
    want(!await (await run.lock()).acquire(), 'the lock was taken from its holder')
    want(await holder.release(), 'the holder did not release')
  },

  async extend (run) {
    if (!run.library.extends) throw absent
    const lock = await run.lock(SHORT)
    const start = performance.now()
    want(await lock.acquire(), 'not granted')
    want(await lock.extend(LONG), 'not extended')
    await sleep(Math.max(0, start + SHORT + 500 - performance.now()))
    want(!await (await run.lock()).acquire(), 'the first TTL ended the lock')
    want(await lock.release(), 'not released')
  },

  async expiry (run) {
    const [first, other] = [await run.lock(SHORT), await run.lock()]
    const start = performance.now()
    want(await first.acquire(), 'not granted')
    await until('the next holder', () => other.acquire())
    want(performance.now() - start >= SHORT, 'granted before the TTL was over')
    want(await other.release(), 'not released')
  },

  async wait (run) {
    const [lock, other] = [await run.lock(), await run.lock()]
    want(await lock.acquire(), 'not granted')
    let at
    const waiter = other.acquire(LONG / 2).then((granted) => { at = performance.now(); return granted })
    await sleep(500) // most probably it waits by now; if not, it is granted at once, rightly
    const released = performance.now()
    want(await lock.release(), 'not released')
    want(await waiter, 'the waiter was not granted')
    want(at >= released, 'the waiter was granted before the release')
    want(at - released < SOON, 'the waiter was granted late')
    want(await other.release(), 'the waiter did not release')
  },

  async lost (run) {
    const lock = await run.lock()
    want(await lock.acquire(), 'not granted')
    await ask('lose')
    if (run.library.extends) want(await fails(() => lock.extend(LONG)), 'a lost lock was extended')
    want(await fails(() => lock.release()) || !run.library.tells, 'a lost lock was released')
    want(await (await run.lock()).acquire(), 'not granted to the next')
  },

  async 'no quorum' (run) {
    const [held, other, third] = [await run.lock(), await run.lock(LONG, ':other'), await run.lock(LONG, ':third')]
    want(await held.acquire(), 'not granted')
    await ask('down 2')
    const start = performance.now()
    want(await fails(() => other.acquire()), 'granted without a quorum')
    want(performance.now() - start < SOON, 'refused late')
    want(await fails(() => held.release()) || !run.library.tells, 'released without a quorum')
    await ask('up')
    await until('granted with the quorum back', () => third.acquire())
  },

  async minority (run) {
    await ask('down 1')
    const [lock, other] = [await run.lock(), await run.lock()]
    want(await lock.acquire(), 'not granted')
    want(!await other.acquire(), 'granted twice')
    want(await lock.release(), 'not released')
    want(await other.acquire(), 'not granted to the next')
    want(await other.release(), 'not released by the next')
  },

  async 're-entrance' (run) {
    if (!run.library.reenters) throw absent
    const [lock, other] = [await run.lock(), await run.lock()]
    for (let i = 0; i < 3; i++) want(await lock.acquire(), 'not granted to its holder')
    for (let i = 0; i < 3; i++) {
      want(!await other.acquire(), 'granted twice')
      want(await lock.release(), 'not released')
    }
    want(await fails(() => lock.release()), 'released more often than taken')
    want(await other.acquire(), 'not granted to the next')
    want(await other.release(), 'the next did not release')
  },

  async watchdog (run) {
    if (!run.library.watchdog) throw absent
    const [lock, other] = [await run.lock(run.library.watchdog, '', { keep: true }), await run.lock()]
    want(await lock.acquire(), 'not granted')
    for (const end = performance.now() + 3 * run.library.watchdog; performance.now() < end;) {
      want(!await other.acquire(), 'granted while the watchdog ran')
      await sleep(100)
    }
    want(await lock.release(), 'not released')
    await until('the next holder', () => other.acquire())
  },

  async 'binary token' (run) {
    if (!run.library.tokens) throw absent
    for (const token of [BINARY, Buffer.alloc(0)]) {
      const lock = await run.lock(LONG, '', { token })
      const other = await run.lock(LONG, '', { token: Buffer.from('other') })
      want(await lock.acquire(), 'not granted')
      want(!await other.acquire(), 'granted twice')
      want(await fails(() => other.release()), 'another token released')
      want(await lock.extend(LONG), 'not extended')
      want(await lock.release(), 'not released')
      await ask('empty')
    }
  },

  async reconnect (run) {
    const [holder, other] = [await run.client(), await run.client()]
    const [lock, second, again] = [holder, holder, other].map((c) => run.lockOf(c))
    want(await lock.acquire(), 'not granted')
    want(!await again.acquire(), 'granted twice')
    await ask('restart')
    await until('an answer to each', async () => !await second.acquire() && !await again.acquire())
    want(await lock.release(), 'not released')
    want(await again.acquire(), 'not granted to the next')
    want(await again.release(), 'not released')
  },

  async data (run) {
    if (!run.library.data) throw absent
    const client = await run.client()
    const lock = run.lockOf(client)
    want(await lock.acquire(), 'not granted')
    await run.library.data(run, client, run.key.replace('lock:', 'data:'), (what) => run.used.push(what))
    await ask('held')
    await ask('apart')
    want(await lock.release(), 'not released')
    await ask('empty')
  }
}

// A Run is one scenario's clients and its lock's name.
class Run {
  constructor (library, scenario) {
    this.library = library
    this.key = `lock:${library.name}:${library.version}:${scenario}`.replaceAll(' ', '-')
    this.clients = []
    this.used = []
  }

  async client () {
    const c = await this.library.client()
    this.clients.push(c)
    return c
  }

  // lock returns a lock of a client of its own.
  async lock (ttl = LONG, suffix = '', options = {}) {
    return this.lockOf(await this.client(), ttl, suffix, options)
  }

  lockOf (client, ttl = LONG, suffix = '', options = {}) {
    return this.library.lock(client, this.key + suffix, ttl, options)
  }

  async close () {
    for (const c of this.clients) await this.library.close(c)
  }
}

async function run (library) {
  if (!library.name.includes(process.env.LIBRARIES || '')) return
  for (const [scenario, act] of Object.entries(scenarios)) {
    if (!process.env.SCENARIOS.split(',').includes(scenario)) continue
    let result = 'ok'
    let why = ''
    const run = new Run(library, scenario)
    try {
      await ask('reset')
      await act(run)
    } catch (e) {
      result = e === absent ? 'absent' : 'failed'
      if (e !== absent) {
        why = `${e.name}: ${e.message}`
        console.error(e)
      }
    }
    await run.close()
    console.log(JSON.stringify({ library: library.name, version: library.version, scenario, result, why, used: run.used.join(', ') }))
  }
}

// polling makes acquire(wait) of an attempt that resolves to whether it was granted.
function polling (attempt) {
  return async (wait = 0) => {
    for (const end = performance.now() + wait; ;) {
      if (await attempt()) return true
      if (performance.now() >= end) return false
      await sleep(50)
    }
  }
}

// versionOf returns the version of an installed package.
function versionOf (name) {
  return JSON.parse(readFileSync(join(process.env.NODE_PATH, name, 'package.json'))).version.replace(/^v/, '')
}

module.exports = { run, ask, want, until, polling, versionOf, host: process.env.PROXY_HOST, port: Number(process.env.PROXY_PORT), LONG }

// Frameworks of Node with one Redis URL for everything. Only the scenario "data" is theirs; the lock beside it is made by hand.
'use strict'

const { randomBytes } = require('node:crypto')
const { setTimeout: sleep } = require('node:timers/promises')
const Redis = require('ioredis-5')
const { run, ask, want, until, versionOf, host, port } = require('./scenarios.js')

const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'

function framework (name, version, data) {
  return {
    name,
    version,
    data,
    async client () {
      const client = new Redis({ host, port })
      client.on('error', () => {}) // the scenario sees it as a rejected command
      return client
    },
    async close (client) { client.disconnect() },
    lock (client, name) {
      const token = randomBytes(16)
      return {
        acquire: async () => await client.set(name, token, 'PX', 30000, 'NX') === 'OK',
        release: async () => await client.eval(RELEASE, 1, name, token) === 1
      }
    }
  }
}

// work does a job of ours: it says how often a job of that name has begun.
function work () {
  const begun = {}
  return {
    begun,
    async do ({ task, fails = 0, lasts = 0 }) {
      begun[task] = (begun[task] || 0) + 1
      if (begun[task] <= fails) throw new Error('again')
      await sleep(lasts)
      return begun[task]
    }
  }
}

// useQueue puts a job queue through what BullMQ and bull both have: jobs are added by add(data, options), which resolves
// to a function that resolves to the job's result.
async function useQueue (add, begun, used) {
  const jobs = await Promise.all(Array.from({ length: 50 }, (_, i) => add({ task: `job ${i}` })))
  want((await Promise.all(jobs.map((result) => result()))).every((n) => n === 1), 'jobs')
  used('jobs')
  const start = performance.now()
  const delayed = await add({ task: 'delayed' }, { delay: 1000 })
  const urgent = await add({ task: 'urgent' }, { priority: 1 })
  want(await urgent() === 1 && await delayed() === 1 && performance.now() - start > 900, 'delayed')
  used('delays, priorities')
  want(await (await add({ task: 'fails', fails: 2 }, { attempts: 3, backoff: 100 }))() === 3, 'retries')
  used('retries')
  const long = await add({ task: 'long', lasts: 1000 })
  await until('the long job', () => begun.long)
  await ask('restart')
  want(await long() === 1 && begun.long === 1, 'the job under way')
  want(await (await add({ task: 'after' }))() === 1, 'a job after the restart')
  used('restart of the proxy while workers wait')
}

function bullmq (major) {
  const { FlowProducer, Queue, QueueEvents, Worker } = require(`bullmq-${major}`)
  return framework('BullMQ', versionOf(`bullmq-${major}`), async (run, client, name, used) => {
    const options = { connection: { host, port }, prefix: name }
    const [queue, events, flows] = [new Queue('q', options), new QueueEvents('q', options), new FlowProducer(options)]
    const { begun, do: task } = work()
    const worker = new Worker('q', (job) => task(job.data), { ...options, concurrency: 10 })
    const all = [worker, flows, events, queue]
    for (const each of all) each.on('error', () => {}) // as the proxy restarts
    const result = (job) => () => job.waitUntilFinished(events, 20000)
    await events.waitUntilReady()
    events.setMaxListeners(100)
    queue.setMaxListeners(100)
    await useQueue(async (data, options) => result(await queue.add('job', data, options)), begun, used)
    const children = [1, 2, 3].map((i) => ({ name: 'job', queueName: 'q', data: { task: `child ${i}` } }))
    const parent = (await flows.add({ name: 'job', queueName: 'q', data: { task: 'parent' }, children })).job
    want(await result(parent)() === 1 && Object.values(await parent.getChildrenValues()).length === 3, 'flow')
    used('flows')
    if (queue.upsertJobScheduler) await queue.upsertJobScheduler('often', { every: 200 }, { name: 'job', data: { task: 'often' } })
    else await queue.add('job', { task: 'often' }, { repeat: { every: 200 } })
    await until('repeated', () => begun.often >= 3)
    used('repeated jobs')
    await until('one worker', async () => (await queue.getWorkers()).length === 1)
    for (const each of all) await each.close()
  })
}

function bull () {
  const Queue = require('bull')
  return framework('bull', versionOf('bull'), async (run, client, name, used) => {
    const queue = new Queue('q', { redis: { host, port }, prefix: name })
    queue.on('error', () => {}) // as the proxy restarts
    const { begun, do: task } = work()
    queue.setMaxListeners(100)
    queue.process(10, (job) => task(job.data)).catch(() => {}) // what it returns may stay pending when the queue is closed
    await useQueue(async (data, options) => {
      const job = await queue.add(data, options)
      return () => job.finished()
    }, begun, used)
    await queue.add({ task: 'often' }, { repeat: { every: 200 } })
    await until('repeated', () => begun.often >= 3)
    used('repeated jobs')
    await until('one worker', async () => (await queue.getWorkers()).length === 1)
    await queue.close()
  })
}

// Servers of socket.io with Redis between them need no client to talk to each other.
function socketIO () {
  const { createAdapter } = require('@socket.io/redis-adapter')
  const { Server } = require('socket.io')
  return framework('socket.io redis-adapter', versionOf('@socket.io/redis-adapter'), async (run, client, name, used) => {
    const server = async () => {
      const [publishes, listens] = [await run.client(), await run.client()]
      return new Server({ adapter: createAdapter(publishes, listens, { key: name, requestsTimeout: 1000 }) })
    }
    const servers = [await server(), await server(), await server()]
    for (const s of servers) s.on('sum', (a, b, answer) => answer(a + b))
    const sums = () => servers[0].serverSideEmitWithAck('sum', 1, 2)
    const all = async () => JSON.stringify(await sums()) === '[3,3]'
    await until('both answer', all)
    used('messages between servers')
    await ask('restart')
    await until('both answer again', all)
    used('restart of the proxy')
    for (const s of servers) await s.of('/').adapter.close()
    await client.set(`${name}:seen`, 1) // for the scenario, which wants to find data
  })
}

async function main () {
  for (const major of [4, 6]) await run(bullmq(major))
  await run(bull())
  await run(socketIO())
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1) })

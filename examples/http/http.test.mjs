// The page's script, the writer and the reader against a broker of their own; KBROKER_COMMAND starts it, if not kbroker.
// node --experimental-eventsource --test (Node 22 or newer: it has a WebSocket of its own)
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { follow, place } from './page/orders.js'

const [command, ...first] = (process.env.KBROKER_COMMAND ?? 'kbroker').split(' ')
const { KBROKER_COMMAND, NODE_TEST_CONTEXT, ...inherited } = process.env
const running = []
let url

// A process, and the first line that it prints.
async function start(program, parameters, env = {}) {
  const child = spawn(program, parameters, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...inherited, ...env } })
  running.push(child)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return { child, lines, next: async () => (await lines.next()).value }
}

const service = (name, env) => start(process.execPath, [name], { KBROKER_URL: url, PORT: '0', ...env })

async function ask(method, path, document) {
  const answer = await fetch(url + path, { method, body: document && JSON.stringify(document) })
  assert.ok(answer.ok, await answer.clone().text())
  return answer.json()
}

// The first records of a stream, with what it said of its state.
function seen(count, topic, options) {
  return new Promise((resolve) => {
    const records = [], states = []
    const stream = follow(topic, {
      ...options,
      onState: (state) => states.push(state),
      onRecord(record) {
        records.push(record)
        if (records.length < count) return
        stream.close()
        resolve({ records, states })
      },
    })
  })
}

before(async () => {
  const arguments_ = ['serve', '--in-memory', '--port', '0', '--http-port', '0', '--with-parent']
  const broker = await start(command, [...first, ...arguments_])
  url = (await broker.next()).match(/HTTP on (https?:\/\/[^\s,]+)/)[1]
})

after(() => running.forEach((child) => child.kill()))

for (const kind of ['events', 'socket']) {
  test(`the page sees orders by ${kind}, old and new`, async () => {
    const topic = `page-${kind}`
    await place(topic, { customer: 'ada', amount: 12 }, url)
    const watching = seen(3, topic, { kind, base: url })
    await place(topic, { customer: 'bob', amount: 7 }, url)
    await place(topic, { customer: 'ada', amount: 3 }, url)
    const { records, states } = await watching
    assert.deepEqual(records.map(({ key, value }) => [key, value.amount]), [['ada', 12], ['bob', 7], ['ada', 3]])
    assert.equal(states[0], 'live')
  })

  test(`the page is told by ${kind} that the topic is gone`, async () => {
    const topic = `gone-${kind}`
    await ask('POST', '/api/v1/topics', { name: topic })
    const told = new Promise((resolve) => {
      const stream = follow(topic, {
        kind,
        base: url,
        onRecord() {},
        async onState(state) {
          if (state === 'live') await ask('DELETE', `/api/v1/topics/${topic}`)
          if (state.includes('deleted')) resolve(stream.close())
        },
      })
    })
    await told
  })
}

test('an order that cannot be placed is told why', async () => {
  await assert.rejects(place('no/such', { customer: 'ada', amount: 1 }, url), /topic/i)
})

test('what the writer takes the reader adds up, and goes on where it was when it comes back', async () => {
  const writer = await service('writer.mjs')
  const orders = (await writer.next()).match(/http\S+/)[0]
  const order = async (customer, amount, key) => {
    const headers = key ? { 'Idempotency-Key': key } : {}
    const answer = await fetch(orders, { method: 'POST', headers, body: JSON.stringify({ customer, amount }) })
    return [answer.status, (await answer.json()).offset]
  }
  assert.deepEqual(await order('ada', 12), [201, 0])
  assert.deepEqual(await order('ada', 30, 'once'), [201, 1])
  assert.deepEqual(await order('ada', 30, 'once'), [201, 1])
  assert.equal((await order('', -1))[0], 400)

  const reader = await service('reader.mjs')
  assert.equal(await reader.next(), 'ada has spent 12')
  assert.equal(await reader.next(), 'ada has spent 42')
  const committed = async () => (await ask('GET', '/api/v1/groups/totals/offsets')).offsets[0]?.offset
  while ((await committed()) !== 2) await new Promise((resolve) => setTimeout(resolve, 20))
  reader.child.kill('SIGKILL')

  await order('bob', 5)
  const again = await service('reader.mjs')
  assert.equal(await again.next(), 'bob has spent 5')
})

test('the page and what it asks the broker have one address', async () => {
  const page = await service('page.mjs')
  const base = (await page.next()).match(/http\S+/)[0]
  const html = await (await fetch(base)).text()
  assert.match(html, /<title>Orders<\/title>/)
  assert.equal((await fetch(`${base}/orders.js`)).headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.equal((await fetch(`${base}/page.mjs`)).status, 404)
  await place('passed', { customer: 'ada', amount: 1 }, base)
  for (const kind of ['events', 'socket']) {
    const { records } = await seen(1, 'passed', { kind, base })
    assert.equal(records[0].key, 'ada')
  }
})

// A broker for one test file: a process that ends with this one. KBROKER names the command, if it is not on the PATH.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'

const [command, ...first] = (process.env.KBROKER_COMMAND ?? 'kbroker').split(' ')
const started = [...first, 'serve', '--in-memory', '--port', '0', '--control-port', '0', '--with-parent']
let broker, control, answers, kafka

before(async () => {
  const { KBROKER_COMMAND, ...env } = process.env
  broker = spawn(command, started, { stdio: ['pipe', 'pipe', 'inherit'], env })
  const [line] = await new Promise((resolve) => createInterface(broker.stdout).once('line', (line) => resolve([line])))
  const [, address, port] = line.match(/listening on (\S+:\d+).* control port (\d+)/)
  control = connect(Number(port), '127.0.0.1')
  answers = createInterface(control)
  kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING })
})

after(() => {
  control.destroy()
  broker.kill()
})

function ask(request) {
  return new Promise((resolve) => {
    answers.once('line', (line) => resolve(JSON.parse(line)))
    control.write(JSON.stringify(request) + '\n')
  })
}

test('an order survives a broker that is not the leader for a moment', async () => {
  await ask({ do: 'create_topic', name: 'orders' })
  await ask({ do: 'fail', api: 'Produce', error: 'NOT_LEADER_OR_FOLLOWER', times: 1 })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: 'orders', messages: [{ key: 'ada', value: '12' }] })
  await producer.disconnect()

  const { result } = await ask({ do: 'records', topic: 'orders' })
  assert.deepEqual(result.map(({ value }) => Buffer.from(value, 'base64').toString()), ['12'])
})

test('orders are read by a group', async () => {
  const consumer = kafka.consumer({ groupId: 'billing' })
  await consumer.connect()
  await consumer.subscribe({ topic: 'orders', fromBeginning: true })
  const value = await new Promise((resolve) =>
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) }))
  await consumer.disconnect()
  assert.equal(value, '12')
})

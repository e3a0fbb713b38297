// What a client of @grpc/grpc-js gets from kbroker, each line of it as JSON: [what, ...].
import { readFileSync } from 'node:fs'
import grpc from '@grpc/grpc-js'
import loader from '@grpc/proto-loader'

const { KBROKER_GRPC, KBROKER_PROTO, KBROKER_CA, KBROKER_USER } = process.env
const declared = loader.loadSync(KBROKER_PROTO, { longs: Number, oneofs: true, defaults: true })
const { Kbroker } = grpc.loadPackageDefinition(declared).kbroker.v1
const credentials = KBROKER_CA ? grpc.credentials.createSsl(readFileSync(KBROKER_CA)) : grpc.credentials.createInsecure()
const broker = new Kbroker(KBROKER_GRPC, credentials)
const metadata = new grpc.Metadata()
if (KBROKER_USER) metadata.set('authorization', 'Basic ' + Buffer.from(KBROKER_USER).toString('base64'))

const tell = (...what) => console.log(JSON.stringify(what))
const ask = (method, request, options = {}) =>
  new Promise((resolve) => {
    broker[method](request, metadata, options, (error, answer) => resolve(error ? { code: error.code, error } : answer))
  })

await ask('CreateTopic', { name: 'js', partitions: 1, configs: { 'max.message.bytes': '8000000' } })
tell('topic', (await ask('DescribeTopic', { name: 'js' })).partitions)

const missing = await ask('DescribeTopic', { name: 'no-such' })
const details = missing.error.metadata.get('grpc-status-details-bin')[0]
tell('missing', missing.code, details.includes('UNKNOWN_TOPIC_OR_PARTITION'))

const deadline = new Date(Date.now() + 200)
tell('deadline', (await ask('Fetch', { topic: 'js', maxWaitMs: 60000 }, { deadline })).code)

const large = { topic: 'js', records: [{ value: Buffer.alloc(3_000_000, 'x') }] }
tell('large', (await ask('Publish', large)).records[0].offset)
const fetched = await ask('Fetch', { topic: 'js' })
tell('fetched', fetched.records[0].value.length)
tell('too large', (await ask('Publish', { topic: 'js', records: [{ value: Buffer.alloc(6_000_000) }] })).code)

const zipped = new Kbroker(KBROKER_GRPC, credentials, { 'grpc.default_compression_algorithm': 2 })
const answer = await new Promise((resolve) => {
  const request = { topic: 'js', records: [{ value: Buffer.alloc(100_000, 'z') }] }
  zipped.Publish(request, metadata, (error, answer) => resolve(error ?? answer))
})
tell('zipped', answer.records[0].offset)

const many = await Promise.all(Array.from({ length: 250 }, () => ask('ListTopics', {})))
tell('many', many.filter(({ topics }) => topics?.length === 1).length)

const consume = broker.Consume(metadata)
consume.write({ subscribe: { topics: ['js'], group: 'js', start: { position: 'POSITION_EARLIEST' } } })
let seen = 0
for await (const { kind, batch, committed } of consume) {
  if (kind === 'batch') {
    seen += batch.records.length
    const { topic, partition, nextOffset } = batch
    consume.write({ commit: { id: seen, offsets: [{ topic, partition, offset: nextOffset }] } })
  } else if (kind === 'committed' && committed.id === 2) break
}
consume.cancel()
tell('consumed', seen, (await ask('GetOffsets', { group: 'js' })).offsets[0].offset)
broker.close()
zipped.close()

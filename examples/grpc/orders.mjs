// Orders written as a stream of batches, and read as a member of a group, over gRPC and without a Kafka client.
// KBROKER_GRPC says where the broker is, KBROKER_PROTO where its kbroker.proto is:
//   python -c 'from kbroker.grpc import PROTO; print(PROTO)'
import grpc from '@grpc/grpc-js'
import loader from '@grpc/proto-loader'

const [topics, group, count] = [['orders-of-node'], 'billing-of-node', 100]
const declared = loader.loadSync(process.env.KBROKER_PROTO ?? 'kbroker.proto', { longs: Number, oneofs: true })
const { Kbroker } = grpc.loadPackageDefinition(declared).kbroker.v1
const broker = new Kbroker(process.env.KBROKER_GRPC ?? '127.0.0.1:9094', grpc.credentials.createInsecure())

const ask = (method, request) =>
  new Promise((resolve, reject) => {
    broker[method](request, (error, answer) => (error ? reject(error) : resolve(answer)))
  })

await ask('CreateTopic', { name: topics[0], partitions: 2 }).catch((error) => {
  if (error.code !== grpc.status.ALREADY_EXISTS) throw error
})

// Each batch is answered by its id.
async function write() {
  const call = broker.Produce()
  for (let id = 0; id < count; id++) {
    const customer = id % 3 ? 'ada' : 'bob'
    const value = Buffer.from(JSON.stringify({ customer, amount: id }))
    const batch = { topic: topics[0], records: [{ key: Buffer.from(customer), value }] }
    // A false says that the broker has not taken what was sent before.
    if (!call.write({ id, batch })) await new Promise((resolve) => call.once('drain', resolve))
  }
  call.end()
  let written = 0
  for await (const answer of call) if (!answer.error) written++
  return written
}

// Each batch is committed once it is done.
async function read(wanted) {
  const call = broker.Consume()
  call.write({ subscribe: { topics, group, start: { position: 'POSITION_EARLIEST' } } })
  let [total, done] = [0, 0]
  for await (const { kind, batch, committed } of call) {
    if (kind === 'batch') {
      for (const { value } of batch.records) total += JSON.parse(value).amount
      done += batch.records.length
      const { topic, partition, nextOffset } = batch
      call.write({ commit: { id: done, offsets: [{ topic, partition, offset: nextOffset }] } })
    } else if (kind === 'committed' && committed.id === wanted) {
      break
    }
  }
  call.cancel()
  return total
}

const written = await write()
const total = await read(written)
const { lag = 0 } = await ask('GetLag', { group })
console.log(`${written} orders, ${total} due, lag ${lag}`)
broker.close()

// A service that takes orders and writes them to a topic, without a Kafka client.
//   curl -d '{"customer": "ada", "amount": 12}' http://127.0.0.1:3001/orders
// KBROKER_URL says where the broker is, PORT where this is.
import { randomUUID } from 'node:crypto'
import http from 'node:http'

const broker = process.env.KBROKER_URL ?? 'http://127.0.0.1:8080'
const topic = process.env.TOPIC ?? 'orders'

// Sent again with the same key, an order is written once: who got no answer may ask again.
async function write(order, key) {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await fetch(`${broker}/api/v1/messages`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: JSON.stringify({ topic, key: order.customer, value: order }),
      })
      if (answer.status < 500 || attempt === 5) return answer
    } catch (error) {
      if (attempt === 5) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempt))
  }
}

const server = http.createServer(async (request, answer) => {
  const reply = (status, document) => {
    answer.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(document) + '\n')
  }
  if (request.method !== 'POST' || request.url !== '/orders') return reply(404, { detail: 'POST /orders' })
  let order
  try {
    order = JSON.parse(Buffer.concat(await request.toArray()))
  } catch {
    return reply(400, { detail: 'An order is a JSON document.' })
  }
  if (typeof order?.customer !== 'string' || !(order.amount > 0)) {
    return reply(400, { detail: 'An order has a customer, and an amount above 0.' })
  }
  try {
    const written = await write(order, request.headers['idempotency-key'] ?? randomUUID())
    reply(written.ok ? 201 : 502, await written.json())
  } catch (error) {
    reply(502, { detail: `The broker is not there: ${error.message}.` })
  }
})

server.listen(Number(process.env.PORT ?? 3001), '127.0.0.1', () => {
  console.log(`orders on http://127.0.0.1:${server.address().port}/orders`)
})

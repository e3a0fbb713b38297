// A service that reads orders as a member of a group, without a Kafka client: what each customer has spent.
// Run it twice, and both share the work. An order counts as done when it was added up, and not before.
// KBROKER_URL says where the broker is.
const broker = process.env.KBROKER_URL ?? 'http://127.0.0.1:8080'
const topic = process.env.TOPIC ?? 'orders'
const url = new URL(`/api/v1/topics/${topic}/stream`, broker.replace(/^http/, 'ws'))
url.search = new URLSearchParams({ group: 'totals', offset: 'earliest', autoCommit: false })
const totals = new Map()

function read() {
  const socket = new WebSocket(url)
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if ('offset' in message) {
      const { partition, offset, value } = message
      const total = (totals.get(value.customer) ?? 0) + value.amount
      totals.set(value.customer, total)
      console.log(`${value.customer} has spent ${total}`)
      const offsets = [{ partition, offset: offset + 1 }]
      socket.send(JSON.stringify({ id: `${partition}/${offset}`, command: 'commit', offsets }))
    } else if (message.problem ?? message.end) {
      console.error((message.problem ?? message.end).detail)
    }
  }
  socket.onclose = () => setTimeout(read, 1000) // the broker was stopped, say: it goes on where it has committed
}

read()

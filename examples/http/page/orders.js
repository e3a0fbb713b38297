// Records of a topic, live, in a browser or in Node: by server-sent events or by WebSocket.
// Both go on where they were when the connection was lost, and wait for a topic that is not there yet.

const PAUSE = 1000 // ms, before the next try

export function follow(topic, { kind = 'events', base = '', onRecord, onState = () => {} }) {
  const path = `${base}/api/v1/topics/${encodeURIComponent(topic)}/stream`
  return kind === 'socket' ? bySocket(path, onRecord, onState) : byEvents(path, onRecord, onState)
}

function byEvents(path, onRecord, onState) {
  let source, timer, lastId

  function open() {
    source = new EventSource(path + (lastId ? `?lastEventId=${lastId}` : '?offset=earliest'))
    source.onopen = () => onState('live')
    source.onmessage = (event) => {
      lastId = event.lastEventId
      onRecord(JSON.parse(event.data))
    }
    source.addEventListener('end', (event) => onState(JSON.parse(event.data).detail))
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return onState('reconnecting') // it does so by itself
      onState('waiting')
      timer = setTimeout(open, PAUSE)
    }
  }

  open()
  return {
    close() {
      clearTimeout(timer)
      source.close()
    },
  }
}

function bySocket(path, onRecord, onState) {
  const positions = new Map() // partition → where to go on
  let socket, timer, made, closed = false

  function open() {
    const from = [...positions].map(([partition, offset]) => `${partition}:${offset}`).join(',')
    socket = new WebSocket(path.replace(/^http/, 'ws') + (from ? `?lastEventId=${from}~${made}` : '?offset=earliest'))
    socket.onopen = () => onState('live')
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data)
      if ('offset' in message) {
        positions.set(message.partition, message.offset + 1)
        onRecord(message)
      } else if (message.position) {
        made = message.position.split('~')[1] // which topic it is, should it be deleted and made anew
      } else if (message.end) {
        onState(message.end.detail)
      }
    }
    socket.onclose = () => {
      if (closed) return
      onState('waiting')
      timer = setTimeout(open, PAUSE)
    }
  }

  open()
  return {
    close() {
      closed = true
      clearTimeout(timer)
      socket.close()
    },
  }
}

// One order, as a record: its customer is the key.
export async function place(topic, order, base = '') {
  const answer = await fetch(`${base}/api/v1/messages`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ topic, key: order.customer, value: order }),
  })
  const document = await answer.json()
  if (!answer.ok) throw new Error(document.detail)
  return document
}

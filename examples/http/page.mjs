// Shows the page, and passes on what it asks the broker: so that both have one address, as behind any reverse proxy.
// node page.mjs, then http://127.0.0.1:3000. KBROKER_URL says where the broker is, PORT where this is.
import { readFile } from 'node:fs/promises'
import http from 'node:http'
import { connect } from 'node:net'

const broker = new URL(process.env.KBROKER_URL ?? 'http://127.0.0.1:8080')
const files = {
  '/': ['index.html', 'text/html'],
  '/orders.js': ['orders.js', 'text/javascript'],
}

const server = http.createServer(async (request, answer) => {
  if (request.url.startsWith('/api/v1/')) return pass(request, answer)
  const [name, type] = files[new URL(request.url, 'http://here').pathname] ?? []
  if (!name) return answer.writeHead(404).end()
  answer.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` })
  answer.end(await readFile(new URL(`page/${name}`, import.meta.url)))
})

function pass(request, answer) {
  const { method, url: path, headers } = request
  const asked = http.request(broker, { method, path, headers }, (answered) => {
    answer.writeHead(answered.statusCode, answered.headers)
    answered.pipe(answer)
  })
  asked.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()))
  answer.on('close', () => asked.destroy())
  request.pipe(asked)
}

// A WebSocket: the same bytes both ways.
server.on('upgrade', (request, client, head) => {
  const upstream = connect(Number(broker.port || 80), broker.hostname)
  const lines = [`${request.method} ${request.url} HTTP/1.1`]
  for (let i = 0; i < request.rawHeaders.length; i += 2) lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`)
  upstream.write(lines.join('\r\n') + '\r\n\r\n')
  upstream.write(head)
  upstream.pipe(client).on('error', () => upstream.destroy())
  client.pipe(upstream).on('error', () => client.destroy())
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`page on http://127.0.0.1:${server.address().port}`)
})

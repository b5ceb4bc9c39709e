// The MAP SDK's own server behind a WebSocket port, as the peer of `bench/run`:  node map_server.mjs PORT
// The SDK leaves delivery of a message to an agent's connection to its host, and its connections do not accept two notifications at
// once, so this file keeps a table of sessions and queues the notifications of a connection. Mail is on; all data is in memory.
import { WebSocketServer, WebSocket } from 'ws';
globalThis.WebSocket ??= WebSocket;
const { websocketStream } = await import('@multi-agent-protocol/sdk');
const { MAPServer } = await import('@multi-agent-protocol/sdk/server');

const silent = () => {};
console.warn = console.error = silent;
const server = new MAPServer({ name: 'bench-peer', version: '0', mail: { enabled: true } });
const sessions = new Map();

server.messages.onDeliver((id, message) => {
  const agent = server.agents.get(id);
  if (agent) sessions.get(agent.sessionId)?.notify('map/message', { message }).catch(silent);
});

const port = Number(process.argv[2]);
new WebSocketServer({ host: '127.0.0.1', port }, () => console.log(`listening on ${port}`)).on('connection', (socket) => {
  socket.on('error', silent);
  const router = server.accept(websocketStream(socket), { role: 'agent', transportType: 'websocket' });
  const write = router.sendMessage.bind(router);
  let before = Promise.resolve();
  router.sendMessage = (message) => {
    const written = before.then(() => write(message));
    before = written.catch(silent);
    return written;
  };
  router.start();
  sessions.set(router.session.id, router);
  router.closed.then(() => sessions.delete(router.session.id));
});

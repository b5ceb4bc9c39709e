// The MAP SDK's own server behind a WebSocket port, as the peer of `bench/run`:  node map_server.mjs PORT
// The SDK leaves to its host how a letter reaches an agent's connection, and its connections do not take two notices at once;
// so this file keeps a table of sessions and lets the notices of a connection wait for one another. Mail is on; all is in memory.
import { WebSocketServer, WebSocket } from 'ws';
globalThis.WebSocket ??= WebSocket;
const { websocketStream } = await import('@multi-agent-protocol/sdk');
const { MAPServer } = await import('@multi-agent-protocol/sdk/server');

const silent = () => {};
console.warn = console.error = silent;
const office = new MAPServer({ name: 'bench-peer', version: '0', mail: { enabled: true } });
const sessions = new Map();

office.messages.onDeliver((id, message) => {
  const agent = office.agents.get(id);
  if (agent) sessions.get(agent.sessionId)?.notify('map/message', { message }).catch(silent);
});

const port = Number(process.argv[2]);
new WebSocketServer({ host: '127.0.0.1', port }, () => console.log(`listening on ${port}`)).on('connection', (socket) => {
  socket.on('error', silent);
  const router = office.accept(websocketStream(socket), { role: 'agent', transportType: 'websocket' });
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

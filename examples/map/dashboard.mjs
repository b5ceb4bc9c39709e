// A dashboard: it sends nothing, replays earlier events, and then follows new ones.
//   node dashboard.mjs [ws://127.0.0.1:7678/map] [SECONDS]
import { WebSocket } from 'ws';
globalThis.WebSocket ??= WebSocket;
const { ClientConnection } = await import('@multi-agent-protocol/sdk');

const url = process.argv[2] ?? 'ws://127.0.0.1:7678/map';
const seconds = Number(process.argv[3] ?? 0);
const auth = process.env.MAP_TOKEN ? { auth: { method: 'bearer', token: process.env.MAP_TOKEN } } : {};
const client = await ClientConnection.connect(url, { name: 'dashboard', ...auth });
const show = (event) => console.log(new Date(event.timestamp).toISOString(), event.type, event.source ?? '');

const before = await client.replay({ filter: { eventTypes: ['mail.*', 'agent.*'] }, limit: 20 });
console.log(`${before.events.length} events from before${before.hasMore ? ', and more' : ''}`);
before.events.forEach(({ event }) => show(event));

const { agents } = await client.listAgents();
console.log(`${agents.length} agents: ${agents.map((agent) => `${agent.id} (${agent.state})`).join(', ')}`);
const { conversations } = await client.listConversations({ limit: 5 });
for (const conversation of conversations) {
  const { turns } = await client.listTurns({ conversationId: conversation.id, limit: 3, order: 'desc' });
  console.log(`${conversation.subject ?? conversation.id}: ${conversation.status}, last said ${JSON.stringify(turns[0]?.content)}`);
}

const live = await client.subscribe({ eventTypes: ['mail.*', 'message.*', 'agent.*'] });
live.on('event', show);
if (seconds > 0) {
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  await client.disconnect();
  process.exit(0);
}

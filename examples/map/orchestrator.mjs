// An orchestrator with three workers: it assigns work, collects results, and records the exchange as a conversation.
//   node orchestrator.mjs [ws://127.0.0.1:7678/map]
// The token is taken from MAP_TOKEN; a server without authentication needs none.
import { WebSocket } from 'ws';
globalThis.WebSocket ??= WebSocket;
const { AgentConnection } = await import('@multi-agent-protocol/sdk');

const url = process.argv[2] ?? 'ws://127.0.0.1:7678/map';
const auth = process.env.MAP_TOKEN ? { auth: { method: 'bearer', token: process.env.MAP_TOKEN } } : {};
const words = ['post', 'haste', 'message', 'stamp', 'seal', 'courier'];

const boss = await AgentConnection.connect(url, { name: 'orchestrator', role: 'orchestrator', ...auth });
const { conversation } = await boss.createConversation({ type: 'multi-agent', subject: 'Counting characters' });

// A worker makes no mail calls: it copies `meta.mail`, so its results are recorded in the conversation.
const workers = [];
for (let n = 1; n <= 3; n++) {
  const worker = await AgentConnection.connect(url, { name: `worker-${n}`, role: 'worker', parent: boss.agentId, ...auth });
  worker.onMessage((message) => {
    const answer = { word: message.payload.word, characters: message.payload.word.length };
    void worker.send({ agent: message.from }, answer, { correlationId: message.meta?.correlationId, isResult: true, mail: message.meta?.mail });
  });
  await boss.inviteToConversation({ conversationId: conversation.id, participant: { id: worker.agentId, role: 'worker' } });
  workers.push(worker);
}

const answers = new Map();
const done = new Promise((resolve) => boss.onMessage((message) => {
  answers.set(message.meta?.correlationId, message.payload);
  if (answers.size === words.length) resolve();
}));
for (const [index, word] of words.entries()) {
  const to = { agent: workers[index % workers.length].agentId };
  await boss.send(to, { word }, { correlationId: `job-${index}`, expectsResponse: true, mail: { conversationId: conversation.id } });
}
await done;

const { turns } = await boss.listTurns({ conversationId: conversation.id, limit: 100 });
await boss.closeConversation(conversation.id, 'all words are counted');
for (const { word, characters } of answers.values()) console.log(`${word}: ${characters}`);
console.log(`${turns.length} turns on record in ${conversation.id}`);
for (const agent of [...workers, boss]) await agent.disconnect();
process.exit(answers.size === words.length && turns.length === 2 * words.length ? 0 : 1);

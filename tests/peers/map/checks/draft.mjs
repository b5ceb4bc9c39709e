// Methods and forms of the specification draft that the SDK does not use.
import { check, must, same, isString, isNumber, isArray, unique, sleep, hasPayload, WAIT_MS } from '../harness.mjs';

const connectDraft = async (t, extra = {}) => {
  const r = await t.socket();
  const h = await r.call('map/initialize', {
    protocolVersion: '2025-01-01',
    mode: 'full',
    clientInfo: { name: unique('draft'), version: '1.0.0' },
    capabilities: { streaming: true, scopes: true, tasks: true, roles: true, environments: true, federation: false },
    ...extra,
  });
  return { r, h };
};

check('draft.initialize', async (t) => {
  const { h } = await connectDraft(t);
  same(h.protocolVersion, '2025-01-01', 'protocolVersion');
  same(h.mode, 'full', 'mode');
  isString(h.serverInfo?.name, 'serverInfo.name');
  isString(h.agentId, 'agentId');
  const c = h.capabilities;
  for (const k of ['streaming', 'replay']) same(c[k], true, `capabilities.${k}`);
  for (const k of ['inject', 'interrupt', 'queue', 'best-effort']) must(c.deliverySemantics?.includes(k), `deliverySemantics has ${k}`);
  isNumber(c.maxSubscriptions, 'maxSubscriptions');
  isNumber(c.maxMessageSize, 'maxMessageSize');
});

check('draft.initialize-acp-compat', async (t) => {
  const { h } = await connectDraft(t, { mode: 'acp-compat' });
  same(h.mode, 'acp-compat', 'mode');
});

check('draft.send-typed-address-and-receipts', async (t) => {
  const { r } = await connectDraft(t);
  const b = await t.agent();
  const x = await r.call('map/send', {
    to: { type: 'agent', id: b.id },
    payload: { type: 'task_assignment' },
    meta: { priority: 'high', delivery: 'inject', ttl: 60000, requireAck: true },
  });
  isString(x.messageId, 'messageId');
  same(x.delivered, 1, 'delivered');
  same([x.receipts?.[0]?.agentId, x.receipts?.[0]?.status, x.receipts?.[0]?.semantic], [b.id, 'delivered', 'inject'], 'receipt');
  isNumber(x.receipts[0].timestamp, 'receipt.timestamp');
  await b.inbox.wait(hasPayload({ type: 'task_assignment' }));
});

check('draft.agent-receives', async (t) => {
  const { r, h } = await connectDraft(t);
  const a = await t.agent();
  await a.send({ agent: h.agentId }, { to: 'draft' });
  await r.frames.wait(
    (f) => ['map/message', 'map/send'].includes(f.method) && JSON.stringify(f.params).includes('draft'),
    WAIT_MS,
    'message',
  );
});

check('draft.subscribe-streams-envelope', async (t) => {
  const { r } = await connectDraft(t);
  const { subscriptionId: id } = await r.call('map/subscribe', {
    streams: ['state'],
    filter: {},
    options: { includeHistory: false, bufferSize: 1000, deliveryMode: 'at-least-once' },
  });
  isString(id, 'subscriptionId');
  const a = await t.agent();
  const f = await r.frames.wait(
    (x) => x.method === 'map/event' && x.params.subscriptionId === id && JSON.stringify(x.params.event).includes(a.id),
    WAIT_MS,
    'event',
  );
  isNumber(f.params.sequence, 'sequence');
  isString(f.params.eventId, 'eventId');
  isNumber(f.params.timestamp, 'timestamp');
  same(f.params.event.type, 'agent.registered', 'type');
});

check('draft.replay-from-to', async (t) => {
  const { r } = await connectDraft(t);
  const t0 = Date.now() - 5;
  const a = await t.agent();
  const x = await r.call('map/replay', {
    from: t0,
    to: Date.now() + 1000,
    filter: { eventTypes: ['agent.*'] },
    options: { limit: 50, order: 'chronological' },
  });
  isArray(x.events, 'events');
  must(JSON.stringify(x.events).includes(a.id), 'finds the agent');
});

check('draft.shutdown', async (t) => {
  const { r, h } = await connectDraft(t);
  await r.call('map/shutdown', { reason: 'user_requested', timeout: 5000, cascade: true });
  const c = await t.client();
  const end = Date.now() + WAIT_MS;
  let e;
  do {
    await sleep(30);
    e = await c.getAgent(h.agentId).then(
      () => null,
      (x) => x,
    );
  } while (!e && Date.now() < end);
  same(e?.code, 2001, 'agent is gone');
});

for (const m of ['_map/agent.list', 'map/agent.list'])
  check(`draft.${m.replace('/', '-')}`, async (t) => {
    const { r } = await connectDraft(t);
    const a = await t.agent();
    const x = await r.call(m, {});
    isArray(x.agents, 'agents');
    must(
      x.agents.some((y) => y.id === a.id),
      'listed',
    );
  });

check('draft._map-send', async (t) => {
  const { r } = await connectDraft(t);
  const b = await t.agent();
  await r.call('_map/send', { to: { type: 'agent', id: b.id }, payload: { c: 1 } });
  await b.inbox.wait(hasPayload({ c: 1 }));
});

for (const m of [
  '_map/hierarchy.get',
  '_map/scope.list',
  '_map/task.list',
  '_map/subscribe',
  'map/hierarchy.get',
  'map/scope.list',
  'map/task.list',
])
  check(`draft.answers-${m.replace('/', '-')}`, async (t) => {
    const { r } = await connectDraft(t);
    const x = await r.call(m, {});
    must(x && typeof x === 'object', 'result');
  });

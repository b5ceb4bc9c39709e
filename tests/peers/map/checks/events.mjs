// Subscriptions: what is announced and how it is filtered.
import { check, must, same, isString, isNumber, isArray, unique, sleep, EVENT, SDK, WAIT_MS, QUIET_MS } from '../harness.mjs';

check('events.agent-registered', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.AGENT_REGISTERED] });
  const a = await t.agent({ role: 'q' });
  const e = await b.wait((x) => (x.data?.agentId ?? x.data?.agent?.id) === a.id, WAIT_MS, 'event');
  same(e.type, 'agent_registered', 'type');
  same(e.data.agentId, a.id, 'data.agentId');
  same(e.source, a.id, 'source');
  isNumber(e.timestamp, 'timestamp');
  isString(e.id, 'id');
});

check('events.agent-unregistered', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.AGENT_UNREGISTERED] });
  const a = await t.agent();
  const id = a.id;
  await a.disconnect();
  const e = await b.wait((x) => x.data?.agentId === id);
  same(e.type, 'agent_unregistered', 'type');
});

check('events.agent-state-changed', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.AGENT_STATE_CHANGED] });
  const a = await t.agent();
  const from = a.state;
  await a.busy();
  const e = await b.wait((x) => (x.data?.agentId ?? x.data?.agent?.id) === a.id);
  same(e.data.newState, 'busy', 'newState');
  same(e.data.previousState, from, 'previousState');
});

check('events.message-sent-and-delivered', async (t) => {
  const [a, d] = [await t.agent(), await t.agent()];
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_SENT, EVENT.MESSAGE_DELIVERED] });
  const r = await a.send({ agent: d.id }, { z: 1 }, { correlationId: 'cc' });
  const s = await b.wait((x) => x.type === 'message_sent' && x.data?.messageId === r.messageId);
  const v = await b.wait((x) => x.type === 'message_delivered' && x.data?.messageId === r.messageId);
  same(s.source, a.id, 'sent.source');
  same(v.data.correlationId, 'cc', 'delivered.correlationId');
  same(v.data.message?.payload, { z: 1 }, 'delivered.message.payload');
});

check('events.scope-membership', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.SCOPE_CREATED, EVENT.SCOPE_MEMBER_JOINED, EVENT.SCOPE_MEMBER_LEFT] });
  const s = await a.createScope({ name: unique() });
  await a.joinScope(s.id);
  await a.leaveScope(s.id);
  await b.wait((x) => x.type === 'scope_created' && x.data?.scopeId === s.id);
  await b.wait((x) => x.type === 'scope_member_joined' && x.data?.agentId === a.id);
  await b.wait((x) => x.type === 'scope_member_left' && x.data?.scopeId === s.id);
});

check('events.participant-connected', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.PARTICIPANT_CONNECTED, EVENT.PARTICIPANT_DISCONNECTED] });
  const d = await t.client();
  await b.wait((x) => x.type === 'participant_connected' && x.data?.participantId === d.pid);
  d.ws.terminate();
  await b.wait((x) => x.type === 'participant_disconnected' && x.data?.participantId === d.pid);
});

check('events.no-filter-gets-everything', async (t) => {
  const c = await t.client();
  const b = await c.collect();
  const a = await t.agent();
  await b.wait((x) => (x.data?.agentId ?? x.data?.agent?.id) === a.id);
});

check('events.subscription-without-filter-leaves-others-alone', async (t) => {
  const c = await t.client();
  const d = await t.client();
  const b = await d.collect({ eventTypes: [EVENT.AGENT_REGISTERED, 'agent.registered'] });
  const sub = await c.subscribe();
  const a = await t.agent();
  try {
    await b.wait((x) => (x.data?.agentId ?? x.data?.agent?.id) === a.id, WAIT_MS, 'event on the other subscription');
  } finally {
    await sub.unsubscribe().catch(() => {});
  }
});

check('events.burst-in-one-tick-survives', async (t) => {
  const [a, d] = [await t.agent(), await t.agent()];
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_SENT, EVENT.MESSAGE_DELIVERED, 'message.sent', 'message.delivered'] });
  for (let i = 0; i < 20; i++) await a.send({ agent: d.id }, i);
  await b.count(40, () => true, WAIT_MS, 'message events');
  isArray((await c.listAgents()).agents, 'subscriber still served');
  isArray((await c.listAgents()).agents, 'and again');
});

check('events.type-dot-notation-alias', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: ['agent.registered'] });
  const a = await t.agent();
  await b.wait((x) => (x.data?.agentId ?? x.data?.agent?.id) === a.id);
});

check('events.type-underscore-notation', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: ['agent_registered'] });
  const a = await t.agent();
  await b.wait((x) => (x.data?.agentId ?? x.data?.agent?.id) === a.id);
});

check('events.type-wildcard', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: ['scope.*'] });
  const a = await t.agent();
  const s = await a.createScope({ name: unique() });
  await a.joinScope(s.id);
  await b.wait((x) => /^scope.created/.test(x.type));
  await b.wait((x) => /joined|added/.test(x.type));
  must(
    b.items.every((x) => x.type.startsWith('scope')),
    'only scope events',
  );
});

check('events.filter-from-agents', async (t) => {
  const [a, d, x] = [await t.agent(), await t.agent(), await t.agent()];
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_SENT, 'message.sent'], fromAgents: [a.id] });
  await d.send({ agent: x.id }, 1);
  const r = await a.send({ agent: x.id }, 2);
  await b.wait((e) => (e.data?.messageId ?? e.data?.message?.id) === r.messageId);
  same(b.items.length, 1, 'events');
});

check('events.filter-from-roles', async (t) => {
  const role = unique('r');
  const [a, d, x] = [await t.agent({ role }), await t.agent({ role: 'zz' }), await t.agent()];
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_SENT], fromRoles: [role] });
  await d.send({ agent: x.id }, 1);
  const r = await a.send({ agent: x.id }, 2);
  await b.wait((e) => e.data?.messageId === r.messageId);
  same(b.items.length, 1, 'events');
});

check('events.filter-roles', async (t) => {
  const role = unique('r');
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.AGENT_REGISTERED], roles: [role] });
  await t.agent({ role: 'zz' });
  const a = await t.agent({ role });
  await b.wait((e) => e.data?.agentId === a.id);
  same(b.items.length, 1, 'events');
});

check('events.filter-scopes', async (t) => {
  const a = await t.agent();
  const [s1, s2] = [await a.createScope({ name: unique() }), await a.createScope({ name: unique() })];
  const c = await t.client();
  const b = await c.collect({ scopes: [s1.id] });
  await a.joinScope(s2.id);
  await a.joinScope(s1.id);
  await b.wait((e) => e.data?.scopeId === s1.id);
  must(
    b.items.every((e) => e.data?.scopeId === s1.id),
    'only scope 1',
  );
});

check('events.filter-priorities', async (t) => {
  const [a, d] = [await t.agent(), await t.agent()];
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_SENT], priorities: ['urgent', 'high'], fromAgents: [a.id] });
  await a.send({ agent: d.id }, 1, { priority: 'low' });
  await a.send({ agent: d.id }, 2);
  const r = await a.send({ agent: d.id }, 3, { priority: 'urgent' });
  await b.wait((e) => e.data?.messageId === r.messageId);
  same(b.items.length, 1, 'events');
});

check('events.filter-correlation-ids', async (t) => {
  const [a, d] = [await t.agent(), await t.agent()];
  const id = unique('corr');
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_DELIVERED], correlationIds: [id] });
  await a.send({ agent: d.id }, 1, { correlationId: 'other' });
  const r = await a.send({ agent: d.id }, 2, { correlationId: id });
  await b.wait((e) => e.data?.messageId === r.messageId);
  same(b.items.length, 1, 'events');
});

check('events.filter-metadata-match', async (t) => {
  const c = await t.client();
  const k = unique('m');
  const b = await c.collect({ eventTypes: [EVENT.AGENT_REGISTERED], metadataMatch: { team: k } });
  const a = await t.agent();
  await a.call('map/agents/register', { name: unique(), metadata: { team: 'no' } });
  const g = (await a.call('map/agents/register', { name: unique(), metadata: { team: k, x: 1 } })).agent;
  await b.wait((e) => (e.data?.agentId ?? e.data?.agent?.id) === g.id);
  same(b.items.length, 1, 'events');
});

check('events.filter-fields-are-anded', async (t) => {
  const role = unique('r');
  const [a, d, x] = [await t.agent({ role }), await t.agent({ role }), await t.agent()];
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.MESSAGE_SENT], fromRoles: [role], fromAgents: [d.id, x.id] });
  await a.send({ agent: x.id }, 1);
  const r = await d.send({ agent: x.id }, 2);
  await b.wait((e) => e.data?.messageId === r.messageId);
  same(b.items.length, 1, 'events');
});

check('events.empty-arrays-mean-no-filter', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: [], fromAgents: [], scopes: [] });
  const a = await t.agent();
  await b.wait((e) => (e.data?.agentId ?? e.data?.agent?.id) === a.id);
});

check('events.unsubscribe-stops', async (t) => {
  const r = await t.socket();
  await r.connect();
  const { subscriptionId: id } = await r.call('map/subscribe', { filter: {} });
  const u = await r.call('map/unsubscribe', { subscriptionId: id });
  same(u.subscription?.id, id, 'result.subscription.id');
  isNumber(u.subscription?.closedAt, 'closedAt');
  const n = r.events(id).length;
  await t.agent();
  await sleep(QUIET_MS);
  same(r.events(id).length, n, 'events after unsubscribe');
});

check('events.envelope', async (t) => {
  const r = await t.socket();
  await r.connect();
  const { subscriptionId: id } = await r.call('map/subscribe', { filter: { eventTypes: ['agent_registered', 'agent.registered'] } });
  for (let i = 0; i < 4; i++) await t.agent();
  await r.frames.count(4, (f) => f.method === 'map/event' && f.params.subscriptionId === id);
  const ev = r.events(id);
  same(
    ev.map((e) => e.sequenceNumber),
    [1, 2, 3, 4],
    'sequenceNumber',
  );
  same(new Set(ev.map((e) => e.eventId)).size, 4, 'distinct eventId');
  must(
    ev.every((e) => SDK.isValidUlid(e.eventId)),
    'eventId must be a ULID',
  );
  must(
    ev.every((e) => typeof e.timestamp === 'number'),
    'timestamp',
  );
  const ids = ev.map((e) => e.eventId);
  same([...ids].sort(), ids, 'eventIds ascend');
});

check('events.causal-sent-before-delivered', async (t) => {
  const [a, d] = [await t.agent(), await t.agent()];
  const r = await t.socket();
  await r.connect();
  const { subscriptionId: id } = await r.call('map/subscribe', { filter: { fromAgents: [a.id] } });
  const { messageId } = await a.send({ agent: d.id }, 1);
  const of = (n) => (f) =>
    f.method === 'map/event' && f.params.subscriptionId === id && f.params.event.type === n && f.params.event.data?.messageId === messageId;
  const s = (await r.frames.wait(of('message_sent'), WAIT_MS, 'message_sent')).params,
    v = (await r.frames.wait(of('message_delivered'), WAIT_MS, 'message_delivered')).params;
  must(s.sequenceNumber < v.sequenceNumber, 'sent must precede delivered');
  must([].concat(v.causedBy ?? v.event.causedBy ?? []).includes(s.eventId), 'delivered.causedBy must name the sent event');
});

check('events.exclude-own', async (t) => {
  const r = await t.socket();
  await r.connect('agent');
  await r.call('map/agents/register', { name: unique() });
  const { subscriptionId: id } = await r.call('map/subscribe', {
    filter: { eventTypes: ['message_sent'] },
    options: { excludeOwnEvents: true },
  });
  const [a, b] = [await t.agent(), await t.agent()];
  await r.call('map/send', { to: { agent: b.id }, payload: 'own' });
  await a.send({ agent: b.id }, 'theirs');
  await r.frames.wait((f) => f.method === 'map/event' && f.params.subscriptionId === id, WAIT_MS, 'event');
  same(r.events(id).length, 1, 'events');
});

check('events.async-iterator', async (t) => {
  const c = await t.client();
  const sub = await c.subscribe({ eventTypes: [EVENT.AGENT_REGISTERED, 'agent.registered'] });
  const a = await t.agent();
  const got = await Promise.race([
    (async () => {
      for await (const e of sub) if ((e.data?.agentId ?? e.data?.agent?.id) === a.id) return e;
    })(),
    sleep(WAIT_MS).then(() => null),
  ]);
  must(got, 'no event from the iterator');
});

check('events.star-matches-all', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: ['*'] });
  const a = await t.agent();
  await a.createScope({ name: unique() });
  await b.wait((e) => /^agent.registered/.test(e.type));
  await b.wait((e) => /^scope.created/.test(e.type));
});

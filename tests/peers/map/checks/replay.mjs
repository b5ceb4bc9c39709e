// Replay, acknowledgement and pausing of subscriptions.
import { check, must, same, isString, isNumber, isArray, sleep, EVENT, WAIT_MS, QUIET_MS } from '../harness.mjs';

check('replay.basic', async (t) => {
  const c = await t.client();
  const t0 = Date.now() - 5;
  const a = await t.agent();
  const r = await c.replay({ fromTimestamp: t0, filter: { eventTypes: [EVENT.AGENT_REGISTERED, 'agent.registered'] } });
  isArray(r.events, 'events');
  same(typeof r.hasMore, 'boolean', 'typeof hasMore');
  const e = r.events.find((x) => (x.event.data?.agentId ?? x.event.data?.agent?.id) === a.id);
  must(e, 'event found');
  isString(e.eventId, 'eventId');
  isNumber(e.timestamp, 'timestamp');
});

check('replay.keyset-pagination', async (t) => {
  const c = await t.client();
  const t0 = Date.now() - 5;
  for (let i = 0; i < 7; i++) await t.agent();
  const f = { fromTimestamp: t0, filter: { eventTypes: [EVENT.AGENT_REGISTERED] } };
  const p1 = await c.replay({ ...f, limit: 3 });
  same(p1.events.length, 3, 'page 1');
  same(p1.hasMore, true, 'hasMore');
  const p2 = await c.replay({ ...f, afterEventId: p1.events.at(-1).eventId, limit: 3 });
  same(p2.events.length, 3, 'page 2');
  must(
    p2.events.every((e) => !p1.events.some((x) => x.eventId === e.eventId)),
    'no overlap',
  );
});

check('replay.all-generator', async (t) => {
  const c = await t.client();
  const t0 = Date.now() - 5;
  const n = 5;
  for (let i = 0; i < n; i++) await t.agent();
  const ids = [];
  for await (const e of c.replayAll({ fromTimestamp: t0, limit: 2, filter: { eventTypes: [EVENT.AGENT_REGISTERED] } })) ids.push(e.eventId);
  must(ids.length >= n, `got ${ids.length}`);
  same(new Set(ids).size, ids.length, 'distinct');
});

check('replay.to-timestamp', async (t) => {
  const c = await t.client();
  const t0 = Date.now();
  await sleep(5);
  await t.agent();
  await sleep(20);
  const t1 = Date.now();
  await sleep(20);
  const late = await t.agent();
  const r = await c.replay({ fromTimestamp: t0, toTimestamp: t1, filter: { eventTypes: [EVENT.AGENT_REGISTERED] } });
  must(r.events.length >= 1, 'first found');
  must(!r.events.some((e) => (e.event.data?.agentId ?? e.event.data?.agent?.id) === late.id), 'late one left out');
});

check('replay.subscribe-from-event', async (t) => {
  const r = await t.socket();
  await r.connect();
  const { subscriptionId: s1 } = await r.call('map/subscribe', { filter: { eventTypes: ['agent_registered'] } });
  const a = await t.agent();
  await r.frames.wait((f) => f.params?.subscriptionId === s1);
  const first = r.events(s1)[0].eventId;
  const b = await t.agent();
  const { subscriptionId: s2 } = await r.call('map/subscribe', { filter: { eventTypes: ['agent_registered'] }, replayFrom: first });
  await r.frames.wait((f) => f.params?.subscriptionId === s2 && f.params.event.data.agentId === b.id, WAIT_MS, 'replayed event');
  must(!r.events(s2).some((e) => e.event.data.agentId === a.id), 'the named event itself is not repeated');
});

check('ack.accepted', async (t) => {
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.AGENT_REGISTERED] });
  must(b.subscription.supportsAck, 'sub.supportsAck');
  await t.agent();
  await b.wait();
  b.subscription.ack();
  await t.agent();
  await b.count(2);
  isArray((await c.listAgents()).agents, 'still served');
});

check('ack.no-silent-loss-when-acks-stop', async (t) => {
  const r = await t.socket();
  await r.connect();
  const { subscriptionId: id } = await r.call('map/subscribe', {
    filter: { eventTypes: ['message_sent'] },
    options: { bufferSize: 10, deliveryMode: 'at-least-once' },
  });
  const [a, b] = [await t.agent(), await t.agent()];
  await a.send({ agent: b.id }, 0);
  await r.frames.wait((f) => f.params?.subscriptionId === id, WAIT_MS, 'first event');
  r.notify('map/subscribe.ack', { subscriptionId: id, upToSequence: 1 });
  for (let i = 1; i <= 60; i++) await a.send({ agent: b.id }, i);
  for (let k = 0; k < 12; k++) {
    await sleep(60);
    const ev = r.events(id);
    r.notify('map/subscribe.ack', { subscriptionId: id, upToSequence: ev.at(-1).sequenceNumber });
  }
  await sleep(QUIET_MS);
  const ev = r.events(id);
  const over = ev.filter((e) => e.event.type === 'subscription.overflow');
  const normal = ev.length - over.length;
  const dropped = over.reduce((n, e) => n + (e.event.eventsDropped ?? e.event.data?.eventsDropped ?? 0), 0);
  same(normal + dropped, 61, 'delivered + dropped');
});

check('pause.holds-and-resume-flushes', async (t) => {
  const r = await t.socket();
  await r.connect();
  const { subscriptionId: id } = await r.call('map/subscribe', { filter: { eventTypes: ['agent_registered', 'agent.registered'] } });
  await r.call('map/pause', { subscriptionId: id });
  await t.agent();
  await t.agent();
  await sleep(QUIET_MS);
  same(r.events(id).length, 0, 'events while paused');
  await r.call('map/resume', { subscriptionId: id });
  await r.frames.count(2, (f) => f.params?.subscriptionId === id, WAIT_MS, 'buffered events');
  same(
    r.events(id).map((e) => e.sequenceNumber),
    [1, 2],
    'sequence',
  );
});

// `map/send`: forms of address, what the message and its answer carry, requests, the ACP tunnel.
import { check, must, same, isString, isNumber, isArray, oneOf, unique, hasPayload, SDK, WAIT_MS, QUIET_MS } from '../harness.mjs';

const sendReaches = async (sender, to, wants, not = [], meta) => {
  const p = { k: unique('p') };
  const r = await sender.send(to, p, meta);
  isString(r.messageId, 'messageId');
  for (const w of wants) await w.inbox.wait(hasPayload(p), WAIT_MS, 'message');
  for (const n of not) await n.inbox.none(hasPayload(p), QUIET_MS, 'message');
  return { r, p };
};

check('send.to-string', async (t) => {
  const [a, b, c] = [await t.agent(), await t.agent(), await t.agent()];
  await sendReaches(a, b.id, [b], [c]);
});

check('send.to-agent', async (t) => {
  const [a, b, c] = [await t.agent(), await t.agent(), await t.agent()];
  await sendReaches(a, { agent: b.id }, [b], [c]);
});

check('send.to-agents', async (t) => {
  const [a, b, c, d] = [await t.agent(), await t.agent(), await t.agent(), await t.agent()];
  await sendReaches(a, { agents: [b.id, c.id] }, [b, c], [d]);
});

check('send.to-scope', async (t) => {
  const [a, b, c, d] = [await t.agent(), await t.agent(), await t.agent(), await t.agent()];
  const s = await a.createScope({ name: unique('s') });
  for (const x of [a, b, c]) await x.joinScope(s.id);
  await sendReaches(a, { scope: s.id }, [b, c], [d]);
});

check('send.to-scope-excludes-sender', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const s = await a.createScope({ name: unique('s') });
  await a.joinScope(s.id);
  await b.joinScope(s.id);
  await sendReaches(a, { scope: s.id }, [b], [a]);
});

check('send.to-role', async (t) => {
  const r = unique('role');
  const [a, b, c, d] = [await t.agent(), await t.agent({ role: r }), await t.agent({ role: r }), await t.agent({ role: 'z' })];
  await sendReaches(a, { role: r }, [b, c], [d]);
});

check('send.to-role-within-scope', async (t) => {
  const r = unique('role');
  const [a, b, c, d] = [await t.agent(), await t.agent({ role: r }), await t.agent({ role: r }), await t.agent({ role: 'z' })];
  const s = await a.createScope({ name: unique('s') });
  await b.joinScope(s.id);
  await d.joinScope(s.id);
  await sendReaches(a, { role: r, within: s.id }, [b], [c, d]);
});

check('send.to-broadcast', async (t) => {
  const [a, b, c] = [await t.agent(), await t.agent(), await t.agent()];
  await sendReaches(a, { broadcast: true }, [b, c]);
});

check('send.to-broadcast-excludes-sender', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  await sendReaches(a, { broadcast: true }, [b], [a]);
});

check('send.to-parent', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id });
  const o = await t.agent();
  const x = { v: unique() };
  await k.sendToParent(x);
  const m = await p.inbox.wait(hasPayload(x));
  same(m.meta?.relationship, 'child-to-parent', 'relationship');
  await o.inbox.none(hasPayload(x));
});

check('send.to-children', async (t) => {
  const p = await t.agent();
  const [k1, k2] = [await t.agent({ parent: p.id }), await t.agent({ parent: p.id })];
  const g = await t.agent({ parent: k1.id });
  const x = { v: unique() };
  await p.sendToChildren(x);
  await k1.inbox.wait(hasPayload(x));
  await k2.inbox.wait(hasPayload(x));
  await g.inbox.none(hasPayload(x));
});

check('send.to-siblings', async (t) => {
  const p = await t.agent();
  const [k1, k2] = [await t.agent({ parent: p.id }), await t.agent({ parent: p.id })];
  const x = { v: unique() };
  await k1.sendToSiblings(x);
  await k2.inbox.wait(hasPayload(x));
  await k1.inbox.none(hasPayload(x));
  await p.inbox.none(hasPayload(x), 20);
});

check('send.to-ancestors', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id });
  const g = await t.agent({ parent: k.id });
  const o = await t.agent();
  await sendReaches(g, { ancestors: true }, [k, p], [o]);
});

check('send.to-descendants', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id });
  const g = await t.agent({ parent: k.id });
  const o = await t.agent();
  await sendReaches(p, { descendants: true }, [k, g], [o]);
});

check('send.to-participant', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  await sendReaches(a, { participant: b.pid }, [b]);
});

check('send.to-participants-agents', async (t) => {
  const [a, b, c] = [await t.agent(), await t.agent(), await t.agent()];
  await sendReaches(a, { participants: 'agents' }, [b, c]);
});

check('send.to-system', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  await sendReaches(a, { system: true }, [], [b]);
});

check('send.to-prefixed-string', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const s = await a.createScope({ name: unique('s') });
  await b.joinScope(s.id);
  await sendReaches(a, `agent:${b.id}`, [b]);
  await sendReaches(a, `scope:${s.id}`, [b]);
});

check('send.to-federated-unknown-system-stays-out', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const p = { f: unique() };
  try {
    const r = await a.send({ system: 'no-such-system', agent: b.id }, p);
    same(r.delivered ?? null, [], 'delivered');
  } catch (e) {
    if (e.code === undefined) throw e;
    oneOf(e.code, [2000, 2001, 5000, 5001, 5003], 'code');
  }
  await b.inbox.none(hasPayload(p), QUIET_MS, 'local delivery');
});

check('send.unknown-agent-is-not-silent', async (t) => {
  const a = await t.agent();
  try {
    const r = await a.send({ agent: unique('ghost') }, 1);
    must(
      Array.isArray(r.delivered) && r.delivered.length === 0,
      () => `reported as ${JSON.stringify(r)}; want an error (2001) or delivered: []`,
    );
  } catch (e) {
    if (e.code === undefined) throw e;
    oneOf(e.code, [2000, 2001], 'code');
  }
});

check('send.unknown-scope-is-not-silent', async (t) => {
  const a = await t.agent();
  try {
    const r = await a.send({ scope: unique('ghost') }, 1);
    must(
      Array.isArray(r.delivered) && r.delivered.length === 0,
      () => `reported as ${JSON.stringify(r)}; want an error (2002) or delivered: []`,
    );
  } catch (e) {
    if (e.code === undefined) throw e;
    oneOf(e.code, [2000, 2002], 'code');
  }
});

check('send.result-lists-delivered', async (t) => {
  const [a, b, c] = [await t.agent(), await t.agent(), await t.agent()];
  const r = await a.send({ agents: [b.id, c.id] }, 1);
  isString(r.messageId, 'messageId');
  isArray(r.delivered, 'delivered');
  same(r.delivered.length, 2, 'delivered.length');
});

check('send.message-shape', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const r = await a.send({ agent: b.id }, { x: 1 });
  const m = await b.inbox.wait(hasPayload({ x: 1 }));
  same(m.id, r.messageId, 'message.id');
  isNumber(m.timestamp, 'timestamp');
  isString(m.from, 'from');
  must(m.to !== undefined, 'to');
});

check('send.from-is-agent-id', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  await a.send({ agent: b.id }, 1);
  const m = await b.inbox.wait();
  same(m.from, a.id, 'from');
});

check('send.meta-is-preserved', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const meta = {
    correlationId: 'c-1',
    priority: 'high',
    delivery: 'acknowledged',
    expectsResponse: true,
    protocol: 'acp',
    _meta: { vendor: { z: [1] } },
  };
  await a.send({ agent: b.id }, 1, meta);
  const m = await b.inbox.wait();
  for (const k of Object.keys(meta)) same(m.meta?.[k], meta[k], `meta.${k}`);
});

check('send.payload-fidelity', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const all = [null, 0, '', false, 'žluťoučký 🐎 \u2028 \n"\\', [1, [2, { a: null }]], { ключ: { '': 1 } }, 1e21, -0.5];
  for (const p of all) await a.send({ agent: b.id }, p);
  await b.inbox.count(all.length);
  same(
    b.inbox.items.map((m) => m.payload),
    all,
    'payloads',
  );
});

check('send.large-payload-512k', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const s = 'x'.repeat(512 * 1024);
  await a.send({ agent: b.id }, { s });
  const m = await b.inbox.wait(() => true, 5000);
  same(m.payload.s.length, s.length, 'length');
});

check('send.fifo-200', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  await Promise.all(Array.from({ length: 200 }, (_, i) => a.send({ agent: b.id }, i)));
  await b.inbox.count(200, () => true, 4000);
  same(
    b.inbox.items.map((m) => m.payload),
    [...Array(200).keys()],
    'order',
  );
});

check('send.many-senders-nothing-lost', async (t) => {
  const b = await t.agent();
  const ss = [];
  for (let i = 0; i < 6; i++) ss.push(await t.agent());
  await Promise.all(ss.flatMap((s, i) => Array.from({ length: 40 }, (_, j) => s.send({ agent: b.id }, [i, j]))));
  await b.inbox.count(240, () => true, 4000);
  same(new Set(b.inbox.items.map((m) => m.payload.join())).size, 240, 'distinct');
});

check('send.reply-reaches-sender', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  b.onMessage((m) => {
    void b.reply(m, { pong: 1 });
  });
  await a.send({ agent: b.id }, { ping: 1 }, { correlationId: 'k9' });
  const m = await a.inbox.wait(hasPayload({ pong: 1 }), WAIT_MS, 'reply');
  same(m.meta?.correlationId, 'k9', 'correlationId');
  same(m.meta?.isResult, true, 'isResult');
});

check('send.client-to-agent', async (t) => {
  const c = await t.client();
  const b = await t.agent();
  await c.sendToAgent(b.id, { q: 1 });
  const m = await b.inbox.wait(hasPayload({ q: 1 }));
  isString(m.from, 'from');
});

check('request.client-gets-agents-answer', async (t) => {
  const c = await t.client();
  const b = await t.agent();
  b.onMessage((m) => {
    void b.reply(m, { answer: m.payload.n + 1 });
  });
  const r = await c.request({ agent: b.id }, { n: 41 }, { timeout: WAIT_MS });
  same(r?.payload, { answer: 42 }, 'payload of the answer');
});

check('acp.tunnel-round-trip', async (t) => {
  const c = await t.client();
  const b = await t.agent({ capabilities: { protocols: ['acp'], acp: { version: '2024-10-07' } } });
  new SDK.ACPAgentAdapter(b, {
    initialize: async () => ({ protocolVersion: 20241007, agentInfo: { name: 'n', version: '1' }, agentCapabilities: {} }),
    newSession: async () => ({ sessionId: 'sess-1' }),
    prompt: async () => ({ stopReason: 'end_turn' }),
    cancel: async () => {},
  });
  const acp = c.createACPStream({
    targetAgent: b.id,
    client: { requestPermission: async () => ({ outcome: { outcome: 'cancelled' } }), sessionUpdate: async () => {} },
    timeout: WAIT_MS,
  });
  acp.on('error', () => {});
  const r = await acp.initialize({ protocolVersion: 20241007, clientInfo: { name: 'x', version: '1' } });
  same(r.agentInfo?.name, 'n', 'agentInfo');
  same((await acp.newSession({ cwd: '/', mcpServers: [] })).sessionId, 'sess-1', 'session');
  await acp.close();
});

check('send.to-self', async (t) => {
  const a = await t.agent();
  await a.send({ agent: a.id }, { me: 1 });
  await a.inbox.wait(hasPayload({ me: 1 }));
});

check('send.client-to-scope-and-role', async (t) => {
  const role = unique('r');
  const c = await t.client();
  const [a, b] = [await t.agent({ role }), await t.agent()];
  const s = await b.createScope({ name: unique() });
  await b.joinScope(s.id);
  await c.sendToScope(s.id, { s: 1 });
  await b.inbox.wait(hasPayload({ s: 1 }));
  await c.sendToRole(role, { r: 1 });
  await a.inbox.wait(hasPayload({ r: 1 }));
});

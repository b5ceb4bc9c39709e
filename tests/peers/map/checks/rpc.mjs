// JSON-RPC framing.
import { check, must, same, failsWith, sleep, newConversation, RPC_ERROR, WAIT_MS, QUIET_MS } from '../harness.mjs';

check('rpc.method-not-found', async (t) => {
  const r = await t.socket();
  await r.connect();
  await failsWith(r.call('map/no/such/method', {}), RPC_ERROR.NO_METHOD);
});

check('rpc.id-string-echo', async (t) => {
  const r = await t.socket();
  await r.connect();
  await r.call('map/agents/list', {}, { id: 'résumé/1 "q"' });
});

check('rpc.id-number-echo', async (t) => {
  const r = await t.socket();
  await r.connect();
  await r.call('map/agents/list', {}, { id: 4294967296 });
});

check('rpc.parse-error', async (t) => {
  const r = await t.socket();
  await r.connect();
  r.text('{"jsonrpc":"2.0","id":7,"method":"map/agents/list"');
  const f = await r.frames.wait((x) => x.error, WAIT_MS, 'parse error answer');
  same(f.error.code, RPC_ERROR.PARSE, 'code');
  same(f.id, null, 'id');
  await r.call('map/agents/list', {});
});

check('rpc.invalid-request', async (t) => {
  const r = await t.socket();
  await r.connect();
  r.text(JSON.stringify({ id: 'ir-1', method: 'map/agents/list' }));
  const f = await r.frames.wait((x) => x.error, WAIT_MS, 'invalid-request answer');
  same(f.error.code, RPC_ERROR.INVALID_REQUEST, 'code');
});

check('rpc.notification-has-no-answer', async (t) => {
  const r = await t.socket();
  await r.connect();
  const n = r.frames.items.length;
  r.notify('map/no/such/notification', { a: 1 });
  await sleep(QUIET_MS);
  same(r.frames.items.length, n, 'frames');
  await r.call('map/agents/list', {});
});

check('rpc.batch', async (t) => {
  const r = await t.socket();
  await r.connect();
  r.text(
    JSON.stringify([
      { jsonrpc: '2.0', id: 'b1', method: 'map/agents/list', params: {} },
      { jsonrpc: '2.0', id: 'b2', method: 'map/scopes/list', params: {} },
    ]),
  );
  const f = await r.frames.wait((x) => Array.isArray(x), WAIT_MS, 'batch answer');
  same(f.map((x) => x.id).sort(), ['b1', 'b2'], 'ids');
  must(
    f.every((x) => x.result),
    'every member must have a result',
  );
});

check('rpc.batch-empty', async (t) => {
  const r = await t.socket();
  await r.connect();
  r.text('[]');
  const f = await r.frames.wait((x) => x.error, WAIT_MS, 'answer');
  same(f.error.code, RPC_ERROR.INVALID_REQUEST, 'code');
});

check('rpc.invalid-params.send-without-to', async (t) => {
  const r = await t.socket();
  await r.connect();
  await failsWith(r.call('map/send', { payload: 1 }), RPC_ERROR.INVALID_PARAMS);
});

check('rpc.invalid-params.mail-turn-without-conversation', async (t) => {
  const r = await t.socket();
  await r.connect();
  await failsWith(r.call('mail/turn', { contentType: 'text', content: { text: 'x' } }), RPC_ERROR.INVALID_PARAMS);
});

check('rpc.frame-with-trailing-newline', async (t) => {
  const r = await t.socket();
  await r.connect();
  r.text(JSON.stringify({ jsonrpc: '2.0', id: 'nl', method: 'map/agents/list' }) + '\n');
  await r.frames.wait((x) => x.id === 'nl' && x.result);
});

check('rpc.frame-with-two-lines', async (t) => {
  const r = await t.socket();
  await r.connect();
  r.text(['l1', 'l2'].map((id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'map/agents/list' })).join('\n') + '\n');
  await r.frames.wait((x) => x.id === 'l1');
  await r.frames.wait((x) => x.id === 'l2');
});

check('rpc.one-json-value-per-frame', async (t) => {
  const r = await t.socket();
  await r.connect();
  const { subscriptionId } = await r.call('map/subscribe', { filter: { eventTypes: ['agent_registered', 'agent.registered'] } });
  for (let i = 0; i < 5; i++) await t.agent();
  await r.frames.count(5, (f) => f.method === 'map/event' && f.params.subscriptionId === subscriptionId);
  must(
    r.texts.every((x) => !x.binary),
    'frames must be text',
  );
  must(
    r.frames.items.every((f) => !f.unparsable),
    'every frame must be one JSON value',
  );
});

check('rpc.pipelining-100', async (t) => {
  const a = await t.agent();
  const rs = await Promise.all(Array.from({ length: 100 }, () => a.call('map/agents/get', { agentId: a.id })));
  must(
    rs.every((x) => x.agent?.id === a.id),
    'all answered',
  );
});

for (const [n, m, p] of [
  ['agents-get', 'map/agents/get', {}],
  ['subscribe-filter', 'map/subscribe', { filter: 'x' }],
  ['turns-list-type', 'mail/turns/list', { conversationId: 5 }],
  ['unsubscribe', 'map/unsubscribe', {}],
  ['send-null-to', 'map/send', { to: null, payload: 1 }],
  ['send-empty-address', 'map/send', { to: {}, payload: 1 }],
  ['thread-create', 'mail/thread/create', { rootTurnId: 'x' }],
  ['invite-without-id', 'mail/invite', { conversationId: 'c', participant: {} }],
])
  check(`rpc.invalid-params.${n}`, async (t) => {
    const a = await t.agent();
    if (n === 'invite-without-id') p.conversationId = (await newConversation(a)).id;
    await failsWith(a.call(m, p), [RPC_ERROR.INVALID_PARAMS]);
  });

// Connections, authentication and sessions.
import {
  check,
  must,
  same,
  isString,
  isArray,
  failsWith,
  unique,
  sleep,
  hasPayload,
  SDK,
  WAIT_MS,
  QUIET_MS,
  Skip,
  url,
} from '../harness.mjs';

check('connect.client-hello', async (t) => {
  const c = await t.client();
  isString(c.hello.sessionId, 'sessionId');
  isString(c.hello.participantId, 'participantId');
  must(c.hello.capabilities && typeof c.hello.capabilities === 'object', 'capabilities');
  isString(c.hello.systemInfo?.name, 'systemInfo.name');
});

check('connect.protocol-version-1', async (t) => {
  const c = await t.client();
  same(c.hello.protocolVersion, 1, 'protocolVersion');
});

check('connect.mail-capability', async (t) => {
  const c = await t.client({ capabilities: { mail: { canCreate: true, canViewHistory: true } } });
  for (const k of ['enabled', 'canCreate', 'canJoin', 'canInvite', 'canViewHistory', 'canCreateThreads'])
    same(c.hello.capabilities.mail?.[k], true, `capabilities.mail.${k}`);
});

check('connect.streaming-ack-capability', async (t) => {
  const c = await t.client();
  same(c.hello.capabilities.streaming?.supportsAck, true, 'capabilities.streaming.supportsAck');
});

check('connect.agent-registers', async (t) => {
  const a = await t.agent({ role: 'worker' });
  isString(a.id, 'agentId');
  isString(a.card.state, 'state');
  same(a.card.role, 'worker', 'role');
});

check('connect.only-then-register', async (t) => {
  const a = await SDK.AgentConnection.createConnection(url, { name: unique('split'), role: 'executor' });
  try {
    const r = await a.connectOnly();
    isString(r.sessionId, 'sessionId');
    must(!r.authRequired, 'no auth expected');
    const g = await a.register();
    isString(g.id, 'agent.id');
    same(g.role, 'executor', 'role');
  } finally {
    await a.disconnect().catch(() => {});
  }
});

check('connect.static-factories', async () => {
  const c = await SDK.ClientConnection.connect(url, { name: unique('c') });
  const a = await SDK.AgentConnection.connect(url, { name: unique('a'), role: 'r' });
  must(c.isConnected && a.isConnected, 'connected');
  await a.disconnect();
  await c.disconnect();
  must(!a.isConnected && !c.isConnected, 'disconnected');
});

check('connect.gateway', async (t) => {
  const g = await t.gateway();
  isString(g.hello.sessionId, 'sessionId');
});

check('connect.participants-are-distinct', async (t) => {
  const [a, b] = [await t.client(), await t.client()];
  must(a.pid !== b.pid, 'participantId must differ');
});

check('connect.sessions-are-distinct', async (t) => {
  const [a, b] = [await t.client(), await t.client()];
  must(a.sessionId !== b.sessionId, 'sessionId must differ');
});

check('connect.resume-token-in-hello', async (t) => {
  const c = await t.client();
  isString(c.getResumeToken(), 'resumeToken');
});

check('auth.authenticate-none', async (t) => {
  const c = await t.client();
  const r = await c.authenticate({ method: 'none' });
  same(r.success, true, 'success');
  isString(r.principal?.id, 'principal.id');
});

check('auth.refresh-none', async (t) => {
  const c = await t.client();
  const r = await c.refreshAuth({ method: 'none' });
  same(r.success, true, 'success');
});

check('auth.required-is-announced', async (t) => {
  const u = process.env.MAP_AUTH_URL;
  if (!u) throw new Skip('MAP_AUTH_URL not set');
  const r = await t.socket(u);
  const h = await r.connect();
  isArray(h.authRequired?.methods, 'authRequired.methods');
  same(h.authRequired.required, true, 'required');
  await failsWith(r.call('map/agents/list', {}), [1000, -32001]);
});

check('auth.credential-is-accepted', async (t) => {
  const u = process.env.MAP_AUTH_URL;
  if (!u) throw new Skip('MAP_AUTH_URL not set');
  const c = await t.client({ url: u, connect: { auth: { method: 'bearer', credential: process.env.MAP_AUTH_TOKEN } } });
  isArray((await c.listAgents()).agents, 'agents');
});

check('session.disconnect-gives-resume-token', async (t) => {
  const c = await t.client();
  isString(await c.disconnect('bye'), 'resume token');
});

check('session.resume-keeps-session', async (t) => {
  const c = await t.client();
  const sid = c.sessionId,
    pid = c.pid;
  const tok = await c.disconnect();
  const d = await t.client({ connect: { resumeToken: tok } });
  same(d.hello.reconnected, true, 'reconnected');
  same(d.sessionId, sid, 'sessionId');
  same(d.pid, pid, 'participantId');
});

check('session.resume-token-works-once-connected', async (t) => {
  const c = await t.client();
  const tok = c.getResumeToken();
  isString(tok, 'token');
  c.ws.terminate();
  await sleep(100);
  const d = await t.client({ connect: { resumeToken: tok } });
  same(d.hello.reconnected, true, 'reconnected');
});

check('session.bad-resume-token-starts-fresh', async (t) => {
  const d = await t.client({ connect: { resumeToken: 'resume_nonsense' } });
  must(!d.hello.reconnected, 'reconnected must be falsy');
  isString(d.sessionId, 'sessionId');
});

check('session.list-and-close', async (t) => {
  const c = await t.client();
  const l = await c.listSessions();
  isArray(l.sessions, 'sessions');
  must(
    l.sessions.some((s) => s.id === c.sessionId),
    'own session listed',
  );
  const r = await c.closeSession();
  same(r.session?.id, c.sessionId, 'closed session id');
});

check('session.agent-reclaim-by-id', async (t) => {
  const id = unique('ag');
  const a = await t.agent({ connect: { agentId: id } });
  same(a.id, id, 'requested id');
  a.ws.terminate();
  await sleep(150);
  const b = await t.agent({ connect: { agentId: id } });
  same(b.id, id, 'reclaimed id');
});

check('session.queued-while-offline-then-delivered', async (t) => {
  const id = unique('ag');
  const a = await t.agent({ connect: { agentId: id } });
  const s = await t.agent();
  a.ws.terminate();
  await sleep(150);
  await s.send({ agent: id }, { q: 1 });
  await s.send({ agent: id }, { q: 2 });
  const b = await t.agent({ connect: { agentId: id } });
  await b.inbox.count(2, () => true, WAIT_MS, 'queued messages');
  same(
    b.inbox.items.map((m) => m.payload.q),
    [1, 2],
    'order',
  );
});

check('session.ttl-expires-queued-message', async (t) => {
  const id = unique('ag');
  const a = await t.agent({ connect: { agentId: id } });
  const s = await t.agent();
  a.ws.terminate();
  await sleep(150);
  await s.send({ agent: id }, { old: true }, { ttlMs: 50 });
  await s.send({ agent: id }, { old: false }, { ttlMs: 30000 });
  await sleep(200);
  const b = await t.agent({ connect: { agentId: id } });
  await b.inbox.wait(hasPayload({ old: false }));
  await b.inbox.none(hasPayload({ old: true }), QUIET_MS, 'expired message');
});

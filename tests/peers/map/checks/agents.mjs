// Agents: registration, lists, states, hierarchy, steering.
import { check, must, same, isString, oneOf, failsWith, unique, hasPayload, RPC_ERROR } from '../harness.mjs';

check('agents.register-shape', async (t) => {
  const a = await t.agent({ role: 'r1', name: 'N' });
  same(a.card.name, 'N', 'name');
  isString(a.card.id, 'id');
  isString(a.card.state, 'state');
  same(a.card.ownerId, a.pid, 'ownerId');
});

check('agents.register-honours-requested-id', async (t) => {
  const id = unique('my');
  const a = await t.agent({ connect: { agentId: id } });
  same(a.id, id, 'id');
});

check('agents.register-duplicate-live-id', async (t) => {
  const id = unique('dup');
  await t.agent({ connect: { agentId: id } });
  await failsWith(t.agent({ connect: { agentId: id } }), 3000);
});

check('agents.register-joins-scopes', async (t) => {
  const o = await t.agent();
  const sc = await o.createScope({ name: unique('s') });
  const a = await t.agent({ scopes: [sc.id] });
  const c = await t.client();
  must((await c.getScopeMembers(sc.id)).members.includes(a.id), 'member');
});

check('agents.list-contains', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  must(
    (await c.listAgents()).agents.some((x) => x.id === a.id && x.name === a.card.name),
    'listed',
  );
});

check('agents.list-filter-roles', async (t) => {
  const r = unique('role');
  const a = await t.agent({ role: r });
  await t.agent({ role: 'other' });
  const c = await t.client();
  same(
    (await c.listAgents({ filter: { roles: [r] } })).agents.map((x) => x.id),
    [a.id],
    'agents',
  );
});

check('agents.list-filter-states', async (t) => {
  const r = unique('role');
  const a = await t.agent({ role: r });
  const b = await t.agent({ role: r });
  await a.busy();
  await b.idle();
  const c = await t.client();
  same(
    (await c.listAgents({ filter: { roles: [r], states: ['busy'] } })).agents.map((x) => x.id),
    [a.id],
    'agents',
  );
});

check('agents.list-filter-parent', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id });
  const c = await t.client();
  same(
    (await c.listAgents({ filter: { parent: p.id } })).agents.map((x) => x.id),
    [k.id],
    'agents',
  );
});

check('agents.get-with-children', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id });
  const c = await t.client();
  const r = await c.getAgent(p.id, { include: { children: true, descendants: true } });
  same(r.agent.id, p.id, 'agent');
  same(
    r.children?.map((x) => x.id),
    [k.id],
    'children',
  );
  same(
    r.descendants?.map((x) => x.id),
    [k.id],
    'descendants',
  );
});

check('agents.get-unknown', async (t) => {
  const c = await t.client();
  await failsWith(c.getAgent(unique('none')), 2001);
});

check('agents.update-state', async (t) => {
  const a = await t.agent();
  same((await a.busy()).state, 'busy', 'state');
  same((await a.idle()).state, 'idle', 'state');
  same(a.state, 'idle', 'local state');
});

check('agents.update-custom-state-x', async (t) => {
  const a = await t.agent();
  same((await a.updateState('x-thinking')).state, 'x-thinking', 'state');
});

check('agents.update-metadata-merges', async (t) => {
  const a = await t.agent();
  await a.updateMetadata({ a: 1, b: 2 });
  const r = await a.updateMetadata({ b: 3, c: { d: 4 } });
  same(r.metadata, { a: 1, b: 3, c: { d: 4 } }, 'metadata');
});

check('agents.update-unknown', async (t) => {
  const a = await t.agent();
  await failsWith(a.call('map/agents/update', { agentId: unique('none'), state: 'busy' }), 2001);
});

check('agents.done', async (t) => {
  const a = await t.agent();
  await a.done({ exitCode: 0, exitReason: 'ok' }).catch((e) => {
    throw new Error(`done(): ${e.code} ${e.message}`);
  });
  const c = await t.client();
  const g = (await c.getAgent(a.id)).agent;
  same(g.state, 'stopped', 'state');
  same(g.metadata?.exitReason, 'ok', 'exitReason');
});

check('agents.unregister-removes', async (t) => {
  const a = await t.agent();
  const id = a.id;
  const c = await t.client();
  const r = await a.call('map/agents/unregister', { agentId: id, reason: 'x' });
  same(r.agent?.id, id, 'result.agent.id');
  await failsWith(c.getAgent(id), 2001);
});

check('agents.spawn-child', async (t) => {
  const p = await t.agent();
  const r = await p.spawn({ name: 'kid', role: 'sub', metadata: { k: 1 } });
  isString(r.agent.id, 'child id');
  same(r.agent.parent, p.id, 'child.parent');
  same(r.agent.metadata?.k, 1, 'metadata');
});

check('agents.spawn-unknown-parent', async (t) => {
  const p = await t.agent();
  await failsWith(p.call('map/agents/spawn', { parent: unique('none'), name: 'kid' }), 2001);
});

check('agents.suspend-resume-stop', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  same((await c.suspendAgent(a.id, 'r')).agent?.state, 'suspended', 'suspended');
  const r = await c.resumeAgent(a.id);
  oneOf(r.agent?.state, ['idle', 'active', 'registered', 'busy'], 'resumed');
  oneOf((await c.stopAgent(a.id, { reason: 'x' })).agent?.state, ['stopping', 'stopped'], 'stopped');
});

check('agents.several-on-one-connection', async (t) => {
  const a = await t.agent();
  const two = (await a.call('map/agents/register', { name: unique('two') })).agent.id;
  const s = await t.agent();
  await s.send({ agent: a.id }, { n: 1 });
  await s.send({ agent: two }, { n: 2 });
  await a.inbox.wait(hasPayload({ n: 1 }));
  await a.inbox.wait(hasPayload({ n: 2 }));
});

check('structure.graph', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id });
  const c = await t.client();
  const g = await c.getStructureGraph({});
  must(g.nodes.some((n) => n.id === p.id) && g.nodes.some((n) => n.id === k.id), 'nodes');
  must(
    g.edges.some((e) => e.from === p.id && e.to === k.id && e.type === 'parent-child'),
    'edge',
  );
});

check('steering.inject', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  const r = await c.inject(a.id, { hint: 1 }, 'queue');
  same(r.injected, true, 'injected');
  oneOf(r.delivery, ['interrupt', 'queue', 'message'], 'delivery');
});

check('steering.inject-unknown-agent', async (t) => {
  const c = await t.client();
  await failsWith(c.inject(unique('none'), 'x'), 2001);
});

check('agents.invalid-state', async (t) => {
  const a = await t.agent();
  await failsWith(a.updateState('flying'), [3001, RPC_ERROR.INVALID_PARAMS]);
});

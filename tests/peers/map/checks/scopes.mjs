// Scopes.
import { check, must, same, isString, failsWith, unique } from '../harness.mjs';

check('scopes.create-get-list', async (t) => {
  const a = await t.agent();
  const n = unique('s');
  const s = await a.createScope({ name: n, metadata: { k: 1 } });
  isString(s.id, 'id');
  same(s.name, n, 'name');
  const c = await t.client();
  same((await c.getScope(s.id)).id, s.id, 'get');
  must(
    (await c.listScopes()).scopes.some((x) => x.id === s.id),
    'list',
  );
});

check('scopes.create-honours-requested-id', async (t) => {
  const a = await t.agent();
  const id = unique('sid');
  same((await a.createScope({ scopeId: id, name: 'n' })).id, id, 'id');
});

check('scopes.join-returns-scope-and-agent', async (t) => {
  const a = await t.agent();
  const s = await a.createScope({ name: unique() });
  const r = await a.joinScope(s.id);
  same(r.scope?.id, s.id, 'scope.id');
  same(r.agent?.id, a.id, 'agent.id');
});

check('scopes.members-and-leave', async (t) => {
  const a = await t.agent();
  const b = await t.agent();
  const c = await t.client();
  const s = await a.createScope({ name: unique() });
  await a.joinScope(s.id);
  await b.joinScope(s.id);
  same((await c.getScopeMembers(s.id)).members.slice().sort(), [a.id, b.id].sort(), 'members');
  await b.leaveScope(s.id);
  same((await c.getScopeMembers(s.id)).members, [a.id], 'after leave');
});

check('scopes.unknown', async (t) => {
  const c = await t.client();
  await failsWith(c.getScope(unique('none')), 2002);
});

check('scopes.join-unknown', async (t) => {
  const a = await t.agent();
  await failsWith(a.joinScope(unique('none')), 2002);
});

check('scopes.delete', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  const s = await a.createScope({ name: unique() });
  const r = await a.call('map/scopes/delete', { scopeId: s.id });
  same(r.scope?.id, s.id, 'result.scope.id');
  await failsWith(c.getScope(s.id), 2002);
});

check('scopes.unregister-leaves', async (t) => {
  const a = await t.agent();
  const b = await t.agent();
  const c = await t.client();
  const s = await a.createScope({ name: unique() });
  await b.joinScope(s.id);
  await b.disconnect();
  same((await c.getScopeMembers(s.id)).members, [], 'members');
});

// Permissions of scopes and agents, and tasks.
import { check, must, same, isString, failsWith, unique, hasPayload, EVENT, WAIT_MS } from '../harness.mjs';

check('perm.scope-send-members-only', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const s = await a.createScope({ name: unique(), sendPolicy: 'members' });
  await a.joinScope(s.id);
  await failsWith(b.send({ scope: s.id }, 1), 1003);
  await b.joinScope(s.id);
  await b.send({ scope: s.id }, { in: 1 });
  await a.inbox.wait(hasPayload({ in: 1 }));
});

check('perm.scope-join-invite-only', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const s = await a.createScope({ name: unique(), joinPolicy: 'invite' });
  await failsWith(b.joinScope(s.id), 1003);
});

check('perm.scope-visibility-members', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const s = await a.createScope({ name: unique(), visibility: 'members' });
  await a.joinScope(s.id);
  const c = await t.client();
  must(!(await c.listScopes()).scopes.some((x) => x.id === s.id), 'hidden from a client');
  must(
    (await a.call('map/scopes/list', {})).scopes.some((x) => x.id === s.id),
    'visible to a member',
  );
  await failsWith(b.call('map/scopes/get', { scopeId: s.id }), [2002, 1003]);
});

check('perm.agent-visibility-parent-only', async (t) => {
  const p = await t.agent();
  const k = await t.agent({ parent: p.id, visibility: 'parent-only' });
  const c = await t.client();
  must(!(await c.listAgents()).agents.some((x) => x.id === k.id), 'hidden from a client');
  must(
    (await p.call('map/agents/list', {})).agents.some((x) => x.id === k.id),
    'visible to its parent',
  );
});

check('perm.agent-accepts-no-clients', async (t) => {
  const a = await t.agent();
  await a.call('map/agents/update', { agentId: a.id, permissionOverrides: { acceptsFrom: { clients: 'none' } } });
  const c = await t.client();
  const b = await t.agent();
  await failsWith(c.send({ agent: a.id }, { no: 1 }), 1003);
  await b.send({ agent: a.id }, { yes: 1 });
  await a.inbox.wait(hasPayload({ yes: 1 }));
  await a.inbox.none(hasPayload({ no: 1 }), 20);
});

check('perm.agent-override-event', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  const b = await c.collect({ eventTypes: [EVENT.PERMISSIONS_AGENT_UPDATED] });
  const r = await a.call('map/agents/update', { agentId: a.id, permissionOverrides: { canSee: { agents: 'hierarchy' } } });
  same(r.agent.permissionOverrides?.canSee?.agents, 'hierarchy', 'permissionOverrides');
  await b.wait((e) => e.data?.agentId === a.id);
});

check('tasks.lifecycle', async (t) => {
  const a = await t.agent();
  const c = await t.client();
  const b = await c.collect({ eventTypes: ['task.created', 'task.assigned', 'task.status', 'task.completed'] });
  const { task } = await a.createTask({ task: { title: 'T', description: 'd' } });
  isString(task.id, 'task.id');
  same((await a.assignTask(task.id, a.id)).task.assignee, a.id, 'assignee');
  same((await a.updateTask({ taskId: task.id, status: 'completed' })).task.status, 'completed', 'status');
  for (const ty of ['task.created', 'task.assigned', 'task.status', 'task.completed'])
    await b.wait((e) => e.type === ty && (e.data?.taskId ?? e.data?.task?.id) === task.id, WAIT_MS, ty);
});

check('tasks.list-filter', async (t) => {
  const a = await t.agent();
  const { task } = await a.createTask({ task: { title: unique(), assignee: a.id, status: 'blocked' } });
  await a.createTask({ task: { title: unique(), assignee: a.id, status: 'open' } });
  const r = await a.listTasks({ filter: { assignee: a.id, status: ['blocked'] } });
  same(
    r.tasks.map((x) => x.id),
    [task.id],
    'tasks',
  );
  same(r.hasMore, false, 'hasMore');
});

check('tasks.unknown', async (t) => {
  const a = await t.agent();
  await failsWith(a.updateTask({ taskId: unique('none'), status: 'open' }));
});

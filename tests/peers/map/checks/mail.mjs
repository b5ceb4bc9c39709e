// Mail: conversations, turns, threads.
import {
  check,
  same,
  isString,
  isNumber,
  oneOf,
  failsWith,
  sleep,
  newConversation,
  addTurn,
  texts,
  RPC_ERROR,
  WAIT_MS,
} from '../harness.mjs';

check('mail.create', async (t) => {
  const a = await t.agent();
  const r = await a.createConversation({
    type: 'multi-agent',
    subject: 'S',
    metadata: { p: 1 },
    initialParticipants: [
      { id: 'w1', role: 'worker' },
      { id: 'w2', role: 'observer', permissions: { canSend: false } },
    ],
    initialTurn: { contentType: 'text', content: { text: 'hi' } },
  });
  const c = r.conversation;
  isString(c.id, 'id');
  same([c.type, c.status, c.subject, c.participantCount], ['multi-agent', 'active', 'S', 3], 'type,status,subject,participantCount');
  same(c.metadata, { p: 1 }, 'metadata');
  isNumber(c.createdAt, 'createdAt');
  isNumber(c.updatedAt, 'updatedAt');
  same(r.participant.role, 'initiator', 'participant.role');
  same(r.participant.id, c.createdBy, 'participant.id = createdBy');
  same(r.initialTurn.content, { text: 'hi' }, 'initialTurn.content');
  same(r.initialTurn.source, { type: 'explicit', method: 'mail/turn' }, 'initialTurn.source');
});

check('mail.create-identity-is-agent-id', async (t) => {
  const a = await t.agent();
  same((await newConversation(a)).createdBy, a.id, 'createdBy');
});

check('mail.create-defaults', async (t) => {
  const c = await t.client();
  const r = await c.createConversation();
  same(r.conversation.status, 'active', 'status');
  oneOf(r.conversation.type, ['multi-agent', 'mixed', 'user-session'], 'type');
  same(r.initialTurn, undefined, 'initialTurn');
});

check('mail.participant-permissions-shape', async (t) => {
  const a = await t.agent();
  const r = await a.createConversation({});
  for (const k of ['canSend', 'canObserve', 'canInvite', 'canRemove', 'canCreateThreads', 'canSeeInternal'])
    same(typeof r.participant.permissions?.[k], 'boolean', `typeof permissions.${k}`);
  oneOf(r.participant.permissions.historyAccess, ['none', 'from-join', 'full'], 'historyAccess');
  isNumber(r.participant.joinedAt, 'joinedAt');
  oneOf(r.participant.type, ['user', 'agent', 'system'], 'type');
});

check('mail.get-includes', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const t1 = await addTurn(a, c.id, 'one');
  await addTurn(a, c.id, 'two');
  await a.recordTurn({ conversationId: c.id, contentType: 'data', content: { x: 1 } });
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: t1.id });
  const g = await a.getConversation(c.id, { participants: true, threads: true, recentTurns: 2, stats: true });
  same(g.conversation.id, c.id, 'id');
  same(
    g.participants.map((p) => p.id),
    [a.id],
    'participants',
  );
  same(
    g.threads.map((x) => x.id),
    [thread.id],
    'threads',
  );
  same(g.recentTurns.length, 2, 'recentTurns');
  same(g.stats.totalTurns, 3, 'totalTurns');
  same(g.stats.turnsByContentType, { text: 2, data: 1 }, 'turnsByContentType');
  same([g.stats.activeParticipants, g.stats.threadCount], [1, 1], 'activeParticipants,threadCount');
});

check('mail.get-without-includes', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const g = await a.getConversation(c.id);
  same(
    Object.keys(g).filter((k) => g[k] !== undefined),
    ['conversation'],
    'keys',
  );
});

check('mail.list-filters-and-pages', async (t) => {
  const a = await t.agent();
  const ids = [];
  for (let i = 0; i < 5; i++) ids.push((await newConversation(a, { type: i % 2 ? 'agent-task' : 'mixed' })).id);
  await a.closeConversation(ids[4]);
  const l = await a.listConversations({ filter: { participantId: a.id, type: ['mixed'], status: ['active'] } });
  same(l.conversations.map((x) => x.id).sort(), [ids[0], ids[2]].sort(), 'filtered');
  const p1 = await a.listConversations({ filter: { participantId: a.id }, limit: 3 });
  same([p1.conversations.length, p1.hasMore], [3, true], 'page 1');
  isString(p1.nextCursor, 'nextCursor');
  const p2 = await a.listConversations({ filter: { participantId: a.id }, limit: 3, cursor: p1.nextCursor });
  same([p2.conversations.length, p2.hasMore], [2, false], 'page 2');
  same(new Set([...p1.conversations, ...p2.conversations].map((x) => x.id)).size, 5, 'all distinct');
});

check('mail.close', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const r = await a.closeConversation(c.id, 'done');
  same(r.conversation.status, 'completed', 'status');
  isNumber(r.conversation.closedAt, 'closedAt');
  same((await a.getConversation(c.id)).conversation.status, 'completed', 'stored status');
});

check('mail.join-with-catch-up', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  for (const x of ['1', '2', '3']) await addTurn(a, c.id, x);
  const r = await b.joinConversation({ conversationId: c.id, role: 'worker', catchUp: { from: 0, limit: 2 } });
  same(r.participant.role, 'worker', 'role');
  same(r.participant.id, b.id, 'participant.id');
  same(r.conversation.participantCount, 2, 'participantCount');
  same(texts(r.history), ['1', '2'], 'history');
  isString(r.historyCursor, 'historyCursor');
});

check('mail.join-catch-up-from-turn', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  const t1 = await addTurn(a, c.id, '1');
  await addTurn(a, c.id, '2');
  const r = await b.joinConversation({ conversationId: c.id, catchUp: { from: t1.id } });
  same(texts(r.history), ['2'], 'history');
});

check('mail.join-catch-up-summary', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await addTurn(a, c.id, 'alpha');
  const r = await b.joinConversation({ conversationId: c.id, catchUp: { from: 0, includeSummary: true } });
  same(typeof r.summary, 'string', 'typeof summary');
});

check('mail.leave', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  const r = await b.leaveConversation(c.id, 'bye');
  same(r.success, true, 'success');
  isNumber(r.leftAt, 'leftAt');
  same((await a.getConversation(c.id)).conversation.participantCount, 1, 'participantCount');
});

check('mail.rejoin-after-leave', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  await b.leaveConversation(c.id);
  await b.joinConversation({ conversationId: c.id });
  await addTurn(b, c.id);
});

check('mail.invite', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  const r = await a.inviteToConversation({
    conversationId: c.id,
    participant: { id: b.id, role: 'observer', permissions: { canSend: false, historyAccess: 'from-join' } },
    message: 'come',
  });
  same(r.invited, true, 'invited');
  same(r.participant.id, b.id, 'participant.id');
  same(
    [r.participant.role, r.participant.permissions.canSend, r.participant.permissions.historyAccess],
    ['observer', false, 'from-join'],
    'role and permissions',
  );
});

check('mail.turn-shape', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const t0 = await addTurn(a, c.id);
  const r = await a.recordTurn({
    conversationId: c.id,
    contentType: 'text',
    content: { text: 'x' },
    inReplyTo: t0.id,
    visibility: { type: 'all' },
    metadata: { m: 1 },
  });
  const x = r.turn;
  isString(x.id, 'id');
  same([x.conversationId, x.participant, x.contentType, x.inReplyTo], [c.id, a.id, 'text', t0.id], 'fields');
  same(x.source, { type: 'explicit', method: 'mail/turn' }, 'source');
  same(x.metadata, { m: 1 }, 'metadata');
  isNumber(x.timestamp, 'timestamp');
  same(x.status, 'complete', 'status');
  same(x.visibility, { type: 'all' }, 'visibility');
});

check('mail.turn-content-types', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  for (const [ty, ct] of [
    ['text', { text: 'a' }],
    ['data', [1, 2]],
    ['event', { event: 'e' }],
    ['reference', { uri: 'u:1' }],
    ['x-tool-call', { tool: 't' }],
  ]) {
    const r = await a.recordTurn({ conversationId: c.id, contentType: ty, content: ct });
    same(r.turn.content, ct, `content of ${ty}`);
  }
});

check('mail.turns-list', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  for (const x of 'abcde') await addTurn(a, c.id, x);
  const r = await a.listTurns({ conversationId: c.id });
  same(texts(r.turns), [...'abcde'], 'turns');
  same(r.hasMore, false, 'hasMore');
  same(texts((await a.listTurns({ conversationId: c.id, order: 'desc', limit: 2 })).turns), ['e', 'd'], 'desc');
});

check('mail.turns-list-pages', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  for (const x of 'abcdefg') await addTurn(a, c.id, x);
  const p1 = await a.listTurns({ conversationId: c.id, limit: 3 });
  same([texts(p1.turns).join(''), p1.hasMore], ['abc', true], 'page 1');
  isString(p1.nextCursor, 'nextCursor');
  const p2 = await a.listTurns({ conversationId: c.id, limit: 3, filter: { afterTurnId: p1.nextCursor } });
  same([texts(p2.turns).join(''), p2.hasMore], ['def', true], 'page 2');
  const p3 = await a.listTurns({ conversationId: c.id, limit: 3, filter: { afterTurnId: p2.nextCursor } });
  same([texts(p3.turns).join(''), p3.hasMore], ['g', false], 'page 3');
});

check('mail.turns-list-filters', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  const r0 = await addTurn(a, c.id, 'r');
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: r0.id });
  await addTurn(b, c.id, 'b');
  await addTurn(a, c.id, 'th', { threadId: thread.id });
  await a.recordTurn({ conversationId: c.id, contentType: 'data', content: {} });
  const f = async (filter) => (await a.listTurns({ conversationId: c.id, filter })).turns;
  same(texts(await f({ participantId: b.id })), ['b'], 'participantId');
  same(texts(await f({ threadId: thread.id })), ['th'], 'threadId');
  same((await f({ contentTypes: ['data'] })).length, 1, 'contentTypes');
  same(texts(await f({ contentTypes: ['text'], participantId: a.id })), ['r', 'th'], 'combined');
  same(texts(await f({ beforeTurnId: (await f({ participantId: b.id }))[0].id })), ['r'], 'beforeTurnId');
});

check('mail.turns-list-timestamps', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const x = await addTurn(a, c.id, '1');
  await sleep(15);
  const y = await addTurn(a, c.id, '2');
  same(texts((await a.listTurns({ conversationId: c.id, filter: { afterTimestamp: x.timestamp } })).turns), ['2'], 'after');
  same(texts((await a.listTurns({ conversationId: c.id, filter: { beforeTimestamp: y.timestamp } })).turns), ['1'], 'before');
});

check('mail.thread-create-and-list', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const r = await addTurn(a, c.id);
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: r.id, subject: 'deep' });
  isString(thread.id, 'id');
  same(
    [thread.conversationId, thread.rootTurnId, thread.subject, thread.turnCount, thread.createdBy],
    [c.id, r.id, 'deep', 0, a.id],
    'fields',
  );
  const { thread: kid } = await a.createThread({ conversationId: c.id, rootTurnId: r.id, parentThreadId: thread.id });
  same(kid.parentThreadId, thread.id, 'parentThreadId');
  same((await a.listThreads({ conversationId: c.id })).threads.length, 2, 'all');
  same(
    (await a.listThreads({ conversationId: c.id, parentThreadId: thread.id })).threads.map((x) => x.id),
    [kid.id],
    'children',
  );
});

check('mail.thread-turn-count', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const r = await addTurn(a, c.id);
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: r.id });
  await addTurn(a, c.id, 'x', { threadId: thread.id });
  await addTurn(a, c.id, 'y', { threadId: thread.id });
  same((await a.listThreads({ conversationId: c.id })).threads[0].turnCount, 2, 'turnCount');
});

check('mail.summary', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await addTurn(a, c.id, 'we choose plan B');
  const s = await a.getConversationSummary({ conversationId: c.id, include: { keyPoints: true } });
  same(typeof s.summary, 'string', 'typeof summary');
  same(typeof s.generated, 'boolean', 'typeof generated');
});

check('mail.replay', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const x = await addTurn(a, c.id, '1');
  await addTurn(a, c.id, '2');
  await a.recordTurn({ conversationId: c.id, contentType: 'data', content: 3 });
  const r = await a.replayConversation({ conversationId: c.id, fromTurnId: x.id });
  same(r.turns.length, 2, 'turns');
  same(r.hasMore, false, 'hasMore');
  isNumber(r.missedCount, 'missedCount');
  same(
    texts((await a.replayConversation({ conversationId: c.id, fromTurnId: x.id, contentTypes: ['text'] })).turns),
    ['2'],
    'contentTypes',
  );
  const p = await a.replayConversation({ conversationId: c.id, limit: 1 });
  same([p.turns.length, p.hasMore], [1, true], 'limit');
});

check('mail.client-can-use-mail', async (t) => {
  const c = await t.client();
  const k = await newConversation(c, { type: 'user-session' });
  await addTurn(c, k.id, 'hello');
  same(texts((await c.listTurns({ conversationId: k.id })).turns), ['hello'], 'turns');
  same(k.createdBy, c.pid, 'createdBy');
});

check('mail.observer-reads-without-joining', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await addTurn(a, c.id, 'pub');
  const o = await t.client();
  same(texts((await o.listTurns({ conversationId: c.id })).turns), ['pub'], 'turns');
});

check('mail.turn-as-notification', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await a.sendNotification('mail/turn', { conversationId: c.id, contentType: 'text', content: { text: 'n' } });
  const end = Date.now() + WAIT_MS;
  let l;
  do {
    await sleep(20);
    l = texts((await a.listTurns({ conversationId: c.id })).turns);
  } while (!l.length && Date.now() < end);
  same(l, ['n'], 'turns');
});

for (const ty of ['user-session', 'agent-task', 'multi-agent', 'mixed'])
  check(`mail.type-${ty}`, async (t) => {
    const c = await t.client();
    same((await newConversation(c, { type: ty })).type, ty, 'type');
  });

check('mail.create-invalid-type', async (t) => {
  const c = await t.client();
  await failsWith(c.createConversation({ type: 'party' }), RPC_ERROR.INVALID_PARAMS);
});

check('mail.join-invalid-role', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await failsWith(b.joinConversation({ conversationId: c.id, role: 'king' }), RPC_ERROR.INVALID_PARAMS);
});

check('mail.turns-page-backwards', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  for (const x of 'abcde') await addTurn(a, c.id, x);
  const p1 = await a.listTurns({ conversationId: c.id, order: 'desc', limit: 2 });
  const p2 = await a.listTurns({ conversationId: c.id, order: 'desc', limit: 2, filter: { beforeTurnId: p1.nextCursor } });
  same(
    [texts(p1.turns), texts(p2.turns)],
    [
      ['e', 'd'],
      ['c', 'b'],
    ],
    'pages',
  );
});

check('mail.turns-bad-limit-and-order', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await failsWith(a.listTurns({ conversationId: c.id, limit: -1 }), RPC_ERROR.INVALID_PARAMS);
  await failsWith(a.listTurns({ conversationId: c.id, order: 'sideways' }), RPC_ERROR.INVALID_PARAMS);
});

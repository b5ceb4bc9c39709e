// Mail: `map/send` that also records a turn, and the events of conversations.
import { check, must, same, sleep, hasPayload, newConversation, addTurn, QUIET_MS } from '../harness.mjs';

check('mailsend.records-a-turn', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  const r = await a.sendWithMail({ agent: b.id }, { task: 'x' }, c.id);
  await b.inbox.wait(hasPayload({ task: 'x' }));
  const l = (await a.listTurns({ conversationId: c.id })).turns;
  same(l.length, 1, 'turns');
  same(l[0].source, { type: 'intercepted', messageId: r.messageId }, 'source');
  same(l[0].content, { task: 'x' }, 'content');
  same(l[0].participant, a.id, 'participant');
});

check('mailsend.thread-and-reply', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  const r0 = await addTurn(a, c.id);
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: r0.id });
  await a.send(
    { agent: b.id },
    { v: 1 },
    { mail: { conversationId: c.id, threadId: thread.id, inReplyTo: r0.id, visibility: { type: 'all' } } },
  );
  await b.inbox.wait();
  const x = (await a.listTurns({ conversationId: c.id, filter: { threadId: thread.id } })).turns[0];
  same([x?.threadId, x?.inReplyTo], [thread.id, r0.id], 'threadId,inReplyTo');
});

check('mailsend.receiver-sees-mail-meta', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await a.sendWithMail({ agent: b.id }, 1, c.id);
  const m = await b.inbox.wait();
  same(m.meta?.mail?.conversationId, c.id, 'meta.mail.conversationId');
});

check('mailsend.unknown-conversation-still-delivers', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  await a.sendWithMail({ agent: b.id }, { ok: 1 }, 'conv-none');
  await b.inbox.wait(hasPayload({ ok: 1 }));
});

check('mailsend.closed-conversation-still-delivers', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await a.closeConversation(c.id);
  await a.sendWithMail({ agent: b.id }, { ok: 2 }, c.id);
  await b.inbox.wait(hasPayload({ ok: 2 }));
  same((await a.listTurns({ conversationId: c.id })).turns.length, 0, 'turns in a closed conversation');
});

check('mailsend.one-turn-per-send', async (t) => {
  const [a, b, d] = [await t.agent(), await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await a.sendWithMail({ agents: [b.id, d.id] }, { m: 1 }, c.id);
  await b.inbox.wait();
  await d.inbox.wait();
  same((await a.listTurns({ conversationId: c.id })).turns.length, 1, 'turns');
});

check('mailsend.plain-send-records-nothing', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await a.send({ agent: b.id }, 1);
  await b.inbox.wait();
  same((await a.listTurns({ conversationId: c.id })).turns.length, 0, 'turns');
});

check('mailevt.all-types', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const o = await t.client();
  const events = await o.collect({ eventTypes: ['mail.*'] });
  const c = await newConversation(a, { subject: 'ev' });
  const of = (n) => (e) => e.type === n && e.data?.conversationId === c.id;
  const cr = await events.wait(of('mail.created'));
  same([cr.data.type, cr.data.subject, cr.data.createdBy], ['multi-agent', 'ev', a.id], 'mail.created data');
  await b.joinConversation({ conversationId: c.id, role: 'worker' });
  const j = await events.wait((e) => of('mail.participant.joined')(e) && e.data.participant?.id === b.id);
  same(j.data.participant.role, 'worker', 'joined.participant.role');
  const x = await addTurn(b, c.id, 'hey');
  const ta = await events.wait(of('mail.turn.added'));
  same(ta.data.turn.id, x.id, 'turn.id');
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: x.id });
  same((await events.wait(of('mail.thread.created'))).data.thread.id, thread.id, 'thread.id');
  await b.leaveConversation(c.id, 'tired');
  const l = await events.wait(of('mail.participant.left'));
  same([l.data.participantId, l.data.reason], [b.id, 'tired'], 'left data');
  await a.closeConversation(c.id, 'end');
  const z = await events.wait(of('mail.closed'));
  same([z.data.closedBy, z.data.reason], [a.id, 'end'], 'closed data');
});

check('mailevt.intercepted-turn-added', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  const o = await t.client();
  const events = await o.collect({ eventTypes: ['mail.turn.added'], mail: { conversationId: c.id } });
  await a.sendWithMail({ agent: b.id }, { z: 1 }, c.id);
  const e = await events.wait();
  same(e.data.turn.source.type, 'intercepted', 'source.type');
});

check('mailevt.filter-conversation', async (t) => {
  const a = await t.agent();
  const [c1, c2] = [await newConversation(a), await newConversation(a)];
  const o = await t.client();
  const events = await o.collect({ mail: { conversationId: c1.id } });
  await addTurn(a, c2.id, 'no');
  await addTurn(a, c1.id, 'yes');
  await events.wait((e) => e.data?.turn?.content?.text === 'yes');
  must(
    events.items.every((e) => e.type.startsWith('mail.') && e.data.conversationId === c1.id),
    'only conversation 1',
  );
});

check('mailevt.filter-thread-participant-type', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  const r = await addTurn(a, c.id, 'root');
  const { thread } = await a.createThread({ conversationId: c.id, rootTurnId: r.id });
  const o = await t.client();
  const bt = await o.collect({ eventTypes: ['mail.turn.added'], mail: { conversationId: c.id, threadId: thread.id } }),
    bp = await o.collect({ eventTypes: ['mail.turn.added'], mail: { participantId: b.id } }),
    bc = await o.collect({ mail: { conversationId: c.id, contentType: 'data' } });
  await addTurn(a, c.id, 'plain');
  await addTurn(a, c.id, 'threaded', { threadId: thread.id });
  await addTurn(b, c.id, 'from b');
  await a.recordTurn({ conversationId: c.id, contentType: 'data', content: { d: 1 } });
  await bt.wait();
  await bp.wait();
  await bc.wait();
  await sleep(QUIET_MS);
  same(
    [bt, bp, bc].map((x) => x.items.length),
    [1, 1, 1],
    'events per filter',
  );
  same(bt.items[0].data.turn.content.text, 'threaded', 'thread');
  same(bp.items[0].data.turn.participant, b.id, 'participant');
  same(bc.items[0].data.turn.contentType, 'data', 'contentType');
});

check('mailevt.mail-filter-excludes-other-events', async (t) => {
  const o = await t.client();
  const events = await o.collect({ mail: {} });
  const a = await t.agent();
  await newConversation(a);
  await events.wait((e) => e.type === 'mail.created');
  must(
    events.items.every((e) => e.type.startsWith('mail.')),
    'only mail events',
  );
});

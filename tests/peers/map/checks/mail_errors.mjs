// Mail: error codes.
import { check, must, same, oneOf, failsWith, unique, newConversation, addTurn, MAIL_ERROR, Skip } from '../harness.mjs';

check('mailerr.not-found.get', async (t) => {
  const a = await t.agent();
  const e = await failsWith(a.getConversation('conv-none'), MAIL_ERROR.CONVERSATION_NOT_FOUND);
  same(e.data?.category, 'mail', 'data.category');
});

for (const [m, p] of [
  ['mail/close', {}],
  ['mail/join', {}],
  ['mail/leave', {}],
  ['mail/invite', { participant: { id: 'x' } }],
  ['mail/turn', { contentType: 'text', content: { text: '' } }],
  ['mail/turns/list', {}],
  ['mail/thread/create', { rootTurnId: 'turn-x' }],
  ['mail/thread/list', {}],
  ['mail/summary', {}],
  ['mail/replay', {}],
])
  check(`mailerr.not-found.${m.slice(5).replace('/', '-')}`, async (t) => {
    const a = await t.agent();
    await failsWith(a.call(m, { conversationId: unique('conv-none'), ...p }), MAIL_ERROR.CONVERSATION_NOT_FOUND);
  });

check('mailerr.not-found.create-parent', async (t) => {
  const a = await t.agent();
  await failsWith(a.createConversation({ parentConversationId: 'conv-none' }), MAIL_ERROR.CONVERSATION_NOT_FOUND);
});

check('mailerr.closed.turn', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await a.closeConversation(c.id);
  await failsWith(addTurn(a, c.id), MAIL_ERROR.CONVERSATION_CLOSED);
});

check('mailerr.closed.close-again', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await a.closeConversation(c.id);
  await failsWith(a.closeConversation(c.id), MAIL_ERROR.CONVERSATION_CLOSED);
});

check('mailerr.closed.join', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await a.closeConversation(c.id);
  await failsWith(b.joinConversation({ conversationId: c.id }), MAIL_ERROR.CONVERSATION_CLOSED);
});

check('mailerr.closed.thread-create', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const r = await addTurn(a, c.id);
  await a.closeConversation(c.id);
  await failsWith(a.createThread({ conversationId: c.id, rootTurnId: r.id }), MAIL_ERROR.CONVERSATION_CLOSED);
});

check('mailerr.not-participant.turn', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await failsWith(addTurn(b, c.id), MAIL_ERROR.NOT_A_PARTICIPANT);
});

check('mailerr.not-participant.close', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await failsWith(b.closeConversation(c.id), MAIL_ERROR.NOT_A_PARTICIPANT);
});

check('mailerr.not-participant.leave', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await failsWith(b.leaveConversation(c.id), MAIL_ERROR.NOT_A_PARTICIPANT);
});

check('mailerr.not-participant.after-leave', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  await b.leaveConversation(c.id);
  await failsWith(addTurn(b, c.id), MAIL_ERROR.NOT_A_PARTICIPANT);
});

check('mailerr.permission.can-send', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a, { initialParticipants: [{ id: b.id, role: 'observer', permissions: { canSend: false } }] });
  await failsWith(addTurn(b, c.id), MAIL_ERROR.PERMISSION_DENIED);
});

check('mailerr.permission.can-invite', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a, { initialParticipants: [{ id: b.id, role: 'worker', permissions: { canInvite: false } }] });
  await failsWith(b.inviteToConversation({ conversationId: c.id, participant: { id: 'z' } }), MAIL_ERROR.PERMISSION_DENIED);
});

check('mailerr.permission.can-create-threads', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a, { initialParticipants: [{ id: b.id, role: 'worker', permissions: { canCreateThreads: false } }] });
  const r = await addTurn(a, c.id);
  await failsWith(b.createThread({ conversationId: c.id, rootTurnId: r.id }), MAIL_ERROR.PERMISSION_DENIED);
});

check('mailerr.already-joined.join', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await failsWith(a.joinConversation({ conversationId: c.id }), MAIL_ERROR.ALREADY_JOINED);
});

check('mailerr.already-joined.invite', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await a.inviteToConversation({ conversationId: c.id, participant: { id: b.id } });
  await failsWith(a.inviteToConversation({ conversationId: c.id, participant: { id: b.id } }), MAIL_ERROR.ALREADY_JOINED);
});

check('mailerr.participant-not-found.visibility', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await failsWith(addTurn(a, c.id, 'x', { visibility: { type: 'participants', ids: ['unknown-id'] } }), MAIL_ERROR.PARTICIPANT_NOT_FOUND);
});

check('mailerr.turn-not-found.thread-root', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await failsWith(a.createThread({ conversationId: c.id, rootTurnId: 'turn-none' }), MAIL_ERROR.TURN_NOT_FOUND);
});

check('mailerr.turn-not-found.in-reply-to', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await failsWith(addTurn(a, c.id, 'x', { inReplyTo: 'turn-none' }), MAIL_ERROR.TURN_NOT_FOUND);
});

check('mailerr.thread-not-found.turn', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await failsWith(addTurn(a, c.id, 'x', { threadId: 'thread-none' }), MAIL_ERROR.THREAD_NOT_FOUND);
});

check('mailerr.thread-not-found.parent', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const r = await addTurn(a, c.id);
  await failsWith(a.createThread({ conversationId: c.id, rootTurnId: r.id, parentThreadId: 'thread-none' }), MAIL_ERROR.THREAD_NOT_FOUND);
});

check('mailerr.content-type', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  for (const ty of ['image/png', 'tool-call', 'x-'])
    await failsWith(a.recordTurn({ conversationId: c.id, contentType: ty, content: {} }), MAIL_ERROR.INVALID_CONTENT_TYPE, ty);
});

check('mailerr.nesting-limit', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  const r = await addTurn(a, c.id);
  let p;
  for (let d = 1; d <= 128; d++) {
    try {
      p = (await a.createThread({ conversationId: c.id, rootTurnId: r.id, parentThreadId: p })).thread.id;
    } catch (e) {
      oneOf(e.code, MAIL_ERROR.NESTING_LIMIT, `code at depth ${d}`);
      must(d > 2, 'at least two levels must be allowed');
      return;
    }
  }
  throw new Error('no limit within 128 levels');
});

check('mailerr.not-enabled', async (t) => {
  const u = process.env.MAP_NOMAIL_URL;
  if (!u) throw new Skip('MAP_NOMAIL_URL not set');
  const c = await t.client({ url: u });
  must(!c.hello.capabilities?.mail?.enabled, 'capability must be absent');
  await failsWith(c.createConversation({}), MAIL_ERROR.NOT_ENABLED);
});

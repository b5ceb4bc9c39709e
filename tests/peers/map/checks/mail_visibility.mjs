// Mail: which participant sees which turn.
import { check, must, same, oneOf, sleep, newConversation, addTurn, texts } from '../harness.mjs';

const textsSeenBy = async (reader, id) => texts((await reader.listTurns({ conversationId: id })).turns);

check('mailvis.private', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  await addTurn(a, c.id, 'open');
  await addTurn(a, c.id, 'mine', { visibility: { type: 'private' } });
  same(await textsSeenBy(a, c.id), ['open', 'mine'], 'author');
  same(await textsSeenBy(b, c.id), ['open'], 'other');
});

check('mailvis.participants', async (t) => {
  const [a, b, d] = [await t.agent(), await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  await d.joinConversation({ conversationId: c.id });
  await addTurn(a, c.id, 'for b', { visibility: { type: 'participants', ids: [b.id] } });
  same(await textsSeenBy(b, c.id), ['for b'], 'named');
  same(await textsSeenBy(d, c.id), [], 'not named');
  same(await textsSeenBy(a, c.id), ['for b'], 'author');
});

check('mailvis.role', async (t) => {
  const [a, b, d] = [await t.agent(), await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id, role: 'moderator' });
  await d.joinConversation({ conversationId: c.id, role: 'worker' });
  await addTurn(a, c.id, 'mods', { visibility: { type: 'role', roles: ['moderator'] } });
  same(await textsSeenBy(b, c.id), ['mods'], 'role in');
  same(await textsSeenBy(d, c.id), [], 'role out');
});

check('mailvis.non-participant-sees-only-open', async (t) => {
  const a = await t.agent();
  const c = await newConversation(a);
  await addTurn(a, c.id, 'open');
  await addTurn(a, c.id, 'hid', { visibility: { type: 'private' } });
  same(await textsSeenBy(await t.client(), c.id), ['open'], 'outsider');
});

check('mailvis.history-from-join', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await addTurn(a, c.id, 'before');
  await sleep(5);
  await a.inviteToConversation({
    conversationId: c.id,
    participant: { id: b.id, role: 'observer', permissions: { historyAccess: 'from-join' } },
  });
  await sleep(5);
  await addTurn(a, c.id, 'after');
  same(await textsSeenBy(b, c.id), ['after'], 'from-join');
});

check('mailvis.history-none', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await addTurn(a, c.id, 'x');
  await a.inviteToConversation({ conversationId: c.id, participant: { id: b.id, permissions: { historyAccess: 'none' } } });
  try {
    same(await textsSeenBy(b, c.id), [], 'turns');
  } catch (e) {
    if (e.code === undefined) throw e;
    oneOf(e.code, [10003, 10009], 'code');
  }
});

check('mailvis.events-respect-visibility', async (t) => {
  const [a, b] = [await t.agent(), await t.agent()];
  const c = await newConversation(a);
  await b.joinConversation({ conversationId: c.id });
  const events = await b.collect({ eventTypes: ['mail.turn.added'], mail: { conversationId: c.id } });
  await addTurn(a, c.id, 'secret', { visibility: { type: 'private' } });
  await addTurn(a, c.id, 'plain');
  await events.wait((e) => e.data?.turn?.content?.text === 'plain');
  must(!events.items.some((e) => e.data?.turn?.content?.text === 'secret'), 'a private turn leaked through mail.turn.added');
});

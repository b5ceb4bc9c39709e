-- Version 1 of a realm's database.
--
-- `seq` is a position in the event log. A message, turn, conversation, task or reservation carries the `seq` of the event
-- that made it, so one number orders everything and every page is "after this seq".
-- Times are milliseconds since 1970. JSON is kept as text. Indices on a table with an INTEGER PRIMARY KEY end with that key.

-- Facts about the realm by name: `history` (the name of its event log), `rules` (the rules in force), `indexed` (the last
-- `seq` in the full-text index), `keys_indexed` and `keys_cursor` (see `seen_keys`), and the aliases of other realms.
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

-- The event log: `seq` has no gaps, `at` never decreases.
CREATE TABLE events(
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, cause INTEGER,
    message INTEGER, conversation TEXT, fact TEXT NOT NULL
) STRICT;
-- What became of a conversation or task, without its turns.
CREATE INDEX events_of_conversations ON events(conversation, seq)
    WHERE conversation IS NOT NULL AND kind <> 'turn.added';
-- How a scope that is gone was made: the visibility of events about it depends on that.
CREATE INDEX scopes_made ON events(fact ->> '$.scope.id', seq) WHERE kind = 'scope.created';

------------------------------------------------------------------------------------------------------------------------
-- Agents, scopes, contacts, tokens, peers
------------------------------------------------------------------------------------------------------------------------

-- `born` is the head of the event log when the name was taken; earlier mail belongs to an earlier holder. `skeleton` is
-- what the name looks like (names that look alike are refused). `bearer` names the token under which the entry was made.
CREATE TABLE agents(
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT, description TEXT, role TEXT, parent TEXT, owner TEXT,
    state TEXT NOT NULL, visibility TEXT NOT NULL, contact_policy TEXT NOT NULL, privacy TEXT NOT NULL,
    keys TEXT, capabilities TEXT, meta TEXT, via TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, retired_at INTEGER, born INTEGER NOT NULL,
    bounds TEXT, skeleton TEXT, bearer TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_role ON agents(role, id) WHERE role IS NOT NULL;
CREATE INDEX agents_by_parent ON agents(parent, id) WHERE parent IS NOT NULL;
CREATE INDEX agents_by_owner ON agents(owner, id) WHERE owner IS NOT NULL;
CREATE INDEX agents_by_skeleton ON agents(skeleton);
CREATE INDEX agents_by_bearer ON agents(bearer, id) WHERE bearer IS NOT NULL AND retired_at IS NULL;

-- `messages_seen_by`: which agents besides sender and recipients see messages to the scope; NULL is every observer.
CREATE TABLE scopes(
    id TEXT PRIMARY KEY, name TEXT, description TEXT, parent TEXT, join_policy TEXT NOT NULL, roles TEXT NOT NULL,
    visibility TEXT NOT NULL, send_policy TEXT NOT NULL, messages_seen_by TEXT, auto_delete INTEGER NOT NULL, meta TEXT,
    created_by TEXT NOT NULL, created_at INTEGER NOT NULL, seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX scopes_by_parent ON scopes(parent, id) WHERE parent IS NOT NULL;
CREATE INDEX scopes_by_maker ON scopes(created_by);
CREATE TABLE scope_members(
    scope TEXT NOT NULL, agent TEXT NOT NULL, joined_at INTEGER NOT NULL, PRIMARY KEY(scope, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX scope_members_by_agent ON scope_members(agent, scope);

CREATE TABLE contacts(
    sender TEXT NOT NULL, recipient TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, expires_at INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY(sender, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX contacts_by_recipient ON contacts(recipient, state, sender);

-- `door`: the only door that the token opens; NULL is every door.
CREATE TABLE tokens(
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, role TEXT NOT NULL, name TEXT NOT NULL, skeleton TEXT,
    door TEXT, observe INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_skeleton ON tokens(skeleton);

CREATE TABLE peers(
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, url TEXT, token_ref TEXT, reachable INTEGER NOT NULL,
    volatile INTEGER NOT NULL, meta TEXT, created_at INTEGER NOT NULL, seen_at INTEGER
) STRICT, WITHOUT ROWID;

-- What each account (an owner with its agents) and the realm (the empty name) have stored.
CREATE TABLE usage(
    account TEXT PRIMARY KEY, bytes INTEGER NOT NULL, messages INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

------------------------------------------------------------------------------------------------------------------------
-- Messages, deliveries, single-use keys
------------------------------------------------------------------------------------------------------------------------

CREATE TABLE messages(
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, sender TEXT NOT NULL, recipients TEXT NOT NULL,
    kind TEXT NOT NULL, subject TEXT, body TEXT NOT NULL, is_json INTEGER NOT NULL, priority INTEGER NOT NULL,
    ack_required INTEGER NOT NULL, expires_at INTEGER, correlation TEXT, conversation TEXT, thread BLOB,
    in_reply_to BLOB, task TEXT, key TEXT, envelope TEXT, meta TEXT, audience TEXT NOT NULL, via TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_sender ON messages(sender, seq);
CREATE INDEX messages_by_conversation ON messages(conversation, seq) WHERE conversation IS NOT NULL;
CREATE INDEX messages_asking ON messages(seq) WHERE ack_required <> 0;

-- One row for each recipient of a message. `recipient_kind` is to, cc or bcc. `kind`, `priority` and `expires_at` repeat
-- the message's, for the indices.
CREATE TABLE deliveries(
    agent TEXT NOT NULL, message INTEGER NOT NULL, recipient_kind TEXT NOT NULL, state INTEGER NOT NULL,
    kind TEXT NOT NULL, priority INTEGER NOT NULL, expires_at INTEGER,
    delivered_at INTEGER, read_at INTEGER, acked_at INTEGER, note TEXT, PRIMARY KEY(agent, message)
) STRICT, WITHOUT ROWID;
-- "Queued" (state 0) and "unread" (states 0 and 1) by priority, in one small index that a delivery leaves when it is read.
CREATE INDEX deliveries_waiting ON deliveries(agent, state, priority, message) WHERE state < 2;
CREATE INDEX deliveries_urgent ON deliveries(agent, priority, message) WHERE priority < 3;
CREATE INDEX deliveries_by_kind ON deliveries(agent, kind, message) WHERE kind <> '';
CREATE INDEX deliveries_by_message ON deliveries(message, agent);
-- Only a delivery that waits can expire; others would stay in this index, and in the way of every sweep.
CREATE INDEX deliveries_due ON deliveries(expires_at, agent, message) WHERE expires_at IS NOT NULL AND state = 0;
CREATE INDEX deliveries_dead ON deliveries(message, agent) WHERE state >= 4;

-- Messages that wait to be relayed to a peer.
CREATE TABLE outbound(
    peer TEXT NOT NULL, message INTEGER NOT NULL, agent TEXT NOT NULL, PRIMARY KEY(peer, message, agent)
) STRICT, WITHOUT ROWID;

-- Single-use keys of senders, in order of arrival. `kind` 0: the idempotency key of a message. `kind` 1: a label (message
-- id, nonce, proof) that its sender must not use again, until `expires_at` if given. `digest` tells the same content from
-- other content. `seq` is the event that the key came with.
CREATE TABLE seen_keys(
    n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, sender TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL,
    digest BLOB, expires_at INTEGER
) STRICT;
CREATE UNIQUE INDEX seen_keys_of_messages ON seen_keys(sender, key) WHERE kind = 0;
CREATE INDEX seen_keys_due ON seen_keys(expires_at) WHERE expires_at IS NOT NULL;
-- Labels by a hash of them; filled some thousands of labels late, as `keys_indexed` and `keys_cursor` in `meta` say
-- (store/seen_keys.rs).
CREATE TABLE seen_key_hashes(hash INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(hash, n)) STRICT, WITHOUT ROWID;

------------------------------------------------------------------------------------------------------------------------
-- Conversations
------------------------------------------------------------------------------------------------------------------------

CREATE TABLE conversations(
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, status TEXT NOT NULL, subject TEXT, parent TEXT, parent_turn BLOB,
    created_by TEXT NOT NULL, audience TEXT NOT NULL, meta TEXT,
    participant_count INTEGER NOT NULL, turn_count INTEGER NOT NULL, thread_count INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, closed_at INTEGER, seq INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_by_status ON conversations(status, seq);
CREATE INDEX conversations_by_parent ON conversations(parent, seq) WHERE parent IS NOT NULL;

-- `joined` is the head of the event log when the agent joined; `put_out` is set when it was removed and may not return by
-- itself; `standing` says how it came.
CREATE TABLE participants(
    conversation TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL, permissions TEXT NOT NULL,
    joined_at INTEGER NOT NULL, left_at INTEGER, put_out INTEGER NOT NULL DEFAULT 0, joined INTEGER NOT NULL,
    conversation_seq INTEGER NOT NULL, standing TEXT NOT NULL DEFAULT 'full', PRIMARY KEY(conversation, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX participants_by_agent ON participants(agent, conversation_seq);

-- A turn is indexed by numbers, because ids and names made the indices larger than the content: the `seq` of its
-- conversation, and 32-bit hashes of author and content type. Names may share a hash, so queries compare the names too.
CREATE TABLE turns(
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, conversation TEXT NOT NULL, thread BLOB, author TEXT NOT NULL,
    content_type TEXT NOT NULL, content TEXT, message INTEGER, in_reply_to BLOB, visibility TEXT, meta TEXT,
    at INTEGER NOT NULL, conversation_seq INTEGER NOT NULL, author_hash INTEGER NOT NULL, type_hash INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_conversation ON turns(conversation_seq);
CREATE INDEX turns_by_content_type ON turns(conversation_seq, type_hash);
CREATE INDEX turns_by_author ON turns(conversation_seq, author_hash);
CREATE INDEX turns_by_author_and_type ON turns(conversation_seq, author_hash, type_hash);
CREATE INDEX turns_restricted ON turns(conversation_seq) WHERE visibility IS NOT NULL;
CREATE INDEX turns_by_thread ON turns(thread, seq) WHERE thread IS NOT NULL;
CREATE INDEX turns_by_thread_and_author ON turns(thread, author_hash) WHERE thread IS NOT NULL;
CREATE INDEX turns_by_thread_and_type ON turns(thread, type_hash) WHERE thread IS NOT NULL;
CREATE INDEX turns_by_thread_author_and_type ON turns(thread, author_hash, type_hash) WHERE thread IS NOT NULL;
CREATE TABLE turn_types(
    conversation TEXT NOT NULL, content_type TEXT NOT NULL, turns INTEGER NOT NULL,
    PRIMARY KEY(conversation, content_type)
) STRICT, WITHOUT ROWID;

CREATE TABLE threads(
    id BLOB PRIMARY KEY, conversation TEXT NOT NULL, parent BLOB, root BLOB NOT NULL, subject TEXT,
    depth INTEGER NOT NULL, turn_count INTEGER NOT NULL, participant_count INTEGER NOT NULL,
    created_by TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_conversation ON threads(conversation, seq);
CREATE TABLE thread_authors(
    thread BLOB NOT NULL, agent TEXT NOT NULL, PRIMARY KEY(thread, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE summaries(
    conversation TEXT NOT NULL, part TEXT NOT NULL, summary TEXT NOT NULL, up_to INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY(conversation, part)
) STRICT, WITHOUT ROWID;

------------------------------------------------------------------------------------------------------------------------
-- Tasks, runs, reservations
------------------------------------------------------------------------------------------------------------------------

-- Each task is a conversation under the same id, too.
CREATE TABLE tasks(
    id TEXT PRIMARY KEY, title TEXT, description TEXT, status TEXT NOT NULL, owner TEXT NOT NULL, assignee TEXT,
    result TEXT, meta TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ended_at INTEGER,
    seq INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_status ON tasks(status, seq);
CREATE INDEX tasks_by_assignee ON tasks(assignee, seq) WHERE assignee IS NOT NULL;
CREATE TABLE task_contributors(
    task TEXT NOT NULL, contributor TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY(task, contributor)
) STRICT, WITHOUT ROWID;

-- Tasks that the server itself advances: their state, and what each agent did in its turn.
CREATE TABLE runs(
    task TEXT PRIMARY KEY, instance TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL, steps INTEGER NOT NULL,
    notes INTEGER NOT NULL, state TEXT, seq INTEGER NOT NULL, UNIQUE(instance, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_live ON runs(seq) WHERE phase = 'running';
CREATE TABLE run_notes(
    task TEXT NOT NULL, n INTEGER NOT NULL, place INTEGER NOT NULL, agent TEXT NOT NULL, at INTEGER NOT NULL,
    note TEXT NOT NULL, PRIMARY KEY(task, n)
) STRICT, WITHOUT ROWID;

-- `told` lists the agents that know of a reservation, if not all do. `key` is the owner's own name for it.
CREATE TABLE reservations(
    seq INTEGER PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL, scope TEXT NOT NULL, paths TEXT NOT NULL,
    exclusive INTEGER NOT NULL, reason TEXT, status TEXT NOT NULL, audience TEXT NOT NULL, told TEXT, meta TEXT,
    issued_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, released_at INTEGER, UNIQUE(owner, key)
) STRICT;
CREATE INDEX reservations_active ON reservations(scope, owner, seq) WHERE status = 'active';
CREATE INDEX reservations_held ON reservations(owner, seq) WHERE status = 'active';
CREATE INDEX reservations_due ON reservations(expires_at, seq) WHERE status = 'active';
CREATE INDEX reservations_by_key ON reservations(key, seq);
-- The first path segments of the reservations in force: only patterns that share one are compared.
CREATE TABLE reserved_heads(
    scope TEXT NOT NULL, head TEXT NOT NULL, reservation INTEGER NOT NULL, PRIMARY KEY(scope, head, reservation)
) STRICT, WITHOUT ROWID;

------------------------------------------------------------------------------------------------------------------------
-- Full-text search
------------------------------------------------------------------------------------------------------------------------

-- The texts that the index has taken in: messages, and turns that are not messages. The index keeps no copy of them.
CREATE VIEW indexed_texts(seq, subject, body) AS
    SELECT seq, subject, body FROM messages WHERE seq <= (SELECT value FROM meta WHERE key = 'indexed')
    UNION ALL SELECT seq, NULL, content FROM turns
        WHERE message IS NULL AND seq <= (SELECT value FROM meta WHERE key = 'indexed');
CREATE VIRTUAL TABLE fulltext USING fts5(
    subject, body, content='indexed_texts', content_rowid='seq', tokenize='unicode61');
-- Merges eight segments into one instead of four: a quarter less work for prose, some microseconds more for a search.
INSERT INTO fulltext(fulltext, rank) VALUES('automerge', 8);

INSERT INTO meta(key, value) VALUES('indexed', 0), ('keys_indexed', 0), ('keys_cursor', -9223372036854775808);

-- The books as version 1 of this program made them, with one agent in them. Never change this file.
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

CREATE TABLE agents(
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT, description TEXT, role TEXT, parent TEXT, owner TEXT,
    state TEXT NOT NULL, visibility TEXT NOT NULL, contact_policy TEXT NOT NULL, privacy TEXT NOT NULL,
    keys TEXT, capabilities TEXT, meta TEXT, via TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, retired_at INTEGER, born INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_role ON agents(role, id) WHERE role IS NOT NULL;
CREATE INDEX agents_by_parent ON agents(parent, id) WHERE parent IS NOT NULL;
CREATE INDEX agents_by_owner ON agents(owner, id) WHERE owner IS NOT NULL;

CREATE TABLE scopes(
    id TEXT PRIMARY KEY, name TEXT, description TEXT, parent TEXT, join_policy TEXT NOT NULL, roles TEXT NOT NULL,
    visibility TEXT NOT NULL, send_policy TEXT NOT NULL, auto_delete INTEGER NOT NULL, meta TEXT,
    created_by TEXT NOT NULL, created_at INTEGER NOT NULL, seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX scopes_by_parent ON scopes(parent, id) WHERE parent IS NOT NULL;
CREATE TABLE scope_members(
    scope TEXT NOT NULL, agent TEXT NOT NULL, joined_at INTEGER NOT NULL, PRIMARY KEY(scope, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX scope_members_by_agent ON scope_members(agent, scope);

CREATE TABLE messages(
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, sender TEXT NOT NULL, recipients TEXT NOT NULL,
    kind TEXT NOT NULL, subject TEXT, body TEXT NOT NULL, is_json INTEGER NOT NULL, priority INTEGER NOT NULL,
    ack_required INTEGER NOT NULL, expires_at INTEGER, correlation TEXT, conversation TEXT, thread BLOB,
    in_reply_to BLOB, task TEXT, key TEXT, envelope TEXT, meta TEXT, audience TEXT NOT NULL, via TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_sender ON messages(sender, seq);
CREATE INDEX messages_by_conversation ON messages(conversation, seq) WHERE conversation IS NOT NULL;
CREATE TABLE message_keys(
    sender TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, message INTEGER NOT NULL, PRIMARY KEY(sender, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries(
    agent TEXT NOT NULL, message INTEGER NOT NULL, copy TEXT NOT NULL, state INTEGER NOT NULL,
    kind TEXT NOT NULL, priority INTEGER NOT NULL, expires_at INTEGER,
    delivered_at INTEGER, read_at INTEGER, acked_at INTEGER, note TEXT, PRIMARY KEY(agent, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_waiting ON deliveries(agent, state, priority, message) WHERE state < 2;
CREATE INDEX deliveries_urgent ON deliveries(agent, priority, message) WHERE priority < 3;
CREATE INDEX deliveries_by_kind ON deliveries(agent, kind, message) WHERE kind <> '';
CREATE INDEX deliveries_by_message ON deliveries(message, agent);
CREATE INDEX deliveries_due ON deliveries(expires_at, agent, message) WHERE expires_at IS NOT NULL AND state < 2;

CREATE TABLE outbound(
    peer TEXT NOT NULL, message INTEGER NOT NULL, agent TEXT NOT NULL, PRIMARY KEY(peer, message, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations(
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, status TEXT NOT NULL, subject TEXT, parent TEXT, parent_turn BLOB,
    created_by TEXT NOT NULL, audience TEXT NOT NULL, meta TEXT,
    participant_count INTEGER NOT NULL, turn_count INTEGER NOT NULL, thread_count INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, closed_at INTEGER, seq INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_by_status ON conversations(status, seq);
CREATE INDEX conversations_by_parent ON conversations(parent, seq) WHERE parent IS NOT NULL;
CREATE TABLE participants(
    conversation TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL, permissions TEXT NOT NULL,
    joined_at INTEGER NOT NULL, left_at INTEGER, put_out INTEGER NOT NULL DEFAULT 0, joined INTEGER NOT NULL,
    conversation_seq INTEGER NOT NULL,
    PRIMARY KEY(conversation, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX participants_by_agent ON participants(agent, conversation_seq);

CREATE TABLE turns(
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, conversation TEXT NOT NULL, thread BLOB, author TEXT NOT NULL,
    content_type TEXT NOT NULL, content TEXT, message INTEGER, in_reply_to BLOB, visibility TEXT, meta TEXT,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_conversation ON turns(conversation, seq);
CREATE INDEX turns_by_content_type ON turns(conversation, content_type, seq);
CREATE INDEX turns_by_author ON turns(conversation, author, seq);
CREATE INDEX turns_by_author_and_type ON turns(conversation, author, content_type, seq);
CREATE INDEX turns_by_thread ON turns(thread, seq) WHERE thread IS NOT NULL;
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

CREATE TABLE reservations(
    seq INTEGER PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL, scope TEXT NOT NULL, paths TEXT NOT NULL,
    exclusive INTEGER NOT NULL, reason TEXT, status TEXT NOT NULL, audience TEXT NOT NULL, meta TEXT,
    issued_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, released_at INTEGER, UNIQUE(owner, key)
) STRICT;
CREATE INDEX reservations_active ON reservations(scope, owner, seq) WHERE status = 'active';
CREATE INDEX reservations_due ON reservations(expires_at, seq) WHERE status = 'active';
CREATE TABLE reserved_heads(
    scope TEXT NOT NULL, head TEXT NOT NULL, reservation INTEGER NOT NULL, PRIMARY KEY(scope, head, reservation)
) STRICT, WITHOUT ROWID;

CREATE TABLE contacts(
    sender TEXT NOT NULL, recipient TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, expires_at INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY(sender, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX contacts_by_recipient ON contacts(recipient, state, sender);

CREATE TABLE tokens(
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, role TEXT NOT NULL, name TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE peers(
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, url TEXT, token_ref TEXT, reachable INTEGER NOT NULL,
    volatile INTEGER NOT NULL, meta TEXT, created_at INTEGER NOT NULL, seen_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE events(
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, cause INTEGER,
    message INTEGER, conversation TEXT, fact TEXT NOT NULL
) STRICT;

CREATE VIEW letters(seq, subject, body) AS
    SELECT seq, subject, body FROM messages
    UNION ALL SELECT seq, NULL, content FROM turns WHERE message IS NULL;
CREATE VIRTUAL TABLE found USING fts5(subject, body, content='letters', content_rowid='seq', tokenize='unicode61');

PRAGMA user_version = 1;
INSERT INTO meta(key, value) VALUES('history', '0190a000-0000-7000-8000-000000000000');
INSERT INTO agents(id, kind, name, state, visibility, contact_policy, privacy, via, created_at, updated_at, born)
    VALUES('ann', 'agent', 'Ann', 'registered', 'public', 'open', 'public', 'test', 1700000000000, 1700000000000, 0);
INSERT INTO events(seq, at, kind, actor, fact) VALUES(1, 1700000000000, 'agent.registered', 'ann',
    '{"kind":"agent.registered","agent":"ann","name":"Ann","role":null,"owner":null}');

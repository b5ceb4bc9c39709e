-- A database of version 1 with rows in every table, as the program wrote it. Never change this file: it shows that such
-- databases keep opening.
PRAGMA application_id = 1885893492;
BEGIN;
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE events(
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, cause INTEGER,
    message INTEGER, conversation TEXT, fact TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_conversations ON events(conversation, seq)
    WHERE conversation IS NOT NULL AND kind <> 'turn.added';
CREATE INDEX scopes_made ON events(fact ->> '$.scope.id', seq) WHERE kind = 'scope.created';
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
CREATE TABLE usage(
    account TEXT PRIMARY KEY, bytes INTEGER NOT NULL, messages INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE deliveries(
    agent TEXT NOT NULL, message INTEGER NOT NULL, recipient_kind TEXT NOT NULL, state INTEGER NOT NULL,
    kind TEXT NOT NULL, priority INTEGER NOT NULL, expires_at INTEGER,
    delivered_at INTEGER, read_at INTEGER, acked_at INTEGER, note TEXT, PRIMARY KEY(agent, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_waiting ON deliveries(agent, state, priority, message) WHERE state < 2;
CREATE INDEX deliveries_urgent ON deliveries(agent, priority, message) WHERE priority < 3;
CREATE INDEX deliveries_by_kind ON deliveries(agent, kind, message) WHERE kind <> '';
CREATE INDEX deliveries_by_message ON deliveries(message, agent);
CREATE INDEX deliveries_due ON deliveries(expires_at, agent, message) WHERE expires_at IS NOT NULL AND state = 0;
CREATE INDEX deliveries_dead ON deliveries(message, agent) WHERE state >= 4;
CREATE TABLE outbound(
    peer TEXT NOT NULL, message INTEGER NOT NULL, agent TEXT NOT NULL, PRIMARY KEY(peer, message, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE seen_keys(
    n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, sender TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL,
    digest BLOB, expires_at INTEGER
) STRICT;
CREATE UNIQUE INDEX seen_keys_of_messages ON seen_keys(sender, key) WHERE kind = 0;
CREATE INDEX seen_keys_due ON seen_keys(expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE seen_key_hashes(hash INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(hash, n)) STRICT, WITHOUT ROWID;
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
    conversation_seq INTEGER NOT NULL, standing TEXT NOT NULL DEFAULT 'full', PRIMARY KEY(conversation, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX participants_by_agent ON participants(agent, conversation_seq);
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
CREATE TABLE runs(
    task TEXT PRIMARY KEY, instance TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL, steps INTEGER NOT NULL,
    notes INTEGER NOT NULL, state TEXT, seq INTEGER NOT NULL, UNIQUE(instance, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_live ON runs(seq) WHERE phase = 'running';
CREATE TABLE run_notes(
    task TEXT NOT NULL, n INTEGER NOT NULL, place INTEGER NOT NULL, agent TEXT NOT NULL, at INTEGER NOT NULL,
    note TEXT NOT NULL, PRIMARY KEY(task, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations(
    seq INTEGER PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL, scope TEXT NOT NULL, paths TEXT NOT NULL,
    exclusive INTEGER NOT NULL, reason TEXT, status TEXT NOT NULL, audience TEXT NOT NULL, told TEXT, meta TEXT,
    issued_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, released_at INTEGER, UNIQUE(owner, key)
) STRICT;
CREATE INDEX reservations_active ON reservations(scope, owner, seq) WHERE status = 'active';
CREATE INDEX reservations_held ON reservations(owner, seq) WHERE status = 'active';
CREATE INDEX reservations_due ON reservations(expires_at, seq) WHERE status = 'active';
CREATE INDEX reservations_by_key ON reservations(key, seq);
CREATE TABLE reserved_heads(
    scope TEXT NOT NULL, head TEXT NOT NULL, reservation INTEGER NOT NULL, PRIMARY KEY(scope, head, reservation)
) STRICT, WITHOUT ROWID;
CREATE VIEW indexed_texts(seq, subject, body) AS
    SELECT seq, subject, body FROM messages WHERE seq <= (SELECT value FROM meta WHERE key = 'indexed')
    UNION ALL SELECT seq, NULL, content FROM turns
        WHERE message IS NULL AND seq <= (SELECT value FROM meta WHERE key = 'indexed');
CREATE VIRTUAL TABLE fulltext USING fts5(
    subject, body, content='indexed_texts', content_rowid='seq', tokenize='unicode61');
INSERT INTO fulltext(fulltext, rank) VALUES('automerge', 8);

INSERT INTO meta(key, value) VALUES('alias:/srv/app', '{"alias":"/srv/app","realm":"main","at":1700000024000}');
INSERT INTO meta(key, value) VALUES('history', '0190a000-0000-7000-8000-000000000000');
INSERT INTO meta(key, value) VALUES('indexed', 33);
INSERT INTO meta(key, value) VALUES('keys_cursor', 5219454365334017209);
INSERT INTO meta(key, value) VALUES('keys_indexed', 7);
INSERT INTO meta(key, value) VALUES('rules', '{"thread_depth":10,"reservations_per_scope":10,"reservation_days":30,"paths_per_reservation":100,"path_bytes":256,"path_wildcards":8,"paths_per_scope":5000,"paths_per_agent":10000,"glob_steps":30000000,"conflicts":1000,"recipients":20000,"groups":16,"agents_per_owner":10000,"scopes_per_owner":1000,"scopes_per_agent":1000,"changes_per_command":2000,"bounds_names":256,"participants":10000,"pending_contacts":100,"mail_bytes_per_sender":8589934592,"mail_bytes_per_realm":68719476736,"sweep_rows":1000}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(1, 1700000001000, 'token.created', 'posthaste', '{"kind":"token.created","token":"0190a000-0000-7000-8000-000000010000","name":"fleet"}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(2, 1700000002000, 'scope.created', 'posthaste', '{"kind":"scope.created","scope":{"id":"crew","name":"The crew","description":null,"parent":null,"join_policy":"open","roles":["scout"],"visibility":"public","send_policy":"members","letters":"members","auto_delete":false,"meta":null,"created_by":"posthaste","created_at":1700000002000,"seq":2}}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(3, 1700000003000, 'agent.registered', 'ann', '{"kind":"agent.registered","agent":"ann","sort":"agent","name":"Ann","role":"scout","owner":null,"state":"registered","entry":{"id":"ann","kind":"agent","name":"Ann","description":null,"role":"scout","parent":null,"owner":null,"state":"registered","visibility":"public","contact_policy":"open","privacy":"public","keys":"{\"k\":1}","capabilities":null,"bounds":null,"meta":null,"via":"test","scopes":["crew"],"created_at":1700000003000,"updated_at":1700000003000,"retired_at":null,"born":0}}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(4, 1700000003000, 'scope.joined', 'ann', '{"kind":"scope.joined","scope":"crew","agent":"ann"}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(5, 1700000004000, 'agent.registered', 'bob', '{"kind":"agent.registered","agent":"bob","sort":"agent","name":null,"role":null,"owner":null,"state":"registered","entry":{"id":"bob","kind":"agent","name":null,"description":null,"role":null,"parent":null,"owner":null,"state":"registered","visibility":"public","contact_policy":"contacts","privacy":"public","keys":null,"capabilities":null,"bounds":null,"meta":null,"via":"test","scopes":["crew"],"created_at":1700000004000,"updated_at":1700000004000,"retired_at":null,"born":0}}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(6, 1700000004000, 'scope.joined', 'bob', '{"kind":"scope.joined","scope":"crew","agent":"bob"}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(7, 1700000005000, 'agent.registered', 'carl', '{"kind":"agent.registered","agent":"carl","sort":"user","name":null,"role":null,"owner":null,"state":"registered","entry":{"id":"carl","kind":"user","name":null,"description":null,"role":null,"parent":null,"owner":null,"state":"registered","visibility":"public","contact_policy":"open","privacy":"public","keys":null,"capabilities":null,"bounds":null,"meta":null,"via":"test","scopes":[],"created_at":1700000005000,"updated_at":1700000005000,"retired_at":null,"born":0}}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(8, 1700000006000, 'peer.changed', 'posthaste', '{"kind":"peer.changed","peer":"east","reachable":true}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(9, 1700000007000, 'contact.changed', 'ann', '{"kind":"contact.changed","from":"ann","to":"bob","state":"pending"}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(10, 1700000008000, 'contact.changed', 'bob', '{"kind":"contact.changed","from":"ann","to":"bob","state":"accepted"}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(11, 1700000009000, 'message.sent', 'ann', 11, '{"kind":"message.sent"}');
INSERT INTO events(seq, at, kind, actor, cause, message, fact) VALUES(12, 1700000010000, 'message.acked', 'bob', 11, 11, '{"kind":"message.acked","agent":"bob","response":"seen"}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(13, 1700000011000, 'message.sent', 'carl', 13, '{"kind":"message.sent"}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(14, 1700000012000, 'message.sent', 'ann', 14, '{"kind":"message.sent"}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(15, 1700000013000, 'message.sent', 'ann', 15, '{"kind":"message.sent"}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(16, 1700000014000, 'message.sent', 'ann', 16, '{"kind":"message.sent"}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(17, 1700000015000, 'conversation.created', 'ann', 'plan', '{"kind":"conversation.created","conversation":{"id":"plan","kind":"meeting","status":"active","subject":"Plan","parent":null,"parent_turn":null,"created_by":"ann","audience":"parties","meta":null,"participant_count":0,"turn_count":0,"thread_count":0,"created_at":1700000015000,"updated_at":1700000015000,"closed_at":null,"seq":17}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(18, 1700000015000, 'participant.joined', 'ann', 'plan', '{"kind":"participant.joined","participant":{"conversation":"plan","agent":"ann","kind":"agent","role":"initiator","permissions":{"can_send":true,"can_observe":true,"can_invite":true,"can_remove":true,"can_create_threads":true,"history":"full","can_see_internal":false},"joined_at":1700000015000,"left_at":null,"joined":18}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(19, 1700000015000, 'participant.joined', 'ann', 'plan', '{"kind":"participant.joined","participant":{"conversation":"plan","agent":"bob","kind":"agent","role":"moderator","permissions":{"can_send":true,"can_observe":true,"can_invite":true,"can_remove":true,"can_create_threads":true,"history":"full","can_see_internal":false},"joined_at":1700000015000,"left_at":null,"joined":19,"standing":"invited"}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(20, 1700000016000, 'turn.added', 'ann', 'plan', '{"kind":"turn.added","conversation":"plan"}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(21, 1700000017000, 'thread.created', 'bob', 'plan', '{"kind":"thread.created","thread":{"id":"0190a000-0000-7000-8000-000000110000","conversation":"plan","parent":null,"root":"0190a000-0000-7000-8000-000000100000","subject":"Where","depth":1,"turn_count":0,"participant_count":0,"created_by":"bob","created_at":1700000017000,"updated_at":1700000017000,"seq":21}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(22, 1700000018000, 'turn.added', 'bob', 'plan', '{"kind":"turn.added","conversation":"plan"}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(23, 1700000019000, 'summary.generated', 'ann', 'plan', '{"kind":"summary.generated","conversation":"plan","text":"The heron"}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(24, 1700000020000, 'conversation.created', 'ann', 'count', '{"kind":"conversation.created","conversation":{"id":"count","kind":"agent-task","status":"active","subject":"Count herons","parent":null,"parent_turn":null,"created_by":"ann","audience":"observers","meta":null,"participant_count":0,"turn_count":0,"thread_count":0,"created_at":1700000020000,"updated_at":1700000020000,"closed_at":null,"seq":24}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(25, 1700000020000, 'participant.joined', 'ann', 'count', '{"kind":"participant.joined","participant":{"conversation":"count","agent":"ann","kind":"agent","role":"initiator","permissions":{"can_send":true,"can_observe":true,"can_invite":true,"can_remove":true,"can_create_threads":true,"history":"full","can_see_internal":false},"joined_at":1700000020000,"left_at":null,"joined":25}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(26, 1700000020000, 'participant.joined', 'ann', 'count', '{"kind":"participant.joined","participant":{"conversation":"count","agent":"bob","kind":"agent","role":"worker","permissions":{"can_send":true,"can_observe":true,"can_invite":false,"can_remove":false,"can_create_threads":true,"history":"full","can_see_internal":false},"joined_at":1700000020000,"left_at":null,"joined":26,"standing":"invited"}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(27, 1700000020000, 'task.created', 'ann', 'count', '{"kind":"task.created","task":{"id":"count","title":"Count herons","description":null,"status":"open","owner":"ann","assignee":"bob","contributors":["ann","bob"],"result":null,"meta":null,"created_at":1700000020000,"updated_at":1700000020000,"ended_at":null,"seq":27}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(28, 1700000020000, 'task.assigned', 'ann', 'count', '{"kind":"task.assigned","task":"count","agent":"bob"}');
INSERT INTO events(seq, at, kind, actor, fact) VALUES(29, 1700000022000, 'reservation.made', 'ann', '{"kind":"reservation.made","reservation":{"seq":29,"owner":"ann","key":"lake","scope":"repo","paths":["lake/**"],"exclusive":true,"reason":"nesting","status":"active","audience":"observers","meta":null,"issued_at":1700000022000,"expires_at":1700086400000,"released_at":null}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(30, 1700000023000, 'conversation.created', 'posthaste', 'walk', '{"kind":"conversation.created","conversation":{"id":"walk","kind":"agent-task","status":"active","subject":"A walk","parent":null,"parent_turn":null,"created_by":"carl","audience":"parties","meta":null,"participant_count":0,"turn_count":0,"thread_count":0,"created_at":1700000023000,"updated_at":1700000023000,"closed_at":null,"seq":30}}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(31, 1700000023000, 'task.created', 'posthaste', 'walk', '{"kind":"task.created","task":{"id":"walk","title":"A walk","description":null,"status":"in_progress","owner":"user:carl@here","assignee":null,"contributors":["user:carl@here"],"result":null,"meta":null,"created_at":1700000023000,"updated_at":1700000023000,"ended_at":null,"seq":31}}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(32, 1700000023000, 'message.sent', 'ann', 32, '{"kind":"message.sent"}');
INSERT INTO events(seq, at, kind, actor, conversation, fact) VALUES(33, 1700000023000, 'turn.added', 'ann', 'walk', '{"kind":"turn.added","conversation":"walk"}');
INSERT INTO events(seq, at, kind, actor, message, fact) VALUES(34, 1700000026000, 'message.sent', 'bob', 34, '{"kind":"message.sent"}');
INSERT INTO agents(id, kind, name, role, state, visibility, contact_policy, privacy, keys, via, created_at, updated_at, born, skeleton, bearer) VALUES('ann', 'agent', 'Ann', 'scout', 'registered', 'public', 'open', 'public', '{"k":1}', 'test', 1700000003000, 1700000003000, 0, 'ann', 'ann');
INSERT INTO agents(id, kind, state, visibility, contact_policy, privacy, via, created_at, updated_at, born, skeleton, bearer) VALUES('bob', 'agent', 'registered', 'public', 'contacts', 'public', 'test', 1700000004000, 1700000004000, 0, 'bob', 'bob');
INSERT INTO agents(id, kind, state, visibility, contact_policy, privacy, via, created_at, updated_at, born, skeleton, bearer) VALUES('carl', 'user', 'registered', 'public', 'open', 'public', 'test', 1700000005000, 1700000005000, 0, 'carl', 'carl');
INSERT INTO scopes(id, name, join_policy, roles, visibility, send_policy, messages_seen_by, auto_delete, created_by, created_at, seq) VALUES('crew', 'The crew', 'open', '["scout"]', 'public', 'members', 'members', 0, 'posthaste', 1700000002000, 2);
INSERT INTO scope_members(scope, agent, joined_at) VALUES('crew', 'ann', 1700000003000);
INSERT INTO scope_members(scope, agent, joined_at) VALUES('crew', 'bob', 1700000004000);
INSERT INTO contacts(sender, recipient, state, reason, created_at, updated_at) VALUES('ann', 'bob', 'accepted', 'shared work', 1700000007000, 1700000008000);
INSERT INTO contacts(sender, recipient, state, created_at, updated_at) VALUES('bob', 'ann', 'accepted', 1700000008000, 1700000008000);
INSERT INTO tokens(id, hash, role, name, skeleton, observe, created_at) VALUES('0190a000-0000-7000-8000-000000010000', x'0707070707070707070707070707070707070707070707070707070707070707', 'agent', 'fleet', 'fleet', 0, 1700000001000);
INSERT INTO peers(name, kind, url, reachable, volatile, created_at, seen_at) VALUES('east', 'server', 'https://east.example', 1, 0, 1700000006000, 1700000000000);
INSERT INTO usage(account, bytes, messages) VALUES('', 5833, 9);
INSERT INTO usage(account, bytes, messages) VALUES('ann', 3463, 5);
INSERT INTO usage(account, bytes, messages) VALUES('bob', 1260, 2);
INSERT INTO usage(account, bytes, messages) VALUES('carl', 689, 1);
INSERT INTO messages(seq, id, sender, recipients, kind, subject, body, is_json, priority, ack_required, key, audience, via, at) VALUES(11, x'0190a000000070008000000000090000', 'ann', '[{"agent":"bob"},{"agent":"carl"}]', '', 'Birds', 'The heron is back.', 0, 3, 1, 'order-1', 'parties', 'test', 1700000009000);
INSERT INTO messages(seq, id, sender, recipients, kind, body, is_json, priority, ack_required, audience, via, at) VALUES(13, x'0190a0000000700080000000000b0000', 'carl', '[{"remote":{"agent":"zoe","realm":"east"}}]', '', 'To another realm.', 0, 3, 0, 'parties', 'test', 1700000011000);
INSERT INTO messages(seq, id, sender, recipients, kind, body, is_json, priority, ack_required, envelope, audience, via, at) VALUES(14, x'0190a0000000700080000000000c0000', 'ann', '[{"agent":"bob"}]', 'note', 'Signed text.', 0, 3, 0, '{signed}', 'parties', 'test', 1700000012000);
INSERT INTO messages(seq, id, sender, recipients, kind, body, is_json, priority, ack_required, key, audience, via, at) VALUES(15, x'0190a0000000700080000000000d0000', 'ann', '[{"agent":"bob"}]', '', 'Order 2.', 0, 3, 0, 'order-2', 'parties', 'test', 1700000013000);
INSERT INTO messages(seq, id, sender, recipients, kind, body, is_json, priority, ack_required, key, audience, via, at) VALUES(16, x'0190a0000000700080000000000e0000', 'ann', '[{"agent":"bob"}]', '', 'Order 3.', 0, 3, 0, 'order-3', 'parties', 'test', 1700000014000);
INSERT INTO messages(seq, id, sender, recipients, kind, subject, body, is_json, priority, ack_required, conversation, task, key, audience, via, at) VALUES(32, x'0190a000000070008000000003e70000', 'carl', '[{"agent":"ann"}]', 'request', 'Go', 'Go to the lake.', 0, 2, 0, 'walk', 'walk', 'walk-1', 'parties', 'test', 1700000023000);
INSERT INTO messages(seq, id, sender, recipients, kind, body, is_json, priority, ack_required, audience, via, at) VALUES(34, x'0190a0000000700080000000001a0000', 'bob', '[{"agent":"ann"}]', '', 'A kingfisher that is not in the full-text index yet.', 0, 3, 0, 'parties', 'test', 1700000026000);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('ann', 32, 'to', 0, 'request', 2);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('ann', 34, 'to', 0, '', 3);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority, delivered_at, read_at, acked_at, note) VALUES('bob', 11, 'to', 3, '', 3, 1700000010000, 1700000010000, 1700000010000, 'seen');
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('bob', 14, 'to', 0, 'note', 3);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('bob', 15, 'to', 0, '', 3);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('bob', 16, 'to', 0, '', 3);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('carl', 11, 'cc', 0, '', 3);
INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('zoe@east', 13, 'to', 0, '', 3);
INSERT INTO outbound(peer, message, agent) VALUES('east', 13, 'zoe@east');
INSERT INTO seen_keys(n, kind, sender, key, seq, digest) VALUES(1, 0, 'ann', 'order-1', 11, x'863eeb11dfec69ead76667e63f9c7ad3e0b793c382d6cd6b9e8f47c5725b5dd5');
INSERT INTO seen_keys(n, kind, sender, key, seq) VALUES(2, 1, 'ann', 'id:1', 14);
INSERT INTO seen_keys(n, kind, sender, key, seq, digest) VALUES(3, 1, 'ann', 'mail:1', 14, x'0102');
INSERT INTO seen_keys(n, kind, sender, key, seq, expires_at) VALUES(4, 1, 'ann', 'nonce:1', 14, 4000000000000);
INSERT INTO seen_keys(n, kind, sender, key, seq, digest) VALUES(5, 0, 'ann', 'order-2', 15, x'c97042a51d8f776de4021996e374d830a20914ae5d943b32f567fb155733415a');
INSERT INTO seen_keys(n, kind, sender, key, seq, digest) VALUES(6, 0, 'ann', 'order-3', 16, x'a82c366acde124c50c5d529bacab71b2e347b7f73109d33137225142dfdf6845');
INSERT INTO seen_keys(n, kind, sender, key, seq, digest) VALUES(7, 0, 'carl', 'walk-1', 32, x'');
INSERT INTO seen_key_hashes(hash, n) VALUES(-6518421671813590356, 3);
INSERT INTO seen_key_hashes(hash, n) VALUES(-5177826071510286763, 2);
INSERT INTO seen_key_hashes(hash, n) VALUES(5219454365334017209, 4);
INSERT INTO conversations(id, kind, status, subject, created_by, audience, participant_count, turn_count, thread_count, created_at, updated_at, seq) VALUES('count', 'agent-task', 'active', 'Count herons', 'ann', 'observers', 2, 0, 0, 1700000020000, 1700000020000, 24);
INSERT INTO conversations(id, kind, status, subject, created_by, audience, participant_count, turn_count, thread_count, created_at, updated_at, seq) VALUES('plan', 'meeting', 'active', 'Plan', 'ann', 'parties', 2, 2, 1, 1700000015000, 1700000018000, 17);
INSERT INTO conversations(id, kind, status, subject, created_by, audience, participant_count, turn_count, thread_count, created_at, updated_at, seq) VALUES('walk', 'agent-task', 'active', 'A walk', 'carl', 'parties', 2, 1, 0, 1700000023000, 1700000023000, 30);
INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, put_out, joined, conversation_seq, standing) VALUES('count', 'ann', 'agent', 'initiator', '{"can_send":true,"can_observe":true,"can_invite":true,"can_remove":true,"can_create_threads":true,"history":"full","can_see_internal":false}', 1700000020000, 0, 25, 24, 'full');
INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, put_out, joined, conversation_seq, standing) VALUES('count', 'bob', 'agent', 'worker', '{"can_send":true,"can_observe":true,"can_invite":false,"can_remove":false,"can_create_threads":true,"history":"full","can_see_internal":false}', 1700000020000, 0, 26, 24, 'invited');
INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, put_out, joined, conversation_seq, standing) VALUES('plan', 'ann', 'agent', 'initiator', '{"can_send":true,"can_observe":true,"can_invite":true,"can_remove":true,"can_create_threads":true,"history":"full","can_see_internal":false}', 1700000015000, 0, 18, 17, 'full');
INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, put_out, joined, conversation_seq, standing) VALUES('plan', 'bob', 'agent', 'moderator', '{"can_send":true,"can_observe":true,"can_invite":true,"can_remove":true,"can_create_threads":true,"history":"full","can_see_internal":false}', 1700000015000, 0, 19, 17, 'full');
INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, put_out, joined, conversation_seq, standing) VALUES('walk', 'ann', 'agent', 'worker', '{"can_send":true,"can_observe":true,"can_invite":false,"can_remove":false,"can_create_threads":true,"history":"full","can_see_internal":false}', 1700000023000, 0, 31, 30, 'full');
INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, put_out, joined, conversation_seq, standing) VALUES('walk', 'carl', 'user', 'worker', '{"can_send":true,"can_observe":true,"can_invite":false,"can_remove":false,"can_create_threads":true,"history":"full","can_see_internal":false}', 1700000023000, 0, 31, 30, 'full');
INSERT INTO turns(seq, id, conversation, author, content_type, content, at, conversation_seq, author_hash, type_hash) VALUES(20, x'0190a000000070008000000000100000', 'plan', 'ann', 'text', '{"text": "Shall we look for the heron?"}', 1700000016000, 17, 355060760, -1108980162);
INSERT INTO turns(seq, id, conversation, thread, author, content_type, content, visibility, at, conversation_seq, author_hash, type_hash) VALUES(22, x'0190a000000070008000000000120000', 'plan', x'0190a000000070008000000000110000', 'bob', 'text', '{"text": "At the lake."}', '"private"', 1700000018000, 17, -2033803052, -1108980162);
INSERT INTO turns(seq, id, conversation, author, content_type, message, at, conversation_seq, author_hash, type_hash) VALUES(33, x'0190a000000070008000000000170000', 'walk', 'carl', 'text', 32, 1700000023000, 30, -1876466185, -1108980162);
INSERT INTO turn_types(conversation, content_type, turns) VALUES('plan', 'text', 2);
INSERT INTO turn_types(conversation, content_type, turns) VALUES('walk', 'text', 1);
INSERT INTO threads(id, conversation, root, subject, depth, turn_count, participant_count, created_by, created_at, updated_at, seq) VALUES(x'0190a000000070008000000000110000', 'plan', x'0190a000000070008000000000100000', 'Where', 1, 1, 1, 'bob', 1700000017000, 1700000018000, 21);
INSERT INTO thread_authors(thread, agent) VALUES(x'0190a000000070008000000000110000', 'bob');
INSERT INTO summaries(conversation, part, summary, up_to, at) VALUES('plan', 'all', '{"text":"The heron","key_points":[],"decisions":[],"open_questions":[],"actions":[],"participants":[],"mentions":[],"lines":1}', 20, 1700000019000);
INSERT INTO tasks(id, title, status, owner, assignee, created_at, updated_at, seq) VALUES('count', 'Count herons', 'open', 'ann', 'bob', 1700000020000, 1700000020000, 27);
INSERT INTO tasks(id, title, status, owner, created_at, updated_at, seq) VALUES('walk', 'A walk', 'in_progress', 'user:carl@here', 1700000023000, 1700000023000, 31);
INSERT INTO task_contributors(task, contributor, place) VALUES('count', 'ann', 0);
INSERT INTO task_contributors(task, contributor, place) VALUES('count', 'bob', 1);
INSERT INTO task_contributors(task, contributor, place) VALUES('count', 'carl', 2);
INSERT INTO task_contributors(task, contributor, place) VALUES('walk', 'user:carl@here', 0);
INSERT INTO runs(task, instance, name, phase, steps, notes, state, seq) VALUES('walk', 'user:carl', 'walk', 'running', 1, 1, '{"at":"lake"}', 30);
INSERT INTO run_notes(task, n, place, agent, at, note) VALUES('walk', 1, 32, 'ann', 1700000023000, '{"n":1}');
INSERT INTO reservations(seq, owner, key, scope, paths, exclusive, reason, status, audience, issued_at, expires_at) VALUES(29, 'ann', 'lake', 'repo', '["lake/**"]', 1, 'nesting', 'active', 'observers', 1700000022000, 1700086400000);
INSERT INTO reserved_heads(scope, head, reservation) VALUES('repo', 'lake', 29);
INSERT INTO fulltext(fulltext) VALUES('rebuild');
PRAGMA user_version = 1;
COMMIT;

//! The tables. A change here is a new version with a step in [`migrate`]; old books must still open.

use rusqlite::Connection;

use super::{marks, name_hash, skeletons};
use crate::error::Fault;

/// The version of the books that this program writes.
pub const VERSION: i64 = 11;

/// Brings books of any earlier version to this one, inside the caller's transaction.
pub(super) fn migrate(db: &Connection, found: i64) -> Result<(), Fault> {
    if found > VERSION {
        return Err(Fault::NewerDatabase { found, known: VERSION });
    }
    if found < 1 {
        db.execute_batch(V1)?;
    }
    if found < 2 {
        db.execute_batch(V2)?;
    }
    if found < 3 {
        for step in [V3_INDEX, V3_SEALS, V3_PEOPLE, V3_RUNS] {
            db.execute_batch(step)?;
        }
    }
    if found < 4 {
        db.execute_batch(V4)?;
    }
    if found < 5 {
        db.execute_batch(V5)?;
        marks::place_all(db)?;
    }
    // In version 6 marks that came lately may have a place or not; all that version 5 had are as it left them.
    if found < 7 {
        db.execute_batch(V7_NUMBERS)?;
        name_hash::number_turns(db)?;
        db.execute_batch(V7_LISTS)?;
    }
    if found < 8 {
        db.execute_batch(V8)?;
        db.execute_batch(V8_INDEX)?;
    }
    if found < 9 {
        db.execute_batch(V9)?;
    }
    if found < 10 {
        db.execute_batch(V10)?;
    }
    if found < 11 {
        db.execute_batch(V11_TOKENS)?;
        db.execute_batch(V11_NAMES)?;
        skeletons::fill(db)?;
        db.execute_batch(V11_PARTICIPANTS)?;
        db.execute_batch(V11_WRITES)?;
    }
    db.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// Tokens may be bound to one door, and may carry the right to observe. Earlier tokens open every door and observe nothing.
const V11_TOKENS: &str = "
ALTER TABLE tokens ADD COLUMN door TEXT;
ALTER TABLE tokens ADD COLUMN observe INTEGER NOT NULL DEFAULT 0;
";

/// New names are compared with others by what they look like. An entry knows the token under which it was made, if that
/// is not its own.
const V11_NAMES: &str = "
ALTER TABLE agents ADD COLUMN skeleton TEXT;
ALTER TABLE agents ADD COLUMN bearer TEXT;
ALTER TABLE tokens ADD COLUMN skeleton TEXT;
CREATE INDEX agents_by_skeleton ON agents(skeleton);
CREATE INDEX tokens_by_skeleton ON tokens(skeleton);
";

/// Participants are told apart by how they came. All earlier ones count as having come of their own accord by invitation.
const V11_PARTICIPANTS: &str = "
ALTER TABLE participants ADD COLUMN standing TEXT NOT NULL DEFAULT 'full';
";

/// What limits are counted by: one agent's reservations in force, one account's agents in force and scopes, whatever there was
/// before; what accounts have stored since this version. And how a scope that is gone was made, which events about it are judged by.
const V11_WRITES: &str = "
CREATE INDEX agents_by_bearer ON agents(bearer, id) WHERE bearer IS NOT NULL AND retired_at IS NULL;
CREATE INDEX scopes_by_maker ON scopes(created_by);
CREATE INDEX scopes_made ON events(fact ->> '$.scope.id', seq) WHERE kind = 'scope.created';
CREATE TABLE usage(
    account TEXT PRIMARY KEY, bytes INTEGER NOT NULL, messages INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_held ON reservations(owner, seq) WHERE status = 'active';
";

/// What somebody said in a long thread, or of one type, is found without walking it. Turns outside of threads are in none
/// of these.
const V10: &str = "
CREATE INDEX turns_by_thread_and_author ON turns(thread, author_hash) WHERE thread IS NOT NULL;
CREATE INDEX turns_by_thread_and_type ON turns(thread, type_hash) WHERE thread IS NOT NULL;
CREATE INDEX turns_by_thread_author_and_type ON turns(thread, author_hash, type_hash) WHERE thread IS NOT NULL;
";

/// Only a letter that still waits can run out of time. One that was handed over and is never looked at would stay in the
/// old index, and in the way of every sweep.
const V9: &str = "
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries(expires_at, agent, message) WHERE expires_at IS NOT NULL AND state = 0;
";

/// Who may see letters to a scope besides their parties; everybody who may observe if not said. It used to be kept for the
/// doors alone, each under its own prefix, and counts from here on.
const V8: &str = "
ALTER TABLE scopes ADD COLUMN letters TEXT;
UPDATE scopes SET letters = (
    SELECT value FROM json_each(scopes.meta) WHERE key LIKE '%:messageVisibility' AND value IN ('members', 'system'))
WHERE json_valid(meta);
";

/// Eight pieces of the full-text index are merged into one instead of four: a quarter less work for letters in prose, and
/// some microseconds more for a search.
const V8_INDEX: &str = "INSERT INTO found(found, rank) VALUES('automerge', 8);";

/// Turns are listed by numbers instead of names.
const V7_NUMBERS: &str = "
DROP INDEX turns_by_conversation;
DROP INDEX turns_by_content_type;
DROP INDEX turns_by_author;
DROP INDEX turns_by_author_and_type;
ALTER TABLE turns ADD COLUMN talk INTEGER;
ALTER TABLE turns ADD COLUMN author_hash INTEGER;
ALTER TABLE turns ADD COLUMN type_hash INTEGER;
";

/// Each ends with the turn's own `seq`, as every index does. Turns that not everybody may read are few, and asked for.
const V7_LISTS: &str = "
CREATE INDEX turns_by_conversation ON turns(talk);
CREATE INDEX turns_by_content_type ON turns(talk, type_hash);
CREATE INDEX turns_by_author ON turns(talk, author_hash);
CREATE INDEX turns_by_author_and_type ON turns(talk, author_hash, type_hash);
CREATE INDEX turns_restricted ON turns(talk) WHERE visibility IS NOT NULL;
";

/// Marks stay as they come; where they are is found by a hash of the label.
const V5: &str = "
CREATE TABLE marks_as_they_come(
    n INTEGER PRIMARY KEY, label TEXT NOT NULL, sender TEXT NOT NULL, message INTEGER NOT NULL, digest BLOB,
    until INTEGER
) STRICT;
INSERT INTO marks_as_they_come(label, sender, message, digest, until)
    SELECT label, sender, message, digest, until FROM marks ORDER BY message, label, sender;
INSERT INTO marks_as_they_come(label, sender, message, digest, until)
    SELECT label, sender, message, digest, until FROM new_marks ORDER BY n;
DROP TABLE marks;
DROP TABLE new_marks;
ALTER TABLE marks_as_they_come RENAME TO marks;
CREATE INDEX marks_due ON marks(until) WHERE until IS NOT NULL;
CREATE TABLE mark_places(hash INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(hash, n)) STRICT, WITHOUT ROWID;
";

/// Marks as they come; they moved to `marks` many at a time.
const V4: &str = "
CREATE TABLE new_marks(
    n INTEGER PRIMARY KEY, label TEXT NOT NULL, sender TEXT NOT NULL, message INTEGER NOT NULL, digest BLOB,
    until INTEGER
) STRICT;
";

/// Tasks that the office itself moves along: what state they are in, and what each agent did in its turn.
const V3_RUNS: &str = "
CREATE TABLE runs(
    task TEXT PRIMARY KEY, instance TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL, steps INTEGER NOT NULL,
    notes INTEGER NOT NULL, state TEXT, seq INTEGER NOT NULL, UNIQUE(instance, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_live ON runs(seq) WHERE phase = 'running';
CREATE TABLE run_notes(
    task TEXT NOT NULL, n INTEGER NOT NULL, place INTEGER NOT NULL, agent TEXT NOT NULL, at INTEGER NOT NULL,
    note TEXT NOT NULL, PRIMARY KEY(task, n)
) STRICT, WITHOUT ROWID;
";

/// What an agent is kept to.
const V2: &str = "ALTER TABLE agents ADD COLUMN bounds TEXT;";

/// The full-text index follows the letters: how far it has come, and what it therefore holds.
const V3_INDEX: &str = "
INSERT INTO meta(key, value) SELECT 'indexed', coalesce(max(seq), 0) FROM events;
DROP VIEW letters;
CREATE VIEW letters(seq, subject, body) AS
    SELECT seq, subject, body FROM messages WHERE seq <= (SELECT value FROM meta WHERE key = 'indexed')
    UNION ALL SELECT seq, NULL, content FROM turns
        WHERE message IS NULL AND seq <= (SELECT value FROM meta WHERE key = 'indexed');
";

/// Names that come once, reservations that only some were told of, and reservations by their holders' names for them.
const V3_SEALS: &str = "
CREATE TABLE marks(
    label TEXT NOT NULL, sender TEXT NOT NULL, message INTEGER NOT NULL, digest BLOB, until INTEGER,
    PRIMARY KEY(label, sender, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX marks_due ON marks(until, label, sender, message) WHERE until IS NOT NULL;
ALTER TABLE reservations ADD COLUMN told TEXT;
CREATE INDEX reservations_by_key ON reservations(key, seq);
";

/// What people look for: letters that want an answer, letters that reached nobody, what became of a conversation or task.
/// Partial indices, so that a plain letter is in none of them and costs what it did.
const V3_PEOPLE: &str = "
CREATE INDEX messages_asking ON messages(seq) WHERE ack_required <> 0;
CREATE INDEX deliveries_dead ON deliveries(message, agent) WHERE state >= 4;
CREATE INDEX events_of_conversations ON events(conversation, seq)
    WHERE conversation IS NOT NULL AND kind <> 'turn.added';
";

// Reasons that the columns do not tell by themselves:
// - `seq` is the place in the history. A message, a turn, a conversation, … carries the seq of the event that made it,
//   so one number orders everything and pages need no other key.
// - `deliveries_waiting` serves both "queued" (state 0) and "unread" (states 0 and 1) by priority, in one small index
//   that a letter leaves when it is read.
// - `letters` joins messages and explicit turns for the full-text index, which keeps no copy of the text.
const V1: &str = "
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
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Db, Marks, short};

    #[test]
    fn what_scopes_of_version_7_were_asked_to_keep_they_keep() {
        let db = Connection::open_in_memory().unwrap();
        for step in [V1, V2, V3_INDEX, V3_SEALS, V3_PEOPLE, V3_RUNS, V4, V5, V7_NUMBERS, V7_LISTS] {
            db.execute_batch(step).unwrap();
        }
        let scope = "INSERT INTO scopes(id, join_policy, roles, visibility, send_policy, auto_delete, meta, created_by,
                         created_at, seq) VALUES(?1, 'open', '[]', 'public', 'any', 0, ?2, 'ann', 0, 1)";
        db.execute(scope, ("a", r#"{"map:messageVisibility":"members","x":1}"#)).unwrap();
        db.execute(scope, ("b", r#"{"map:messageVisibility":"whatever"}"#)).unwrap();
        db.execute(scope, ("c", r#"{"messageVisibility":"system"}"#)).unwrap();
        db.execute(scope, ("d", rusqlite::types::Null)).unwrap();
        migrate(&db, 7).unwrap();
        let found: Vec<Option<String>> = db
            .prepare("SELECT letters FROM scopes ORDER BY id")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(found, [Some("members".to_owned()), None, None, None]);
    }

    #[test]
    fn names_of_version_10_get_skeletons_and_bearers() {
        let db = Connection::open_in_memory().unwrap();
        for step in [
            V1, V2, V3_INDEX, V3_SEALS, V3_PEOPLE, V3_RUNS, V4, V5, V7_NUMBERS, V7_LISTS, V8, V8_INDEX, V9,
            V10,
        ] {
            db.execute_batch(step).unwrap();
        }
        let agent = "INSERT INTO agents(id, kind, state, visibility, contact_policy, privacy, via, created_at, updated_at, born,
                         owner, meta) VALUES(?1, 'agent', 'idle', 'public', 'open', 'public', 'x', 0, 0, 0, ?2, ?3)";
        let none: Option<&str> = None;
        db.execute(agent, ("Carl", Some("mallory"), none)).unwrap();
        db.execute(agent, ("dora", Some("participant-1"), Some(r#"{"map:principal":"mallory"}"#))).unwrap();
        db.execute(agent, ("ann", Some("participant-2"), Some("not json"))).unwrap();
        // More than get their skeletons at a time.
        for number in 0..1_100 {
            db.execute(agent, (format!("z{number}"), none, none)).unwrap();
        }
        let token =
            "INSERT INTO tokens(id, hash, role, name, created_at) VALUES('1', x'01', 'agent', 'mallory', 0)";
        db.execute(token, []).unwrap();
        migrate(&db, 10).unwrap();
        let sql = "SELECT id || ' ' || skeleton || ' ' || bearer FROM agents WHERE id < 'z' ORDER BY id";
        let found: Vec<String> = db
            .prepare(sql)
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(found, ["Carl carl mallory", "ann ann ann", "dora dora mallory"]);
        let looks: String = db.query_row("SELECT skeleton FROM tokens", [], |row| row.get(0)).unwrap();
        assert_eq!(looks, crate::confusables::skeleton("mallory"));
        let bare = "SELECT count(*) FROM agents WHERE skeleton IS NULL OR bearer IS NULL";
        assert_eq!(db.query_row(bare, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }

    #[test]
    fn turns_of_version_6_get_their_numbers() {
        let db = Connection::open_in_memory().unwrap();
        for step in [V1, V2, V3_INDEX, V3_SEALS, V3_PEOPLE, V3_RUNS, V4, V5] {
            db.execute_batch(step).unwrap();
        }
        let talk = "INSERT INTO conversations(id, kind, status, created_by, audience, participant_count, turn_count,
                        thread_count, created_at, updated_at, seq) VALUES(?1, 'talk', 'active', 'ann', 'parties', 0, 0, 0, 0, 0, ?2)";
        db.execute(talk, ("c", 3)).unwrap();
        db.execute(talk, ("d", 4)).unwrap();
        // More than get their numbers at a time.
        for seq in 5..2_505 {
            let (conversation, author) = if seq % 2 == 0 { ("c", "ann") } else { ("d", "bob") };
            let turn = "INSERT INTO turns(seq, id, conversation, author, content_type, at) VALUES(?1, ?2, ?3, ?4, 'text', 0)";
            db.execute(turn, (seq, i64::to_be_bytes(seq), conversation, author)).unwrap();
        }
        migrate(&db, 6).unwrap();
        let found: Vec<(String, i64, i32, i32, i64)> = db
            .prepare("SELECT author, talk, author_hash, type_hash, count(*) FROM turns GROUP BY 1, 2, 3, 4")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let expected = [("ann", 3), ("bob", 4)]
            .map(|(author, talk)| (author.to_owned(), talk, short(author), short("text"), 1_250));
        assert_eq!(found, expected);
    }

    #[test]
    fn marks_of_version_4_are_found_in_their_new_places() {
        let db = Connection::open_in_memory().unwrap();
        for step in [V1, V2, V3_INDEX, V3_SEALS, V3_PEOPLE, V3_RUNS, V4] {
            db.execute_batch(step).unwrap();
        }
        let rows = "INSERT INTO marks(label, sender, message, until) VALUES('id:a', 'ann', 7, NULL), ('id:b', 'bob', 3, 99);
             INSERT INTO new_marks(label, sender, message, digest) VALUES('id:c', 'ann', 8, x'01'), ('id:a', 'bob', 9, NULL);";
        db.execute_batch(rows).unwrap();
        migrate(&db, 4).unwrap();
        let marks = Marks::read(Db::new(&db)).unwrap();
        let found = |label: &str| {
            let found = marks.with_label(Db::new(&db), label).unwrap().into_iter();
            found
                .map(|it| format!("{} {} {:?} {:?}", it.sender, it.message, it.digest, it.until))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("id:a"), ["ann 7 None None", "bob 9 None None"]);
        assert_eq!(found("id:b"), ["bob 3 None Some(99)"]);
        assert_eq!(found("id:c"), ["ann 8 Some([1]) None"]);
        assert!(found("id:d").is_empty());
        let places: i64 = db.query_row("SELECT count(*) FROM mark_places", [], |row| row.get(0)).unwrap();
        assert_eq!(places, 4);
    }
}

//! Reads nouns from rows. Each noun has its list of columns and one function that reads them in that order.

use std::sync::LazyLock;

use rusqlite::Row;
use rusqlite::types::Type;

use super::{Db, all, one};
use crate::nouns::{
    Agent, AgentId, Body, Contact, Conversation, ConversationId, Delivery, Json, Message, MessageId,
    Participant, Peer, Permissions, Reservation, Scope, ScopeId, Seq, Task, TaskId, Thread, ThreadId, Token,
    Turn, TurnId, TurnSource, TurnVisibility,
};

/// Parses JSON that the engine itself wrote into a column.
fn own<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// A query built from a list of columns, formatted once: these run many times for every message.
type Query = LazyLock<String>;

pub(crate) const AGENT: &str = "id, kind, name, description, role, parent, owner, state, visibility, contact_policy, \
     privacy, keys, capabilities, meta, via, created_at, updated_at, retired_at, born, bounds";

/// The same without columns that may be long and do not matter for whether an agent may be written to.
pub(crate) const AGENT_IN_GROUP: &str = "id, kind, NULL, NULL, role, parent, owner, state, visibility, contact_policy, \
     privacy, NULL, NULL, NULL, via, created_at, updated_at, retired_at, born, bounds";

/// An agent without its scopes, which most callers do not need.
pub(crate) fn agent(row: &Row<'_>) -> rusqlite::Result<Agent> {
    Ok(Agent {
        id: row.get(0)?,
        kind: row.get(1)?,
        name: row.get(2)?,
        description: row.get(3)?,
        role: row.get(4)?,
        parent: row.get(5)?,
        owner: row.get(6)?,
        state: row.get(7)?,
        visibility: row.get(8)?,
        contact_policy: row.get(9)?,
        privacy: row.get(10)?,
        keys: row.get(11)?,
        capabilities: row.get(12)?,
        meta: row.get(13)?,
        via: row.get(14)?,
        scopes: Vec::new(),
        created_at: row.get(15)?,
        updated_at: row.get(16)?,
        retired_at: row.get(17)?,
        born: row.get(18)?,
        bounds: match row.get_ref(19)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(own(row, 19)?),
        },
    })
}

/// The agent with that id, registered or not, without its scopes.
pub(crate) fn any_agent(db: Db<'_>, id: &AgentId) -> rusqlite::Result<Option<Agent>> {
    static BY_ID: Query = LazyLock::new(|| format!("SELECT {AGENT} FROM agents WHERE id = ?1"));
    one(db, &BY_ID, [id], agent)
}

/// The registered agent with that id, without its scopes.
pub(crate) fn active_agent(db: Db<'_>, id: &AgentId) -> rusqlite::Result<Option<Agent>> {
    Ok(any_agent(db, id)?.filter(Agent::is_active))
}

/// The scopes an agent is a member of.
pub(crate) fn scopes_of(db: Db<'_>, id: &AgentId) -> rusqlite::Result<Vec<ScopeId>> {
    all(db, "SELECT scope FROM scope_members WHERE agent = ?1 ORDER BY scope", [id], |row| row.get(0))
}

pub(crate) const MESSAGE: &str = "m.seq, m.id, m.sender, m.recipients, m.kind, m.subject, m.body, m.is_json, \
     m.priority, m.ack_required, m.expires_at, m.correlation, m.conversation, m.thread, m.in_reply_to, m.task, m.key, \
     m.envelope, m.meta, m.audience, m.via, m.at";

/// The same without columns that may be large and that no rule reads: body, envelope and meta.
pub(crate) static MESSAGE_HEAD: Query = LazyLock::new(|| {
    MESSAGE.replace("m.body, m.is_json", "'', 0").replace("m.envelope, m.meta", "NULL, NULL")
});

/// Number of columns of [`MESSAGE`].
pub(crate) const MESSAGE_COLUMNS: usize = 22;

pub(crate) fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    let body = if row.get(7)? { Body::Json(row.get::<_, Json>(6)?) } else { Body::Text(row.get(6)?) };
    Ok(Message {
        seq: row.get(0)?,
        id: row.get(1)?,
        from: row.get(2)?,
        to: own(row, 3)?,
        kind: row.get(4)?,
        subject: row.get(5)?,
        body,
        priority: row.get(8)?,
        ack_required: row.get(9)?,
        expires_at: row.get(10)?,
        correlation: row.get(11)?,
        conversation: row.get(12)?,
        thread: row.get(13)?,
        in_reply_to: row.get(14)?,
        task: row.get(15)?,
        key: row.get(16)?,
        envelope: row.get(17)?,
        meta: row.get(18)?,
        audience: row.get(19)?,
        via: row.get(20)?,
        at: row.get(21)?,
    })
}

/// The message with a seq.
pub(crate) fn message_at(db: Db<'_>, seq: Seq) -> rusqlite::Result<Option<Message>> {
    static AT: Query = LazyLock::new(|| format!("SELECT {MESSAGE} FROM messages m WHERE m.seq = ?1"));
    one(db, &AT, [seq], message)
}

/// The message with an id.
pub(crate) fn message_by_id(db: Db<'_>, id: MessageId) -> rusqlite::Result<Option<Message>> {
    static BY_ID: Query = LazyLock::new(|| format!("SELECT {MESSAGE} FROM messages m WHERE m.id = ?1"));
    one(db, &BY_ID, [id], message)
}

/// The kind in the index of kinds, which leaves out plain mail: most mail is plain, and each recipient would need
/// another index entry.
pub(crate) fn indexed_kind(kind: &str) -> &str {
    if kind == "text" { "" } else { kind }
}

pub(crate) const DELIVERY: &str =
    "d.message, d.agent, d.recipient_kind, d.state, d.delivered_at, d.read_at, d.acked_at, d.note";

/// A delivery whose columns start at `first`.
pub(crate) fn delivery(row: &Row<'_>, first: usize) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        message: row.get(first)?,
        agent: row.get(first + 1)?,
        copy: row.get(first + 2)?,
        state: row.get(first + 3)?,
        delivered_at: row.get(first + 4)?,
        read_at: row.get(first + 5)?,
        acked_at: row.get(first + 6)?,
        note: row.get(first + 7)?,
    })
}

/// One recipient's delivery of a message.
pub(crate) fn delivery_of(db: Db<'_>, agent: &AgentId, message: Seq) -> rusqlite::Result<Option<Delivery>> {
    static OF: Query = LazyLock::new(|| {
        format!("SELECT {DELIVERY} FROM deliveries d WHERE d.agent = ?1 AND d.message = ?2")
    });
    one(db, &OF, (agent, message), |row| delivery(row, 0))
}

pub(crate) const CONVERSATION: &str = "c.id, c.kind, c.status, c.subject, c.parent, c.parent_turn, c.created_by, \
     c.audience, c.meta, c.participant_count, c.turn_count, c.thread_count, c.created_at, c.updated_at, c.closed_at, c.seq";

pub(crate) fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation {
        id: row.get(0)?,
        kind: row.get(1)?,
        status: row.get(2)?,
        subject: row.get(3)?,
        parent: row.get(4)?,
        parent_turn: row.get(5)?,
        created_by: row.get(6)?,
        audience: row.get(7)?,
        meta: row.get(8)?,
        participant_count: row.get(9)?,
        turn_count: row.get(10)?,
        thread_count: row.get(11)?,
        created_at: row.get(12)?,
        updated_at: row.get(13)?,
        closed_at: row.get(14)?,
        seq: row.get(15)?,
    })
}

/// The conversation with an id.
pub(crate) fn conversation_by_id(db: Db<'_>, id: &ConversationId) -> rusqlite::Result<Option<Conversation>> {
    static BY_ID: Query =
        LazyLock::new(|| format!("SELECT {CONVERSATION} FROM conversations c WHERE c.id = ?1"));
    one(db, &BY_ID, [id], conversation)
}

pub(crate) const PARTICIPANT: &str =
    "conversation, agent, kind, role, permissions, joined_at, left_at, joined, standing";

pub(crate) fn participant(row: &Row<'_>) -> rusqlite::Result<Participant> {
    Ok(Participant {
        conversation: row.get(0)?,
        agent: row.get(1)?,
        kind: row.get(2)?,
        role: row.get(3)?,
        permissions: own::<Permissions>(row, 4)?,
        joined_at: row.get(5)?,
        left_at: row.get(6)?,
        joined: row.get(7)?,
        standing: row.get(8)?,
    })
}

/// An agent's current or former participation in a conversation.
pub(crate) fn participant_of(
    db: Db<'_>,
    conversation: &ConversationId,
    agent: &AgentId,
) -> rusqlite::Result<Option<Participant>> {
    static OF: Query = LazyLock::new(|| {
        format!("SELECT {PARTICIPANT} FROM participants WHERE conversation = ?1 AND agent = ?2")
    });
    one(db, &OF, (conversation, agent), participant)
}

pub(crate) const TURN: &str = "t.seq, t.id, t.conversation, t.thread, t.author, t.content_type, t.content, \
     t.in_reply_to, t.visibility, t.meta, t.at, m.id, m.body, m.is_json";
/// A turn that is a message has no content of its own; the message's body is its content.
pub(crate) const TURN_TABLES: &str = "turns t LEFT JOIN messages m ON m.seq = t.message";

pub(crate) fn turn(row: &Row<'_>) -> rusqlite::Result<Turn> {
    let message: Option<MessageId> = row.get(11)?;
    let content = match (row.get::<_, Option<Json>>(6)?, row.get::<_, Option<bool>>(13)?) {
        (Some(content), _) => content,
        (None, Some(true)) => row.get(12)?,
        (None, _) => text_content(row.get_ref(12)?.as_str()?),
    };
    let visibility = match row.get_ref(8)?.as_str_or_null()? {
        None => TurnVisibility::All,
        Some(_) => own(row, 8)?,
    };
    Ok(Turn {
        seq: row.get(0)?,
        id: row.get(1)?,
        conversation: row.get(2)?,
        thread: row.get(3)?,
        author: row.get(4)?,
        content_type: row.get(5)?,
        content,
        in_reply_to: row.get(7)?,
        visibility,
        source: message.map_or(TurnSource::Explicit, TurnSource::Intercepted),
        meta: row.get(9)?,
        at: row.get(10)?,
    })
}

/// The content of a turn that is a message with a plain text body.
pub(crate) fn text_content(text: &str) -> Json {
    Json::from_value(&serde_json::json!({ "text": text }))
}

/// The turn with an id.
pub(crate) fn turn_by_id(db: Db<'_>, id: TurnId) -> rusqlite::Result<Option<Turn>> {
    one(db, &format!("SELECT {TURN} FROM {TURN_TABLES} WHERE t.id = ?1"), [id], turn)
}

/// The turn with a seq.
pub(crate) fn turn_at(db: Db<'_>, seq: Seq) -> rusqlite::Result<Option<Turn>> {
    static AT: Query = LazyLock::new(|| format!("SELECT {TURN} FROM {TURN_TABLES} WHERE t.seq = ?1"));
    one(db, &AT, [seq], turn)
}

pub(crate) const THREAD: &str = "id, conversation, parent, root, subject, depth, turn_count, participant_count, \
     created_by, created_at, updated_at, seq";

pub(crate) fn thread(row: &Row<'_>) -> rusqlite::Result<Thread> {
    Ok(Thread {
        id: row.get(0)?,
        conversation: row.get(1)?,
        parent: row.get(2)?,
        root: row.get(3)?,
        subject: row.get(4)?,
        depth: row.get(5)?,
        turn_count: row.get(6)?,
        participant_count: row.get(7)?,
        created_by: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
        seq: row.get(11)?,
    })
}

/// The thread with an id.
pub(crate) fn thread_by_id(db: Db<'_>, id: ThreadId) -> rusqlite::Result<Option<Thread>> {
    one(db, &format!("SELECT {THREAD} FROM threads WHERE id = ?1"), [id], thread)
}

pub(crate) const SCOPE: &str = "id, name, description, parent, join_policy, roles, visibility, send_policy, \
     auto_delete, meta, created_by, created_at, seq, messages_seen_by";

pub(crate) fn scope(row: &Row<'_>) -> rusqlite::Result<Scope> {
    Ok(Scope {
        id: row.get(0)?,
        name: row.get(1)?,
        description: row.get(2)?,
        parent: row.get(3)?,
        join_policy: row.get(4)?,
        roles: own(row, 5)?,
        visibility: row.get(6)?,
        send_policy: row.get(7)?,
        auto_delete: row.get(8)?,
        meta: row.get(9)?,
        created_by: row.get(10)?,
        created_at: row.get(11)?,
        seq: row.get(12)?,
        messages_seen_by: row.get::<_, Option<_>>(13)?.unwrap_or_default(),
    })
}

/// The scope with an id.
pub(crate) fn scope_by_id(db: Db<'_>, id: &ScopeId) -> rusqlite::Result<Option<Scope>> {
    one(db, &format!("SELECT {SCOPE} FROM scopes WHERE id = ?1"), [id], scope)
}

/// Whether an agent is a member of a scope.
pub(crate) fn is_member(db: Db<'_>, scope: &ScopeId, agent: &AgentId) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM scope_members WHERE scope = ?1 AND agent = ?2";
    Ok(one(db, sql, (scope, agent), |_| Ok(()))?.is_some())
}

pub(crate) const TASK: &str =
    "id, title, description, status, owner, assignee, result, meta, created_at, updated_at, ended_at, seq";

/// A task without its contributors.
pub(crate) fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get(0)?,
        title: row.get(1)?,
        description: row.get(2)?,
        status: row.get(3)?,
        owner: row.get(4)?,
        assignee: row.get(5)?,
        contributors: Vec::new(),
        result: row.get(6)?,
        meta: row.get(7)?,
        created_at: row.get(8)?,
        updated_at: row.get(9)?,
        ended_at: row.get(10)?,
        seq: row.get(11)?,
    })
}

/// A run: `task, instance, name, phase, steps, notes, state, seq`.
pub(crate) fn run(row: &Row<'_>) -> rusqlite::Result<crate::nouns::Run> {
    Ok(crate::nouns::Run {
        task: row.get(0)?,
        instance: row.get(1)?,
        name: row.get(2)?,
        phase: row.get(3)?,
        steps: row.get(4)?,
        notes: row.get(5)?,
        state: row.get(6)?,
        seq: row.get(7)?,
    })
}

/// The task with an id, with its contributors.
pub(crate) fn task_by_id(db: Db<'_>, id: &TaskId) -> rusqlite::Result<Option<Task>> {
    let Some(mut found) = one(db, &format!("SELECT {TASK} FROM tasks WHERE id = ?1"), [id], task)? else {
        return Ok(None);
    };
    found.contributors = contributors_of(db, id)?;
    Ok(Some(found))
}

/// All contributors of a task, in the order in which they joined.
pub(crate) fn contributors_of(db: Db<'_>, id: &TaskId) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT contributor FROM task_contributors WHERE task = ?1 ORDER BY place";
    all(db, sql, [id], |row| row.get(0))
}

pub(crate) const RESERVATION: &str = "r.seq, r.owner, r.key, r.scope, r.paths, r.exclusive, r.reason, r.status, \
     r.audience, r.meta, r.issued_at, r.expires_at, r.released_at, r.told";

pub(crate) fn reservation(row: &Row<'_>) -> rusqlite::Result<Reservation> {
    Ok(Reservation {
        seq: row.get(0)?,
        owner: row.get(1)?,
        key: row.get(2)?,
        scope: row.get(3)?,
        paths: own(row, 4)?,
        exclusive: row.get(5)?,
        reason: row.get(6)?,
        status: row.get(7)?,
        audience: row.get(8)?,
        told: row.get::<_, Option<String>>(13)?.and_then(|told| serde_json::from_str(&told).ok()),
        meta: row.get(9)?,
        issued_at: row.get(10)?,
        expires_at: row.get(11)?,
        released_at: row.get(12)?,
    })
}

/// The reservation with a seq.
pub(crate) fn reservation_at(db: Db<'_>, seq: Seq) -> rusqlite::Result<Option<Reservation>> {
    one(db, &format!("SELECT {RESERVATION} FROM reservations r WHERE r.seq = ?1"), [seq], reservation)
}

pub(crate) const CONTACT: &str = "sender, recipient, state, reason, expires_at, created_at, updated_at";

pub(crate) fn contact(row: &Row<'_>) -> rusqlite::Result<Contact> {
    Ok(Contact {
        from: row.get(0)?,
        to: row.get(1)?,
        state: row.get(2)?,
        reason: row.get(3)?,
        expires_at: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
    })
}

/// The contact state from one agent to another.
pub(crate) fn contact_of(db: Db<'_>, from: &AgentId, to: &AgentId) -> rusqlite::Result<Option<Contact>> {
    static OF: Query =
        LazyLock::new(|| format!("SELECT {CONTACT} FROM contacts WHERE sender = ?1 AND recipient = ?2"));
    one(db, &OF, (from, to), contact)
}

pub(crate) const TOKEN: &str = "id, role, name, door, observe, created_at, expires_at, revoked_at";

pub(crate) fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        id: row.get(0)?,
        role: row.get(1)?,
        name: row.get(2)?,
        door: row.get(3)?,
        observe: row.get(4)?,
        created_at: row.get(5)?,
        expires_at: row.get(6)?,
        revoked_at: row.get(7)?,
    })
}

pub(crate) const PEER: &str = "name, kind, url, token_ref, reachable, volatile, meta, created_at, seen_at";

pub(crate) fn peer(row: &Row<'_>) -> rusqlite::Result<Peer> {
    Ok(Peer {
        name: row.get(0)?,
        kind: row.get(1)?,
        url: row.get(2)?,
        token_ref: row.get(3)?,
        reachable: row.get(4)?,
        volatile: row.get(5)?,
        meta: row.get(6)?,
        created_at: row.get(7)?,
        seen_at: row.get(8)?,
    })
}

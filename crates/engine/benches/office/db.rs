//! The rows of a message written directly into the database: the baseline for the engine, and how large databases are
//! made.

use std::path::Path;
use std::time::{Duration, Instant};

use posthaste_engine::nouns::{AgentId, ConversationId};
use posthaste_engine::store::{open_writer, short};
use rusqlite::{Connection, Statement};
use uuid::Uuid;

pub const AGENTS: usize = 100;
/// The mailbox that gets half of all seeded messages.
pub const READER: usize = 0;
/// Number of seeded messages with the rare word.
pub const RARE_WORD_MESSAGES: usize = 20;

pub fn agent(n: usize) -> AgentId {
    AgentId::new(format!("agent-{n:03}")).expect("an agent id")
}

pub fn conversation() -> ConversationId {
    ConversationId::new("the-long-conversation").expect("a conversation id")
}

/// A repeatable random generator.
pub struct Rng(u64);

impl Rng {
    pub fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap_or(0)
    }

    /// A word out of five thousand, common ones far more often than rare ones, as in prose.
    fn word(&mut self, to: &mut String) {
        let uniform = self.below(1 << 20) as f64 / f64::from(1 << 20);
        let mut rank = (uniform.powi(4) * 5_000.0) as usize + 7;
        while rank > 0 {
            to.push_str(["ka", "lo", "mi", "ter", "sun", "ve", "ri", "dan"][rank % 8]);
            rank /= 8;
        }
    }

    /// A subject of four words and a body of about two hundred bytes.
    pub fn message(&mut self) -> (String, String) {
        let (mut subject, mut body) = (String::new(), String::new());
        for _ in 0..4 {
            self.word(&mut subject);
            subject.push(' ');
        }
        while body.len() < 200 {
            self.word(&mut body);
            body.push(' ');
        }
        (subject.trim_end().to_owned(), body.trim_end().to_owned())
    }
}

/// The most common word of the messages.
pub const COMMON_WORD: &str = "dan";

/// The columns of one message.
pub struct MessageRow<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub kind: &'a str,
    pub subject: &'a str,
    pub body: &'a str,
    /// 0 for queued, 2 for read.
    pub state: u8,
    pub conversation: Option<&'a str>,
}

/// The statements, prepared once.
pub struct RowWriter<'a> {
    message: Statement<'a>,
    index: Statement<'a>,
    delivery: Statement<'a>,
    event: Statement<'a>,
    turn: Statement<'a>,
    /// The last seq used.
    pub last: i64,
}

impl<'a> RowWriter<'a> {
    pub fn new(db: &'a Connection) -> Self {
        let prepare = |sql| db.prepare(sql).expect("a statement of the schema");
        Self {
            message: prepare(
                "INSERT INTO messages(seq, id, sender, recipients, kind, subject, body, is_json, priority,
                 ack_required, conversation, audience, via, at) VALUES(?1,?2,?3,?4,?5,?6,?7,0,3,0,?8,'parties','bench',?9)",
            ),
            index: prepare("INSERT INTO fulltext(rowid, subject, body) VALUES(?1, ?2, ?3)"),
            delivery: prepare(
                "INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES(?1, ?2, 'to', ?3, ?4, 3)",
            ),
            event: prepare(
                "INSERT INTO events(seq, at, kind, actor, message, conversation, fact) VALUES(?1,?2,?3,?4,?5,?6,?7)",
            ),
            turn: prepare(
                "INSERT INTO turns(seq, id, conversation, author, content_type, message, at, conversation_seq, author_hash, type_hash)
                 VALUES(?1,?2,?3,?4,?5,?6,?7,0,?8,?9)",
            ),
            last: db.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0)).expect("a head"),
        }
    }

    /// The four rows of a message, and a turn with its event if it is part of a conversation.
    pub fn write(&mut self, message: &MessageRow<'_>) {
        let seq = self.last + 1;
        let at = 1_700_000_000_000 + seq;
        let recipients = format!("[{{\"agent\":\"{}\"}}]", message.to);
        let id = id_at(at, seq);
        let MessageRow { from, to, kind, subject, body, state, conversation } = message;
        self.message
            .execute(rusqlite::params![
                seq,
                id.as_bytes(),
                from,
                recipients,
                kind,
                subject,
                body,
                conversation,
                at
            ])
            .expect("a message");
        self.index.execute((seq, subject, body)).expect("an index row");
        self.delivery.execute((to, seq, state, kind)).expect("a delivery");
        let fact = "{\"kind\":\"message.sent\"}";
        self.event.execute((seq, at, "message.sent", from, seq, None::<&str>, fact)).expect("an event");
        self.last = seq;
        if let Some(conversation) = conversation {
            let turn = seq + 1;
            let content_type = if seq % 20 < 2 { "data" } else { "text" };
            let id = id_at(at, turn);
            let hashes = (short(from), short(content_type));
            self.turn
                .execute((turn, id.as_bytes(), conversation, from, content_type, seq, at, hashes.0, hashes.1))
                .expect("a turn");
            let fact = format!("{{\"kind\":\"turn.added\",\"conversation\":\"{conversation}\"}}");
            self.event
                .execute((turn, at, "turn.added", from, None::<i64>, conversation, fact))
                .expect("an event");
            self.last = turn;
        }
    }
}

/// A UUIDv7 that increases with the seq, as the engine's do.
pub fn id_at(at: i64, seq: i64) -> Uuid {
    let random = u64::try_from(seq).unwrap_or(0).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let mut tail = [0; 10];
    tail[2..].copy_from_slice(&random);
    uuid::Builder::from_unix_timestamp_millis(u64::try_from(at).unwrap_or(0), &tail).into_uuid()
}

/// Inserts the agents into an empty database.
pub fn enter_agents(db: &Connection) {
    let mut statement = db
        .prepare(
            "INSERT INTO agents(id, kind, state, visibility, contact_policy, privacy, via, created_at, updated_at, born)
             VALUES(?1, 'agent', 'registered', 'public', 'open', 'public', 'bench', 0, 0, 0)",
        )
        .expect("a statement of the schema");
    for n in 0..AGENTS {
        statement.execute([agent(n)]).expect("a free name");
    }
}

/// Creates a database with this many messages, each also a turn of one conversation. Returns how long it took.
///
/// Half of the messages are for the reader; nine of ten have been read; one in ten is a task.
pub fn seed(path: &Path, messages: usize) -> Duration {
    let started = Instant::now();
    let db = open_writer(path).expect("db");
    // No mail here needs to survive a power cut.
    db.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = -262144; BEGIN").expect("settings");
    enter_agents(&db);
    let conversation = conversation();
    let rights = "{\"can_send\":true,\"can_observe\":true,\"can_invite\":false,\"can_remove\":false,\
                  \"can_create_threads\":true,\"history\":\"full\",\"can_see_internal\":false}";
    db
        .execute(
            "INSERT INTO conversations(id, kind, status, created_by, audience, participant_count, turn_count, thread_count,
                 created_at, updated_at, seq) VALUES(?1, 'multi-agent', 'active', ?2, 'parties', ?3, ?4, 0, 0, 0, 0)",
            (&conversation, agent(0), AGENTS.to_string(), messages.to_string()),
        )
        .expect("a conversation");
    for n in 0..AGENTS {
        let part = "INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, joined, conversation_seq)
                    VALUES(?1, ?2, 'agent', 'assistant', ?3, 0, 0, 0)";
        db.execute(part, (&conversation, agent(n), rights)).expect("a participant");
    }
    let mut rng = Rng::new();
    let mut writer = RowWriter::new(&db);
    let names: Vec<AgentId> = (0..AGENTS).map(agent).collect();
    for n in 0..messages {
        let (subject, mut body) = rng.message();
        if n % (messages / RARE_WORD_MESSAGES) == 0 {
            body.push_str(" needle");
        }
        let to = if n % 2 == 0 { READER } else { 1 + rng.below(AGENTS - 1) };
        writer.write(&MessageRow {
            from: names[rng.below(20)].as_str(),
            to: names[to].as_str(),
            kind: if rng.below(10) == 0 { "task" } else { "" },
            subject: &subject,
            body: &body,
            state: if rng.below(10) == 0 { 0 } else { 2 },
            conversation: Some(conversation.as_str()),
        });
        if n % 50_000 == 49_999 {
            db.execute_batch("COMMIT; BEGIN").expect("a commit");
        }
    }
    drop(writer);
    db.execute_batch("COMMIT").expect("a commit");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    started.elapsed()
}

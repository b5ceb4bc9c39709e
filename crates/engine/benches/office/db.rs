//! The rows of a letter written straight into the books: what the engine is compared with, and how large books are made.

use std::path::Path;
use std::time::{Duration, Instant};

use posthaste_engine::nouns::{AgentId, ConversationId};
use posthaste_engine::store::{open_writer, short};
use rusqlite::{Connection, Statement};
use uuid::Uuid;

pub const AGENTS: usize = 100;
/// The mailbox that gets half of all seeded letters.
pub const READER: usize = 0;
/// In how many seeded letters the rare word stands.
pub const RARE: usize = 20;

pub fn agent(n: usize) -> AgentId {
    AgentId::new(format!("agent-{n:03}")).expect("an agent id")
}

pub fn conversation() -> ConversationId {
    ConversationId::new("the-long-talk").expect("a conversation id")
}

/// Repeatable chance.
pub struct Dice(u64);

impl Dice {
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
        let chance = self.below(1 << 20) as f64 / f64::from(1 << 20);
        let mut rank = (chance.powi(4) * 5_000.0) as usize + 7;
        while rank > 0 {
            to.push_str(["ka", "lo", "mi", "ter", "sun", "ve", "ri", "dan"][rank % 8]);
            rank /= 8;
        }
    }

    /// A subject of four words and a body of about two hundred bytes.
    pub fn letter(&mut self) -> (String, String) {
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

/// The most common word of the letters.
pub const COMMON: &str = "dan";

/// One letter to be written.
pub struct Letter<'a> {
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
pub struct Ledger<'a> {
    message: Statement<'a>,
    index: Statement<'a>,
    delivery: Statement<'a>,
    event: Statement<'a>,
    turn: Statement<'a>,
    /// The last place taken.
    pub last: i64,
}

impl<'a> Ledger<'a> {
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

    /// The four rows of a letter, and a turn with its event if it is part of a conversation.
    pub fn write(&mut self, letter: &Letter<'_>) {
        let seq = self.last + 1;
        let at = 1_700_000_000_000 + seq;
        let recipients = format!("[{{\"agent\":\"{}\"}}]", letter.to);
        let id = id_at(at, seq);
        let Letter { from, to, kind, subject, body, state, conversation } = letter;
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
            let listed_by = (short(from), short(content_type));
            self.turn
                .execute((
                    turn,
                    id.as_bytes(),
                    conversation,
                    from,
                    content_type,
                    seq,
                    at,
                    listed_by.0,
                    listed_by.1,
                ))
                .expect("a turn");
            let fact = format!("{{\"kind\":\"turn.added\",\"conversation\":\"{conversation}\"}}");
            self.event
                .execute((turn, at, "turn.added", from, None::<i64>, conversation, fact))
                .expect("an event");
            self.last = turn;
        }
    }
}

/// An id of version 7 that rises with the place, as the engine's do.
pub fn id_at(at: i64, seq: i64) -> Uuid {
    let random = u64::try_from(seq).unwrap_or(0).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let mut tail = [0; 10];
    tail[2..].copy_from_slice(&random);
    uuid::Builder::from_unix_timestamp_millis(u64::try_from(at).unwrap_or(0), &tail).into_uuid()
}

/// Puts the agents into the address book of empty books.
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

/// Makes books with so many letters, each a turn of one conversation as well. Says how long it took.
///
/// Half of the letters are the reader's; nine of ten have been read; one in ten is a task.
pub fn seed(path: &Path, letters: usize) -> Duration {
    let started = Instant::now();
    let db = open_writer(path).expect("db");
    // Nothing here is anybody's mail yet, so it need not survive a power cut.
    db.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = -262144; BEGIN").expect("settings");
    enter_agents(&db);
    let talk = conversation();
    let rights = "{\"can_send\":true,\"can_observe\":true,\"can_invite\":false,\"can_remove\":false,\
                  \"can_create_threads\":true,\"history\":\"full\",\"can_see_internal\":false}";
    db
        .execute(
            "INSERT INTO conversations(id, kind, status, created_by, audience, participant_count, turn_count, thread_count,
                 created_at, updated_at, seq) VALUES(?1, 'multi-agent', 'active', ?2, 'parties', ?3, ?4, 0, 0, 0, 0)",
            (&talk, agent(0), AGENTS.to_string(), letters.to_string()),
        )
        .expect("a conversation");
    for n in 0..AGENTS {
        let part = "INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, joined, conversation_seq)
                    VALUES(?1, ?2, 'agent', 'assistant', ?3, 0, 0, 0)";
        db.execute(part, (&talk, agent(n), rights)).expect("a participant");
    }
    let mut dice = Dice::new();
    let mut ledger = Ledger::new(&db);
    let names: Vec<AgentId> = (0..AGENTS).map(agent).collect();
    for n in 0..letters {
        let (subject, mut body) = dice.letter();
        if n % (letters / RARE) == 0 {
            body.push_str(" needle");
        }
        let to = if n % 2 == 0 { READER } else { 1 + dice.below(AGENTS - 1) };
        ledger.write(&Letter {
            from: names[dice.below(20)].as_str(),
            to: names[to].as_str(),
            kind: if dice.below(10) == 0 { "task" } else { "" },
            subject: &subject,
            body: &body,
            state: if dice.below(10) == 0 { 0 } else { 2 },
            conversation: Some(talk.as_str()),
        });
        if n % 50_000 == 49_999 {
            db.execute_batch("COMMIT; BEGIN").expect("a commit");
        }
    }
    drop(ledger);
    db.execute_batch("COMMIT").expect("a commit");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    started.elapsed()
}

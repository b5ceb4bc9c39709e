//! The same rows without a server: what SQLite alone can do with this disk.

use std::path::Path;
use std::time::{Duration, Instant};

use posthaste_engine::store::open_writer;

use posthaste::cli::exit::Failure;

/// How long the loop runs, at least.
const MIN_DURATION: Duration = Duration::from_secs(1);

/// Messages per second, in synced transactions of `batch` messages each.
pub(super) fn per_second(path: &Path, batch: u32, body: &str) -> Result<f64, Failure> {
    let database = open_writer(path)?;
    let mut message = database.prepare(
        "INSERT INTO messages(seq, id, sender, recipients, kind, subject, body, is_json, priority, ack_required, audience,
             via, at) VALUES(?1, randomblob(16), 'agent-1', '[{\"agent\":\"agent-2\"}]', '', 'Ready for review', ?2, 0, 3, 0,
             'parties', 'cli', ?1)",
    )?;
    let mut delivery = database.prepare(
        "INSERT INTO deliveries(agent, message, recipient_kind, state, kind, priority) VALUES('agent-2', ?1, 'to', 0, '', 3)",
    )?;
    let mut event = database.prepare(
        "INSERT INTO events(seq, at, kind, actor, message, fact)
         VALUES(?1, ?1, 'message.sent', 'agent-1', ?1, '{\"kind\":\"message.sent\"}')",
    )?;
    let mut index =
        database.prepare("INSERT INTO fulltext(rowid, subject, body) VALUES(?1, 'Ready for review', ?2)")?;
    let started = Instant::now();
    let mut written: i64 = 0;
    while started.elapsed() < MIN_DURATION {
        database.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..batch {
            written += 1;
            message.execute((written, body))?;
            delivery.execute([written])?;
            event.execute([written])?;
            index.execute((written, body))?;
        }
        database.execute_batch("COMMIT")?;
    }
    Ok(written as f64 / started.elapsed().as_secs_f64())
}

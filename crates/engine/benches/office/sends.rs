//! Durable sends through the engine, compared with a bare loop that writes the same rows in transactions of the same
//! size.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use posthaste_engine::Engine;
use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Address, AgentId, Caller, RealmName};
use posthaste_engine::store::open_writer;
use posthaste_engine::verbs::mail::SendMessage;
use tokio::runtime::Runtime;

use crate::db::{AGENTS, MessageRow, Rng, RowWriter, agent, enter_agents};
use crate::frame::{Clock, Options, Report, Spent, median};

/// One message, for the engine and for the bare loop.
struct Draft {
    from: AgentId,
    to: AgentId,
    subject: String,
    body: String,
}

struct Round {
    engine: Spent,
    bare: Spent,
    batch: f64,
}

pub fn run(options: &Options, runtime: &Runtime, report: &mut Report) {
    let (rounds, scale) = if options.quick { (3, 4) } else { (7, 1) };
    let drafts = Arc::new(drafts());
    let mut rows = Vec::new();
    for (in_flight, count) in [(1, 3_000), (8, 12_000), (64, 32_000), (512, 40_960)] {
        let count = count / scale;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (ours, theirs) = (directory.path().join("engine.db"), directory.path().join("bare.db"));
        for path in [&ours, &theirs] {
            enter_agents(&open_writer(path).expect("db"));
        }
        let realm = RealmName::new("bench").expect("a realm name");
        let (engine, guard) = Engine::open(&ours, realm, Limits::default()).expect("db");
        let db = open_writer(&theirs).expect("db");
        let mut writer = RowWriter::new(&db);
        // The first round fills caches and is not counted.
        let mut measured = Vec::new();
        for round in 0..=rounds {
            let before = (engine.meter().batches.sum(), engine.meter().batches.count());
            let spent = runtime.block_on(through_the_engine(&engine, &drafts, in_flight, count));
            let after = (engine.meter().batches.sum(), engine.meter().batches.count());
            let bare = bare(&db, &mut writer, &drafts, in_flight, count);
            let batch = (after.0 - before.0) as f64 / (after.1 - before.1).max(1) as f64;
            if round > 0 {
                measured.push(Round { engine: spent, bare, batch });
            }
        }
        drop(engine);
        guard.join();
        let rate = |spent: Spent| count as f64 / spent.wall.as_secs_f64();
        let cost = |spent: Spent| spent.cpu.as_secs_f64() * 1e6 / count as f64;
        let ratio = median(measured.iter().map(|round| rate(round.engine) / rate(round.bare)));
        rows.push((
            format!("{in_flight} in flight"),
            vec![
                median(measured.iter().map(|round| rate(round.engine))),
                median(measured.iter().map(|round| rate(round.bare))),
                ratio,
                measured.iter().map(|round| rate(round.engine)).fold(0.0, f64::max)
                    / measured.iter().map(|round| rate(round.bare)).fold(0.0, f64::max),
                median(measured.iter().map(|round| cost(round.engine))),
                median(measured.iter().map(|round| cost(round.bare))),
                median(measured.iter().map(|round| round.batch)),
            ],
        ));
        if in_flight == 64 {
            report.bar("durable sends at 64 in flight, share of the bare loop", ratio, 0.6, false);
        }
    }
    let columns = ["msgs/s", "bare msgs/s", "ratio", "best/best", "cpu us", "bare cpu us", "mean batch"];
    report.table("durable sends", &columns, &rows);
}

/// Sends this many messages, 64 at a time.
pub async fn burst(engine: &Engine, count: usize) {
    through_the_engine(engine, &Arc::new(drafts()), 64, count).await;
}

fn drafts() -> Vec<Draft> {
    let mut rng = Rng::new();
    let mut draft = |_| {
        let (subject, body) = rng.message();
        Draft { from: agent(rng.below(AGENTS)), to: agent(rng.below(AGENTS)), subject, body }
    };
    (0..4_096).map(&mut draft).collect()
}

async fn through_the_engine(
    engine: &Engine,
    drafts: &Arc<Vec<Draft>>,
    in_flight: usize,
    count: usize,
) -> Spent {
    let next = Arc::new(AtomicUsize::new(0));
    let clock = Clock::start();
    let senders: Vec<_> = (0..in_flight)
        .map(|_| {
            let (engine, drafts, next) = (engine.clone(), drafts.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        break;
                    }
                    let draft = &drafts[n % drafts.len()];
                    let to = vec![Address::Agent(draft.to.clone())];
                    let send = SendMessage {
                        subject: Some(draft.subject.clone()),
                        ..SendMessage::text(to, draft.body.as_str())
                    };
                    let caller = Caller::member(draft.from.clone(), "bench");
                    engine.submit(&caller, send).await.expect("a message that is accepted");
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.expect("a sender that ends well");
    }
    clock.stop()
}

fn bare(
    db: &rusqlite::Connection,
    writer: &mut RowWriter<'_>,
    drafts: &[Draft],
    in_flight: usize,
    count: usize,
) -> Spent {
    let clock = Clock::start();
    let mut begin = db.prepare("BEGIN IMMEDIATE").expect("a statement");
    let mut commit = db.prepare("COMMIT").expect("a statement");
    for start in (0..count).step_by(in_flight) {
        begin.execute([]).expect("a transaction");
        for n in start..count.min(start + in_flight) {
            let draft = &drafts[n % drafts.len()];
            writer.write(&MessageRow {
                from: draft.from.as_str(),
                to: draft.to.as_str(),
                kind: "",
                subject: &draft.subject,
                body: &draft.body,
                state: 0,
                conversation: None,
            });
        }
        commit.execute([]).expect("a commit");
    }
    clock.stop()
}

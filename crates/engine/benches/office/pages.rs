//! Pages of mail and of turns at several sizes, search, and opening a large database.

use std::path::PathBuf;
use std::time::Instant;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, RealmName, TurnId};
use posthaste_engine::views::{InboxQuery, SearchOrder, SearchQuery, TurnQuery, View};
use posthaste_engine::{Engine, EngineError};
use tempfile::TempDir;

use crate::db::{COMMON_WORD, READER, Rng, agent, conversation, id_at, seed};
use crate::frame::{Options, Report, Samples, median};

/// A seeded database.
pub struct Database {
    pub messages: usize,
    pub path: PathBuf,
}

/// Creates a database of every size.
pub fn create_databases(options: &Options, directory: &TempDir, report: &mut Report) -> Vec<Database> {
    let sizes: &[usize] = if options.quick { &[10_000, 100_000] } else { &[10_000, 100_000, 1_000_000] };
    let mut rows = Vec::new();
    let create = |&messages: &usize| {
        let path = directory.path().join(format!("{messages}.db"));
        let took = seed(&path, messages).as_secs_f64();
        let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
        rows.push((
            format!("{messages} messages"),
            vec![took, bytes as f64 / 1e6, bytes as f64 / messages as f64],
        ));
        Database { messages, path }
    };
    let databases = sizes.iter().map(create).collect();
    report.table("made for the measurements", &["seconds", "MB", "bytes each"], &rows);
    databases
}

pub fn open(database: &Database) -> (Engine, posthaste_engine::EngineGuard) {
    let realm = RealmName::new("bench").expect("a realm name");
    Engine::open(&database.path, realm, Limits::default()).expect("db")
}

type Read = Box<dyn Fn(&View<'_>, usize, &mut Rng) -> Result<usize, EngineError>>;

/// The reads, and how many rows each must return.
fn reads() -> Vec<(&'static str, usize, Read)> {
    let inbox = |query: InboxQuery| -> Read {
        Box::new(move |view, _, _| {
            let caller = Caller::member(agent(READER), "bench");
            Ok(view.inbox(&caller, &agent(READER), &query)?.items.len())
        })
    };
    let turns = |query: TurnQuery| -> Read {
        Box::new(move |view, _, _| {
            let caller = Caller::member(agent(READER), "bench");
            Ok(view.turns(&caller, &conversation(), &query)?.items.len())
        })
    };
    let mail = InboxQuery { limit: 50, ..InboxQuery::default() };
    let said = TurnQuery { limit: 50, ..TurnQuery::default() };
    let deep = mail.clone();
    let middle = said.clone();
    vec![
        ("inbox newest", 50, inbox(mail.clone())),
        ("inbox unread", 50, inbox(InboxQuery { unread: true, ..mail.clone() })),
        ("inbox by kind", 50, inbox(InboxQuery { kinds: vec!["task".into()], ..mail.clone() })),
        (
            "inbox anywhere by key",
            50,
            Box::new(move |view, messages, rng| {
                // Every message takes two seqs: its own and its turn's.
                let before = Some(i64::try_from(500 + rng.below(2 * messages - 500)).unwrap_or(0));
                let caller = Caller::member(agent(READER), "bench");
                Ok(view.inbox(&caller, &agent(READER), &InboxQuery { before, ..deep.clone() })?.items.len())
            }),
        ),
        ("turns first", 50, turns(said.clone())),
        ("turns last", 50, turns(TurnQuery { newest_first: true, ..said.clone() })),
        (
            "turns anywhere by key",
            50,
            Box::new(move |view, messages, rng| {
                let seq = 1 + 2 * i64::try_from(rng.below(messages - 100)).unwrap_or(0);
                let after = Some(TurnId(id_at(1_700_000_000_000 + seq, seq + 1)));
                let caller = Caller::member(agent(READER), "bench");
                Ok(view.turns(&caller, &conversation(), &TurnQuery { after, ..middle.clone() })?.items.len())
            }),
        ),
        ("turns by author", 50, turns(TurnQuery { author: Some(agent(7)), ..said.clone() })),
        ("turns by absent author", 0, turns(TurnQuery { author: Some(agent(99)), ..said.clone() })),
        ("turns of absent type", 0, turns(TurnQuery { content_types: vec!["event".into()], ..said.clone() })),
        (
            "turns by author of absent type",
            0,
            turns(TurnQuery { author: Some(agent(7)), content_types: vec!["event".into()], ..said }),
        ),
    ]
}

pub fn lists(options: &Options, databases: &[Database], report: &mut Report) {
    let rounds = if options.quick { 300 } else { 1_000 };
    let open: Vec<_> = databases.iter().map(|database| (database.messages, open(database))).collect();
    let mut rows = Vec::new();
    let mut worst = (0.0, String::new());
    for (name, expected, read) in reads() {
        let mut samples: Vec<Samples> = open.iter().map(|_| Samples::default()).collect();
        let mut rng = Rng::new();
        for round in 0..rounds + 20 {
            for ((messages, (engine, _)), samples) in open.iter().zip(&mut samples) {
                let started = Instant::now();
                let found = engine.read_blocking(|view| read(view, *messages, &mut rng)).expect("a page");
                let took = started.elapsed();
                assert_eq!(found, expected, "{name} at {messages}");
                if round >= 20 {
                    samples.note(took);
                }
            }
        }
        let middle: Vec<f64> = samples.iter().map(|samples| samples.percentile(50.0)).collect();
        let ratio = middle[middle.len() - 1] / middle[0];
        if ratio > worst.0 {
            worst = (ratio, name.to_owned());
        }
        let mut numbers: Vec<f64> =
            samples.iter().flat_map(|samples| [samples.percentile(50.0), samples.percentile(99.0)]).collect();
        numbers.push(ratio);
        rows.push((name.to_owned(), numbers));
    }
    let columns: Vec<String> = open
        .iter()
        .flat_map(|(messages, _)| {
            let size = if *messages < 1_000_000 { format!("{}k", messages / 1_000) } else { "1M".to_owned() };
            [format!("{size} p50 us"), format!("{size} p99 us")]
        })
        .chain(["ratio".to_owned()])
        .collect();
    report.table("pages of 50", &columns.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
    report.bar(
        &format!("a page at the largest size over one at the smallest ({})", worst.1),
        worst.0,
        1.5,
        true,
    );
    for (_, (engine, guard)) in open {
        drop(engine);
        guard.join();
    }
}

pub fn search(options: &Options, database: &Database, report: &mut Report) {
    let rounds = if options.quick { 30 } else { 100 };
    let (engine, guard) = open(database);
    let cases = [
        ("common word, newest first", COMMON_WORD, SearchOrder::Newest),
        ("common word, best first", COMMON_WORD, SearchOrder::Best),
        ("rare word, newest first", "needle", SearchOrder::Newest),
        ("rare word, best first", "needle", SearchOrder::Best),
        ("two words, newest first", "dan kalo", SearchOrder::Newest),
    ];
    // The second caller has one message in two hundred: its searches skip many matches that it may not see.
    let callers = [
        ("sees half", Caller::member(agent(READER), "bench")),
        ("sees one in 200", Caller::member(agent(50), "bench")),
        ("sees all", Caller::office()),
    ];
    let mut rows = Vec::new();
    for (who, caller) in &callers {
        for (name, text, order) in cases {
            let query = SearchQuery { text: text.to_owned(), order, limit: 50, ..SearchQuery::default() };
            let mut samples = Samples::default();
            let mut hits = 0;
            for round in 0..rounds + 3 {
                let started = Instant::now();
                hits = engine.read_blocking(|view| view.search(caller, &query)).expect("a search").hits.len();
                if round >= 3 {
                    samples.note(started.elapsed());
                }
            }
            let numbers = vec![samples.percentile(50.0), samples.percentile(99.0), hits as f64];
            rows.push((format!("{name} ({who})"), numbers));
        }
    }
    let title = format!("search in {} messages", database.messages);
    report.table(&title, &["p50 us", "p99 us", "hits"], &rows);
    drop(engine);
    guard.join();
}

pub fn start_up(database: &Database, report: &mut Report) {
    let times: Vec<f64> = (0..15)
        .map(|_| {
            let started = Instant::now();
            let (engine, guard) = open(database);
            let took = started.elapsed().as_secs_f64() * 1e3;
            drop(engine);
            guard.join();
            took
        })
        .collect();
    let worst = times.iter().copied().fold(0.0, f64::max);
    let rows = [(format!("{} messages", database.messages), vec![median(times), worst])];
    report.table("start-up", &["median ms", "worst ms"], &rows);
    report.bar("start-up, worst of 15, ms", worst, 300.0, true);
}

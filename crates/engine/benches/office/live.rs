//! Fan-out to subscribers, and memory.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, Json, RealmName};
use posthaste_engine::store::open_writer;
use posthaste_engine::verbs::office::Announce;
use posthaste_engine::{Engine, Filter, Start, Step};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::db::{AGENTS, agent, enter_agents};
use crate::frame::{Clock, Options, Report, Samples, memory};
use crate::pages::{Database, open};

fn announcement() -> Announce {
    Announce { word: "bench".to_owned(), data: Json::new("{\"n\":1}").expect("JSON"), to: None }
}

pub fn fan_out(options: &Options, runtime: &Runtime, report: &mut Report) {
    let rounds = if options.quick { 20 } else { 100 };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("live.db");
    enter_agents(&open_writer(&path).expect("db"));
    let mut rows = Vec::new();
    for followers in [1, 100, 10_000] {
        let realm = RealmName::new("bench").expect("a realm name");
        let (engine, guard) = Engine::open(&path, realm, Limits::default()).expect("db");
        let (answered, last, each) = runtime.block_on(one_event_to(&engine, followers, rounds));
        rows.push((
            format!("{followers} followers"),
            vec![answered.percentile(50.0), last.percentile(50.0), last.percentile(99.0), each],
        ));
        drop(engine);
        guard.join();
    }
    let columns = ["answer us", "last p50 us", "last p99 us", "cpu us each"];
    report.table("one event to many", &columns, &rows);
}

/// Time from the call to its answer and to the last subscriber, and the CPU time for each delivery.
async fn one_event_to(engine: &Engine, followers: usize, rounds: usize) -> (Samples, Samples, f64) {
    let reached = Arc::new(AtomicUsize::new(0));
    let all = Arc::new(Notify::new());
    let mut tasks = Vec::new();
    for n in 0..followers {
        let caller = Caller::member(agent(n % AGENTS), "bench");
        let mut feed = engine.follow(&caller, Filter::everything(), Start::Now, 256).await.expect("a feed");
        let (reached, all) = (reached.clone(), all.clone());
        tasks.push(tokio::spawn(async move {
            while let Ok(Step::Event { .. }) = feed.next().await {
                if (reached.fetch_add(1, Ordering::AcqRel) + 1) % followers == 0 {
                    all.notify_one();
                }
            }
        }));
    }
    let (mut answered, mut last) = (Samples::default(), Samples::default());
    let office = Caller::office();
    // Two rounds that do not count, until every subscriber waits.
    for _ in 0..2 {
        engine.submit(&office, announcement()).await.expect("an announcement");
        all.notified().await;
    }
    let clock = Clock::start();
    for _ in 0..rounds {
        let started = Instant::now();
        engine.submit(&office, announcement()).await.expect("an announcement");
        answered.note(started.elapsed());
        all.notified().await;
        last.note(started.elapsed());
    }
    let cpu = clock.stop().cpu.as_secs_f64() * 1e6 / (rounds * followers) as f64;
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        drop(task.await);
    }
    (answered, last, cpu)
}

/// Memory is measured in a new process, which has done nothing else.
pub fn footprint(database: &Database, report: &mut Report) {
    let this = std::env::current_exe().expect("this program");
    let ask = |what: &str| -> Vec<f64> {
        let answer = Command::new(&this).arg(what).arg(&database.path).output().expect("a child");
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let idle = ask("--child-idle");
    let mega = |bytes: f64| bytes / f64::from(1 << 20);
    let rows = [
        ("before it is opened".to_owned(), vec![mega(idle[0]), mega(idle[1])]),
        ("open and idle".to_owned(), vec![mega(idle[2]), mega(idle[3])]),
        ("after 20,000 sends".to_owned(), vec![mega(idle[4]), mega(idle[5])]),
    ];
    report.table(&format!("memory, {} messages", database.messages), &["own MB", "resident MB"], &rows);
    let live = ask("--child-live");
    let rows = [("a feed".to_owned(), vec![live[0]]), ("a mailbox stream".to_owned(), vec![live[1]])];
    report.table("memory for each stream", &["bytes"], &rows);
    report.bar("idle memory, MB", mega(idle[3]), 40.0, true);
}

/// The measurements in the child process.
pub fn child(what: &str, path: &Path, runtime: &Runtime) {
    let before = memory();
    let database = Database { messages: 0, path: path.to_owned() };
    let (engine, guard) = open(&database);
    if what == "--child-idle" {
        let idle = memory();
        runtime.block_on(crate::sends::burst(&engine, 20_000));
        let after = memory();
        println!("{} {} {} {} {} {}", before.0, before.1, idle.0, idle.1, after.0, after.1);
    } else {
        let each = 5_000_usize;
        let at_start = memory().0;
        let caller = Caller::member(agent(0), "bench");
        let mut feeds = Vec::new();
        for _ in 0..each {
            let feed = runtime.block_on(engine.follow(&caller, Filter::everything(), Start::Now, 256));
            feeds.push(feed.expect("a feed"));
        }
        let followed = memory().0;
        let mut streams = Vec::new();
        for n in 0..each {
            // Several streams may share an agent: what is measured is the stream.
            let name = agent(1 + n % (AGENTS - 1));
            let stream = runtime.block_on(engine.attach(&Caller::office(), &name));
            streams.push(stream.expect("a mailbox stream"));
        }
        let attached = memory().0;
        let share = |bytes: u64| bytes as f64 / each as f64;
        println!("{} {}", share(followed.saturating_sub(at_start)), share(attached.saturating_sub(followed)));
    }
    drop(engine);
    guard.join();
}

//! Thirty agents at once over HTTP, at a hundred times the load at which users of the peer report corruption.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

const APP: &str = "/srv/app";
const AGENTS: usize = 30;
/// 300 messages an hour, times a hundred, for all agents together.
const PER_HOUR: u64 = 30_000;

/// Twenty seconds of it, or as many as POSTHASTE_MCP_LOAD_SECONDS says: no call fails, nothing is lost or doubled, the
/// database is sound, memory stays flat. For longer runs, without the timeout of the test runner:
/// `POSTHASTE_MCP_LOAD_SECONDS=300 cargo test -p posthaste --test it thirty_agents -- --nocapture`, with
/// POSTHASTE_MCP_LOAD_PROGRAM for a release build.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_agents_lose_nothing() {
    let seconds =
        std::env::var("POSTHASTE_MCP_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let dir = TestDir::new();
    let office = match std::env::var_os("POSTHASTE_MCP_LOAD_PROGRAM") {
        Some(program) => Office::open_program(Path::new(&program), dir.path()),
        None => Office::open(dir.path()),
    };
    let mcp = Mcp::operator(&office);
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent_{n}")).collect();
    mcp.project(APP, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (start, length) = (Instant::now(), Duration::from_secs(seconds));
    // Each waits this long between two messages, so that all together keep the pace.
    let pause = Duration::from_secs_f64(AGENTS as f64 * 3600.0 / PER_HOUR as f64);
    let agents = (0..AGENTS).map(|n| tokio::spawn(work(mcp.clone(), n, names.clone(), start, length, pause)));
    let agents: Vec<_> = agents.collect();
    // Every ten seconds of a long run, and some times in a short one.
    let every = (length / 8).min(Duration::from_secs(10));
    let pid = office.pid();
    let sampler = tokio::spawn(async move {
        let mut samples = Vec::new();
        while start.elapsed() + every <= length {
            tokio::time::sleep(every).await;
            samples.push((start.elapsed().as_secs(), memory(pid)));
        }
        samples
    });
    let mut sent = HashSet::new();
    for agent in agents {
        for id in agent.await.unwrap() {
            assert!(sent.insert(id), "{id} was given twice");
        }
    }
    let samples = sampler.await.unwrap();
    println!("seconds and resident KiB: {samples:?}");
    let (early, late) = (samples[samples.len() / 3].1, memory(pid));
    let expected = PER_HOUR * seconds / 3600;
    assert!(
        sent.len() as u64 * 10 >= expected * 6,
        "{} of about {expected} messages in {:?}",
        sent.len(),
        start.elapsed()
    );
    let mut found = HashSet::new();
    for name in &names {
        let inbox =
            mcp.call("fetch_inbox", json!({ "project_key": APP, "agent_name": name, "limit": 1000 })).await;
        for message in inbox.as_array().unwrap() {
            assert!(found.insert(message["id"].as_i64().unwrap()), "{message} is there twice");
        }
    }
    // Longer runs leave more in an inbox than one page shows.
    if sent.len() < 10_000 {
        assert_eq!(found, sent);
    }
    // After a third of a long run everything that is kept is there: caches, tables, threads.
    let growth = if seconds >= 120 { early / 10 + 2_048 } else { early / 2 + 8_192 };
    assert!(late < early + growth, "memory grew from {early} to {late} KiB: {samples:?}");
    assert_eq!(office.close(), Some(0));
    let database = rusqlite::Connection::open(dir.path().join("realms/srv-app.db")).unwrap();
    let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    println!("{} messages of {AGENTS} agents in {:?}; {early} then {late} KiB", sent.len(), start.elapsed());
}

/// What an agent does all day: writes, reads, acknowledges, reserves and releases.
async fn work(
    mcp: Mcp,
    n: usize,
    names: Vec<String>,
    start: Instant,
    length: Duration,
    pause: Duration,
) -> Vec<i64> {
    let me = names[n].clone();
    let mut sent = Vec::new();
    // They do not all start at once.
    tokio::time::sleep(pause.mul_f64(n as f64 / AGENTS as f64)).await;
    let mut round = 0;
    while start.elapsed() < length {
        round += 1;
        let to = &names[(n + round) % AGENTS];
        if *to != me {
            sent.push(mcp.send(APP, &me, to, &format!("{me} {round}")).await);
        }
        let inbox = mcp
            .call(
                "fetch_inbox",
                json!({ "project_key": APP, "agent_name": me, "limit": 5, "unread_only": true }),
            )
            .await;
        if let Some(message) = inbox.as_array().and_then(|messages| messages.first()) {
            let given = json!({ "project_key": APP, "agent_name": me, "message_id": message["id"] });
            let done: Value = mcp.call("acknowledge_message", given).await;
            assert_eq!(done["acknowledged"], true);
        }
        let paths =
            json!({ "project_key": APP, "agent_name": me, "paths": [format!("src/{}/**", round % 7)] });
        mcp.call("macro_file_reservation_cycle", {
            let mut paths = paths;
            paths["auto_release"] = true.into();
            paths
        })
        .await;
        tokio::time::sleep_until((start + pause.mul_f64(round as f64 + n as f64 / AGENTS as f64)).into())
            .await;
    }
    sent
}

/// Resident memory of a process, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

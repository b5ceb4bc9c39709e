//! `posthaste-load soak`: a mixed fleet at every door of a server that is killed now and then, and checks of all that must
//! hold meanwhile.
//!
//! One file per door runs its agents; [`ledger`] has the rules about mail, [`audit`] reads the event log and compares
//! counters, [`watch`] samples memory and handles.

mod airc;
mod audit;
mod files;
mod follower;
mod http;
mod ledger;
mod map;
mod mcp;
mod own;
mod plan;
mod report;
mod rng;
mod server;
mod setup;
mod shared;
mod swarm;
mod tag;
mod watch;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::plan::{Door, Plan};
use self::report::Report;
use self::server::{Place, TestServer};
use self::setup::Fleet;
use self::shared::Shared;
use self::watch::{Sample, Trend};
use crate::args::SoakArgs;
use crate::runtime;
use posthaste::cli::exit::{Exit, Failure};
use posthaste::cli::output::Output;

/// The share of the time in which the server is killed. In the rest it is not, and its memory is watched.
const KILL_SHARE: f64 = 0.6;
/// How long pending work may take once agents begin nothing new.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long agents may take to leave.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(given: &SoakArgs, output: &Output) -> Result<(), Failure> {
    let (directory, temporary) = match &given.data {
        Some(data) => {
            std::fs::create_dir_all(data)?;
            (data.clone(), None)
        }
        None => {
            let directory = tempfile::Builder::new().prefix("posthaste-soak-").tempdir()?;
            (directory.path().to_owned(), Some(directory))
        }
    };
    let stop = CancellationToken::new();
    let report = runtime()?.block_on(async {
        tokio::select! {
            report = soak(given, &directory, &stop, output) => report,
            () = interrupted_twice(&stop) => Err(Failure::new(Exit::Interrupted, "interrupted; nothing was checked")),
        }
    });
    let kept = given.keep || (temporary.is_none() && report.as_ref().is_ok_and(|report| !report.ok));
    tidy_up(&directory, temporary, kept)?;
    let mut report = report?;
    report.kept = kept.then(|| directory.display().to_string());
    report.show(output)?;
    match report.finding_count {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Unhealthy, "1 finding")),
        many => Err(Failure::new(Exit::Unhealthy, format!("{many} findings"))),
    }
}

/// Cancels the work at the first Ctrl-C, and returns at the second.
async fn interrupted_twice(stop: &CancellationToken) {
    for _ in 0..2 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        stop.cancel();
    }
}

fn tidy_up(directory: &Path, temporary: Option<tempfile::TempDir>, keep: bool) -> Result<(), Failure> {
    match temporary {
        Some(temporary) if keep => drop(temporary.keep()),
        Some(temporary) => temporary.close()?,
        None if keep => {}
        // Only what was made here; the directory is the user's.
        None => {
            for name in ["office", "mail"] {
                std::fs::remove_dir_all(directory.join(name))?;
            }
            for name in ["swarm.json", "office.log"] {
                std::fs::remove_file(directory.join(name))?;
            }
        }
    }
    Ok(())
}

async fn soak(
    given: &SoakArgs,
    directory: &Path,
    stop: &CancellationToken,
    output: &Output,
) -> Result<Report, Failure> {
    let lasts = Duration::from_secs(given.seconds.unwrap_or(given.minutes * 60));
    let kill_time = lasts.mul_f64(KILL_SHARE);
    let kills = given.kills.unwrap_or_else(|| u32::try_from(kill_time.as_secs() / 10).unwrap_or(u32::MAX));
    let place = Place::make(directory)?;
    let server = TestServer::open(&place).await?;
    let started = Instant::now();
    let bar = output.progress("soaking", lasts.as_secs());
    let base = Sample::take(server.process(), started, 0);
    let fleet =
        setup::prepare(&server, &place, Plan::new(given.agents, given.seed), given.seed, given.rate).await?;
    let shared = fleet.shared.clone();
    let gauges = gauges_at_start(&shared).await;
    let server = Arc::new(Mutex::new(server));

    let mut agents = enter(fleet);
    let (audited, auditing) = (Arc::new(audit::Place::default()), CancellationToken::new());
    let auditor = tokio::spawn(audit::read_events(shared.clone(), audited.clone(), auditing.clone()));
    let watching = CancellationToken::new();
    let watcher =
        tokio::spawn(sample_every_second(server.clone(), shared.clone(), watching.clone(), started));
    let kills_done = tokio::spawn(server::kill_at_random(server.clone(), shared.clone(), kills, kill_time));
    let begun = Instant::now();
    let interrupted = work(&shared, &bar, lasts, stop).await;
    let worked = begun.elapsed();
    shared.ending.cancel();
    // From here on there is no load, so samples of memory mean nothing.
    watching.cancel();
    let openings = kills_done.await?;
    bar.set_message("coming to rest");

    // If the server did not start again, the other checks would only report that again.
    let mut counters = Default::default();
    if openings.is_ok() {
        drain(&shared, &audited).await;
        counters = match tokio::time::timeout(DRAIN_TIMEOUT, audit::compare(&shared, &audited)).await {
            Ok(Ok(counters)) => counters,
            _ => {
                shared.ledger.find("counters: no answer", "the server did not answer".to_owned());
                Default::default()
            }
        };
    }
    let samples = watcher.await?;
    auditing.cancel();
    auditor.await?;
    shared.closing.cancel();
    if tokio::time::timeout(LEAVE_TIMEOUT, async { while agents.join_next().await.is_some() {} })
        .await
        .is_err()
    {
        shared.ledger.find("fleet: does not leave", format!("{} agents hang", agents.len()));
        agents.abort_all();
    }
    shared.ledger.close(|to| shared.plan.reads_all(to));

    let server = Arc::into_inner(server).map(Mutex::into_inner);
    let mut rest = None;
    if let (Some(server), Ok(_)) = (server, &openings) {
        rest = wait_for_handles(&shared, &server, base, started).await;
        wait_for_gauges(&shared, &gauges).await;
        if let Some(problem) = server.close().await? {
            shared.ledger.find("server: did not close in order", problem);
        }
    }
    doctor(&shared, &place).await?;
    let trend = Trend::of(&samples);
    if let Some(problem) = trend.as_ref().and_then(Trend::problem) {
        shared.ledger.find("server: does not stay flat", problem);
    }
    let warnings = read_log(&shared, &place.log)?;
    bar.finish_and_clear();
    let (finding_count, findings) = shared.ledger.findings();
    let openings = openings.unwrap_or_default();
    Ok(Report {
        ok: finding_count == 0,
        interrupted,
        seed: given.seed,
        seconds: worked.as_secs(),
        doors: shared.by_door(),
        messages: shared.ledger.totals(),
        actions: shared.actions.all(),
        kills: openings.len(),
        opened_again_ms: openings.iter().map(|took| took.as_millis() as u64).collect(),
        counters,
        refusals: shared.refusals(),
        memory: trend,
        at_rest: base.zip(rest).map(|(base, rest)| [base, rest]),
        most: samples.iter().max_by_key(|sample| sample.sockets).copied(),
        warnings_in_log: warnings,
        own_bytes: super::clients::Process { id: Some(std::process::id()) }.resident_bytes(),
        finding_count,
        findings,
        kept: None,
    })
}

/// Starts every agent at its door.
fn enter(fleet: Fleet) -> JoinSet<()> {
    let Fleet { shared, mut signers, mail } = fleet;
    let mut agents = JoinSet::new();
    for (number, agent) in (0_u32..).zip(&shared.plan.agents) {
        let shared = shared.clone();
        match agent.door {
            Door::Map => agents.spawn(map::live(shared, number)),
            Door::Visitor => agents.spawn(map::visit(shared, number)),
            Door::Follower => agents.spawn(follower::live(shared, number)),
            Door::Mcp => agents.spawn(mcp::live(shared, number)),
            Door::Own => agents.spawn(own::live(shared, number)),
            Door::Swarm => agents.spawn(swarm::live(shared, number)),
            Door::Files => agents.spawn(files::live(shared, number, mail.clone())),
            Door::Airc => match signers.remove(&number) {
                Some(signer) => agents.spawn(airc::live(shared, number, signer)),
                None => continue,
            },
        };
    }
    agents
}

/// Lets the fleet work for this time, or until it is stopped. True for the latter.
async fn work(shared: &Shared, bar: &ProgressBar, lasts: Duration, stop: &CancellationToken) -> bool {
    let end = tokio::time::Instant::now() + lasts;
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            () = stop.cancelled() => return true,
            () = tokio::time::sleep_until(end) => return false,
            _ = ticks.tick() => {
                let left = end.saturating_duration_since(tokio::time::Instant::now());
                bar.set_position(lasts.saturating_sub(left).as_secs());
                let (totals, findings) = (shared.ledger.totals(), shared.ledger.count());
                bar.set_message(format!(
                    "{} messages, {} kills, {findings} findings",
                    totals.in_database,
                    shared.epoch()
                ));
            }
        }
    }
}

/// Takes a sample of the server's process every second.
async fn sample_every_second(
    server: Arc<Mutex<TestServer>>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    started: Instant,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    while !stop.is_cancelled() {
        let process = server.lock().await.process();
        samples.extend(Sample::take(process, started, shared.epoch()));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
    samples
}

/// Waits until all calls are answered, the auditor has read to the end of the event log and found what was acknowledged, and
/// all durable readers have their mail.
async fn drain(shared: &Shared, audited: &audit::Place) {
    let end = tokio::time::Instant::now() + DRAIN_TIMEOUT;
    let mut quiet = 0;
    while quiet < 3 && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let ledger = &shared.ledger;
        let still = ledger.pending() + ledger.owed() + ledger.unread(|to| shared.plan.reads_all(to));
        quiet = if still == 0 && audited.caught_up(DRAIN_TIMEOUT).await { quiet + 1 } else { 0 };
    }
}

/// Waits until the server's handles are as few as before the fleet came.
async fn wait_for_handles(
    shared: &Shared,
    server: &TestServer,
    base: Option<Sample>,
    started: Instant,
) -> Option<Sample> {
    let base = base?;
    let mailboxes = std::fs::read_dir(&shared.mail).map_or(0, |entries| entries.count() as u64);
    let end = Instant::now() + watch::SETTLE_TIMEOUT;
    loop {
        let now = Sample::take(server.process(), started, shared.epoch())?;
        if watch::is_at_rest(&base, &now, mailboxes) {
            return Some(now);
        }
        if Instant::now() > end {
            let text = format!(
                "{} sockets and {} files, {} and {} before the fleet came; {mailboxes} mailboxes",
                now.sockets, now.files, base.sockets, base.files
            );
            shared.ledger.find("server: handles do not come back", text);
            return Some(now);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The server's gauges once it has noticed that the connections of the setup are closed.
async fn gauges_at_start(shared: &Shared) -> audit::Gauges {
    let end = Instant::now() + watch::SETTLE_TIMEOUT;
    loop {
        let now = audit::Gauges::read(shared).await.unwrap_or_default();
        if now.attached == 0 || Instant::now() > end {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that the server has no attached agents or followers left, and no internal failures.
async fn wait_for_gauges(shared: &Shared, base: &audit::Gauges) {
    let end = Instant::now() + watch::SETTLE_TIMEOUT;
    loop {
        let now = audit::Gauges::read(shared).await;
        let problem = match &now {
            Ok(now) => now.problem(base),
            Err(_) => Some("the metrics cannot be read".to_owned()),
        };
        match problem {
            None => return,
            Some(problem) if Instant::now() > end => return shared.ledger.find("server: gauges", problem),
            Some(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Runs `posthaste doctor` on the data directory.
async fn doctor(shared: &Shared, place: &Place) -> Result<(), Failure> {
    let mut command = tokio::process::Command::new(crate::program::posthaste());
    command.arg("--data").arg(&place.data).arg("doctor").arg("--mail-dir").arg(&place.mail);
    let done = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stdout);
        let problems: Vec<&str> = said.lines().filter(|line| line.contains("problem")).collect();
        shared.ledger.find("doctor: not well", format!("{}: {}", done.status, problems.join("; ")));
    }
    Ok(())
}

/// Errors in the server's log are findings; warnings are counted.
fn read_log(shared: &Shared, log: &PathBuf) -> Result<u64, Failure> {
    let mut warnings = 0;
    for line in BufReader::new(File::open(log)?).lines() {
        let line = line?;
        match line.contains(r#""level":"ERROR""#) || !line.starts_with('{') {
            true => shared.ledger.find("server: an error in its log", line.chars().take(600).collect()),
            false => warnings += 1,
        }
    }
    Ok(warnings)
}

//! `posthaste-load soak`: a mixed fleet at every door of an office that is killed now and then, and everything that must hold
//! meanwhile.
//!
//! One file per door drives its agents; [`ledger`] knows the rules about mail, [`audit`] reads the books and compares
//! counters, [`watch`] looks at memory and handles.

mod airc;
mod audit;
mod chance;
mod field;
mod files;
mod follower;
mod ledger;
mod map;
mod mark;
mod mcp;
mod office;
mod own;
mod phone;
mod plan;
mod report;
mod setup;
mod swarm;
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

use self::field::Field;
use self::office::{Office, Place};
use self::plan::{Door, Plan};
use self::report::Report;
use self::setup::Fleet;
use self::watch::{Sample, Trend};
use crate::args::SoakArgs;
use crate::runtime;
use posthaste::cli::exit::{Exit, Failure};
use posthaste::cli::output::Output;

/// The share of the time in which the office is killed; the rest it lives through, and its memory is watched.
const STORMY: f64 = 0.6;
/// How long everything may take to come to rest once nobody begins anything new.
const DRAIN: Duration = Duration::from_secs(60);
/// How long everybody may take to leave.
const LEAVING: Duration = Duration::from_secs(30);

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
    let told = CancellationToken::new();
    let report = runtime()?.block_on(async {
        tokio::select! {
            report = soak(given, &directory, &told, output) => report,
            () = interrupted_twice(&told) => Err(Failure::new(Exit::Interrupted, "interrupted; nothing was checked")),
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

/// The first Ctrl-C ends the work, whenever it comes; the second everything.
async fn interrupted_twice(told: &CancellationToken) {
    for _ in 0..2 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        told.cancel();
    }
}

fn tidy_up(directory: &Path, temporary: Option<tempfile::TempDir>, keep: bool) -> Result<(), Failure> {
    match temporary {
        Some(temporary) if keep => drop(temporary.keep()),
        Some(temporary) => temporary.close()?,
        None if keep => {}
        // Only what was made here; the directory was somebody else's idea.
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
    told: &CancellationToken,
    output: &Output,
) -> Result<Report, Failure> {
    let lasts = Duration::from_secs(given.seconds.unwrap_or(given.minutes * 60));
    let stormy = lasts.mul_f64(STORMY);
    let kills = given.kills.unwrap_or_else(|| u32::try_from(stormy.as_secs() / 10).unwrap_or(u32::MAX));
    let place = Place::make(directory)?;
    let office = Office::open(&place).await?;
    let started = Instant::now();
    let bar = output.progress("soaking", lasts.as_secs());
    let base = Sample::take(office.process(), started, 0);
    let fleet =
        setup::prepare(&office, &place, Plan::new(given.agents, given.seed), given.seed, given.rate).await?;
    let field = fleet.field.clone();
    let gauges = before_anybody(&field).await;
    let office = Arc::new(Mutex::new(office));

    let mut agents = enter(fleet);
    let (audited, auditing) = (Arc::new(audit::Place::default()), CancellationToken::new());
    let auditor = tokio::spawn(audit::read_history(field.clone(), audited.clone(), auditing.clone()));
    let watching = CancellationToken::new();
    let watcher = tokio::spawn(look_on(office.clone(), field.clone(), watching.clone(), started));
    let storm = tokio::spawn(office::storm(office.clone(), field.clone(), kills, stormy));
    let begun = Instant::now();
    let interrupted = work(&field, &bar, lasts, told).await;
    let worked = begun.elapsed();
    field.ending.cancel();
    // What comes now is no load, and says nothing about memory.
    watching.cancel();
    let openings = storm.await?;
    bar.set_message("coming to rest");

    // If the office did not open again, everything else would only say so again.
    let mut counters = Default::default();
    if openings.is_ok() {
        drain(&field, &audited).await;
        counters = match tokio::time::timeout(DRAIN, audit::compare(&field, &audited)).await {
            Ok(Ok(counters)) => counters,
            _ => {
                field.ledger.find("counters: not told", "the office did not answer".to_owned());
                Default::default()
            }
        };
    }
    let samples = watcher.await?;
    auditing.cancel();
    auditor.await?;
    field.closing.cancel();
    if tokio::time::timeout(LEAVING, async { while agents.join_next().await.is_some() {} }).await.is_err() {
        field.ledger.find("fleet: does not leave", format!("{} agents hang", agents.len()));
        agents.abort_all();
    }
    field.ledger.close(|to| field.plan.reads_all(to));

    let office = Arc::into_inner(office).map(Mutex::into_inner);
    let mut rest = None;
    if let (Some(office), Ok(_)) = (office, &openings) {
        rest = come_to_rest(&field, &office, base, started).await;
        come_allow_no_recipients(&field, &gauges).await;
        if let Some(problem) = office.close().await? {
            field.ledger.find("office: did not close in order", problem);
        }
    }
    doctor(&field, &place).await?;
    let trend = Trend::of(&samples);
    if let Some(problem) = trend.as_ref().and_then(Trend::problem) {
        field.ledger.find("office: does not stay flat", problem);
    }
    let warnings = read_log(&field, &place.log)?;
    bar.finish_and_clear();
    let (finding_count, findings) = field.ledger.findings();
    let openings = openings.unwrap_or_default();
    Ok(Report {
        ok: finding_count == 0,
        interrupted,
        seed: given.seed,
        seconds: worked.as_secs(),
        doors: field.by_door(),
        letters: field.ledger.totals(),
        deeds: field.deeds.all(),
        kills: openings.len(),
        opened_again_ms: openings.iter().map(|took| took.as_millis() as u64).collect(),
        counters,
        refusals: field.refusals(),
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

/// Everybody comes, each by the door that is its own.
fn enter(fleet: Fleet) -> JoinSet<()> {
    let Fleet { field, mut signers, mail } = fleet;
    let mut agents = JoinSet::new();
    for (number, agent) in (0_u32..).zip(&field.plan.agents) {
        let field = field.clone();
        match agent.door {
            Door::Map => agents.spawn(map::live(field, number)),
            Door::Visitor => agents.spawn(map::visit(field, number)),
            Door::Follower => agents.spawn(follower::live(field, number)),
            Door::Mcp => agents.spawn(mcp::live(field, number)),
            Door::Own => agents.spawn(own::live(field, number)),
            Door::Swarm => agents.spawn(swarm::live(field, number)),
            Door::Files => agents.spawn(files::live(field, number, mail.clone())),
            Door::Airc => match signers.remove(&number) {
                Some(signer) => agents.spawn(airc::live(field, number, signer)),
                None => continue,
            },
        };
    }
    agents
}

/// Lets the fleet work for so long, or until it is told to end. True for the latter.
async fn work(field: &Field, bar: &ProgressBar, lasts: Duration, told: &CancellationToken) -> bool {
    let end = tokio::time::Instant::now() + lasts;
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            () = told.cancelled() => return true,
            () = tokio::time::sleep_until(end) => return false,
            _ = ticks.tick() => {
                let left = end.saturating_duration_since(tokio::time::Instant::now());
                bar.set_position(lasts.saturating_sub(left).as_secs());
                let (totals, findings) = (field.ledger.totals(), field.ledger.count());
                bar.set_message(format!(
                    "{} letters, {} kills, {findings} findings",
                    totals.in_books,
                    field.epoch()
                ));
            }
        }
    }
}

/// Looks at the office every second.
async fn look_on(
    office: Arc<Mutex<Office>>,
    field: Arc<Field>,
    stop: CancellationToken,
    started: Instant,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    while !stop.is_cancelled() {
        let process = office.lock().await.process();
        samples.extend(Sample::take(process, started, field.epoch()));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
    samples
}

/// Waits until every sender has heard, the auditor has come across what was acknowledged and read to the end, and every lasting reader has what is its own.
async fn drain(field: &Field, audited: &audit::Place) {
    let end = tokio::time::Instant::now() + DRAIN;
    let mut quiet = 0;
    while quiet < 3 && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let ledger = &field.ledger;
        let still = ledger.pending() + ledger.owed() + ledger.unread(|to| field.plan.reads_all(to));
        quiet = if still == 0 && audited.caught_up(DRAIN).await { quiet + 1 } else { 0 };
    }
}

/// Everybody has left: handles must come back to what they were before anybody came.
async fn come_to_rest(
    field: &Field,
    office: &Office,
    base: Option<Sample>,
    started: Instant,
) -> Option<Sample> {
    let base = base?;
    let mailboxes = std::fs::read_dir(&field.mail).map_or(0, |entries| entries.count() as u64);
    let end = Instant::now() + watch::SETTLING;
    loop {
        let now = Sample::take(office.process(), started, field.epoch())?;
        if watch::is_at_rest(&base, &now, mailboxes) {
            return Some(now);
        }
        if Instant::now() > end {
            let text = format!(
                "{} sockets and {} files, {} and {} before anybody came; {mailboxes} mailboxes",
                now.sockets, now.files, base.sockets, base.files
            );
            field.ledger.find("office: handles do not come back", text);
            return Some(now);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What the office counts once it has noticed that those who entered the fleet have gone again.
async fn before_anybody(field: &Field) -> audit::Gauges {
    let end = Instant::now() + watch::SETTLING;
    loop {
        let now = audit::Gauges::read(field).await.unwrap_or_default();
        if now.attached == 0 || Instant::now() > end {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Nobody waits for mail or follows any more, and nothing went wrong inside.
async fn come_allow_no_recipients(field: &Field, base: &audit::Gauges) {
    let end = Instant::now() + watch::SETTLING;
    loop {
        let now = audit::Gauges::read(field).await;
        let problem = match &now {
            Ok(now) => now.problem(base),
            Err(_) => Some("the metrics cannot be read".to_owned()),
        };
        match problem {
            None => return,
            Some(problem) if Instant::now() > end => return field.ledger.find("office: gauges", problem),
            Some(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// `posthaste doctor` on what is left, as anybody would run it.
async fn doctor(field: &Field, place: &Place) -> Result<(), Failure> {
    let mut command = tokio::process::Command::new(crate::program::posthaste());
    command.arg("--data").arg(&place.data).arg("doctor").arg("--mail-dir").arg(&place.mail);
    let done = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stdout);
        let problems: Vec<&str> = said.lines().filter(|line| line.contains("problem")).collect();
        field.ledger.find("doctor: not well", format!("{}: {}", done.status, problems.join("; ")));
    }
    Ok(())
}

/// Errors that the office wrote down are findings; warnings are counted.
fn read_log(field: &Field, log: &PathBuf) -> Result<u64, Failure> {
    let mut warnings = 0;
    for line in BufReader::new(File::open(log)?).lines() {
        let line = line?;
        match line.contains(r#""level":"ERROR""#) || !line.starts_with('{') {
            true => field.ledger.find("office: an error in its log", line.chars().take(600).collect()),
            false => warnings += 1,
        }
    }
    Ok(warnings)
}

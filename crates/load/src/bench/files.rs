//! `posthaste bench --files`: durable files per second beside the barest loop that makes one, and the way from a file
//! through the server to a file.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use posthaste_wire::control::{EventsParams, EventsResult, PageSize, RegisterParams, Seq};
use posthaste_wire::files::{Kind, Urgency};
use serde::Serialize;
use serde_json::Map;

use super::{BODY, message};
use crate::args::BenchArgs;
use crate::clients::{Connection, Server};
use crate::runtime;
use posthaste::cli::exit::{Exit, Failure};
use posthaste::cli::output::{Output, Style, Table};
use posthaste_files::{Draft, MailDir};
use posthaste_host::units::show_span;

/// Each way is measured in turns, so that other load on the machine affects all alike.
const ROUNDS_PER_WAY: u32 = 4;
/// Messages of a batch.
const BATCH: usize = 64;
/// Round trips through the server.
const TRIPS: usize = 200;

/// The figures of a number of writers into one mailbox.
#[derive(Serialize)]
struct Round {
    writers: u32,
    /// Create, write, sync, rename, sync the directory; nothing else.
    bare_per_second: f64,
    /// The same with names, checks, exact bytes and everything else that a send does.
    files_per_second: f64,
    ratio: f64,
    /// The same in batches that share a sync of the directory.
    batched_per_second: f64,
    batched_ratio: f64,
}

/// From a file that a peer drops, through the server and an agent that answers there, to the answer's file.
#[derive(Serialize)]
struct Trip {
    count: usize,
    /// Until an agent at the server has the message.
    in_p50_us: u64,
    in_p99_us: u64,
    /// From its answer until the answer's file is there.
    out_p50_us: u64,
    out_p99_us: u64,
    /// Both.
    p50_us: u64,
    p99_us: u64,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    files: &'a [Round],
    trip: &'a Trip,
}

pub(super) fn run(args: &BenchArgs, output: &Output) -> Result<(), Failure> {
    let directory = match &args.r#in {
        Some(place) => tempfile::tempdir_in(place)?,
        None => tempfile::tempdir()?,
    };
    let mut rounds = Vec::new();
    for &writers in &args.writers {
        rounds.push(round(directory.path(), writers, Duration::from_secs(args.seconds))?);
    }
    let trip = runtime()?.block_on(async {
        tokio::select! {
            trip = trips(directory.path()) => trip,
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    })?;
    show(&rounds, &trip, output)
}

/// One way of making durable files.
#[derive(Clone, Copy)]
enum Way {
    Bare,
    Sent,
    Batched,
}

fn round(directory: &Path, writers: u32, lasts: Duration) -> Result<Round, Failure> {
    let ways = [Way::Bare, Way::Sent, Way::Batched];
    let mut counts = [0_f64; 3];
    for turn in 0..ROUNDS_PER_WAY {
        for (way, count) in ways.into_iter().zip(&mut counts) {
            let place = directory.join(format!("{writers}-{turn}-{}", way as u8));
            *count += write_for(&place, writers, way, lasts / ROUNDS_PER_WAY)? / f64::from(ROUNDS_PER_WAY);
            // An emptied directory is not the next one's burden.
            fs::remove_dir_all(&place)?;
        }
    }
    let [bare, sent, batched] = counts;
    Ok(Round {
        writers,
        bare_per_second: bare,
        files_per_second: sent,
        ratio: sent / bare,
        batched_per_second: batched,
        batched_ratio: batched / bare,
    })
}

/// Files per second that `writers` threads make durable in one mailbox.
fn write_for(place: &Path, writers: u32, way: Way, lasts: Duration) -> Result<f64, Failure> {
    let mail = Arc::new(MailDir::open_or_make(place)?);
    // The mailbox is there before the clock runs, and the text is what a send writes.
    let first = mail.send(&draft(0))?;
    let text = fs::read(first.mailbox.path().join(&first.file))?;
    let (made, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let started = Instant::now();
    let threads: Vec<_> = (0..writers)
        .map(|writer| {
            let (mail, made, stop, text) = (mail.clone(), made.clone(), stop.clone(), text.clone());
            std::thread::spawn(move || -> Result<(), Failure> {
                let mailbox = mail.path().join("reader");
                let drafts: Vec<Draft> = (0..BATCH).map(|_| draft(writer)).collect();
                let mut n = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let count = match way {
                        Way::Bare => bare(&mailbox, writer, n, &text).map(|()| 1)?,
                        Way::Sent => mail.send(&drafts[0]).map(|_| 1)?,
                        Way::Batched => {
                            mail.send_all(&drafts).into_iter().collect::<Result<Vec<_>, _>>()?.len() as u64
                        }
                    };
                    n += count;
                    made.fetch_add(count, Ordering::Relaxed);
                }
                Ok(())
            })
        })
        .collect();
    std::thread::sleep(lasts);
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        match thread.join() {
            Ok(done) => done?,
            Err(_) => return Err(Failure::new(Exit::Failed, "a writer failed")),
        }
    }
    Ok(made.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

fn bare(mailbox: &Path, writer: u32, n: u64, text: &[u8]) -> std::io::Result<()> {
    let temp = mailbox.join(format!(".bare-{writer}-{n}.tmp"));
    let mut file = File::create_new(&temp)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temp, mailbox.join(format!("bare-{writer}-{n}.json")))?;
    File::open(mailbox)?.sync_all()
}

fn draft(writer: u32) -> Draft {
    Draft {
        from: format!("writer-{writer}"),
        to: "reader".to_owned(),
        kind: Kind::Coordination,
        urgency: Urgency::Normal,
        subject: "Ready for review".to_owned(),
        body: BODY.to_owned(),
        at: None,
        extra: Map::new(),
    }
}

async fn trips(directory: &Path) -> Result<Trip, Failure> {
    let mail_dir = directory.join("trips");
    let mail = MailDir::open_or_make(&mail_dir)?;
    mail.mailbox_or_make("asker")?;
    let flag = mail_dir.to_string_lossy().into_owned();
    let server = Server::start(&directory.join("office"), &["--mail-dir", &flag])?;
    let mut line = Connection::connect(&server.address, &server.token).await?;
    let entry = RegisterParams { id: Some("answerer".to_owned()), ..RegisterParams::default() };
    line.call("register", &entry).await?;
    let mut question = draft(0);
    (question.from, question.to) = ("asker".to_owned(), "answerer".to_owned());
    // Once round without counting: mailboxes are made and watched, agents entered.
    mail.send(&question)?;
    let mut cursor = wait_for_message(&mut line, 0).await?;
    let (mut inward, mut outward, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..TRIPS {
        let started = Instant::now();
        mail.send(&question)?;
        cursor = wait_for_message(&mut line, cursor).await?;
        let arrived = started.elapsed();
        let answer = message("answerer".to_owned(), "asker".to_owned(), &n.to_string())?;
        let asked = Instant::now();
        line.call("send", &answer).await?;
        while count(&mail_dir.join("asker"))? <= n {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        inward.push(micros(arrived));
        outward.push(micros(asked.elapsed()));
        both.push(micros(started.elapsed()));
    }
    server.stop()?;
    for times in [&mut inward, &mut outward, &mut both] {
        times.sort_unstable();
    }
    let rank = |times: &[u64], share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    Ok(Trip {
        count: TRIPS,
        in_p50_us: rank(&inward, 50),
        in_p99_us: rank(&inward, 99),
        out_p50_us: rank(&outward, 50),
        out_p99_us: rank(&outward, 99),
        p50_us: rank(&both, 50),
        p99_us: rank(&both, 99),
    })
}

/// Waits until a message from the mail directory is in the event log after `after`; returns its position.
async fn wait_for_message(line: &mut Connection, mut after: Seq) -> Result<Seq, Failure> {
    loop {
        let params = EventsParams {
            after: Some(after),
            kinds: vec!["message.sent".to_owned()],
            agents: vec!["asker".to_owned()],
            wait: 5_000,
            limit: PageSize(1),
            ..EventsParams::default()
        };
        let page: EventsResult = line.ask("events", &params).await?;
        after = page.cursor;
        if page.events.first().is_some_and(|event| event.actor == "asker") {
            return Ok(after);
        }
    }
}

fn count(mailbox: &Path) -> std::io::Result<usize> {
    let names = fs::read_dir(mailbox)?.filter_map(Result::ok);
    Ok(names.filter(|entry| entry.path().extension().is_some_and(|tail| tail == "json")).count())
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn show(rounds: &[Round], trip: &Trip, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&Report { files: rounds, trip });
    }
    let mut table = Table::new(["WRITERS", "BARE LOOP/S", "FILES/S", "SHARE", "BATCHED/S", "SHARE"]);
    for round in rounds {
        let cells = [
            round.writers.to_string(),
            format!("{:.0}", round.bare_per_second),
            format!("{:.0}", round.files_per_second),
            format!("{:.0} %", round.ratio * 100.0),
            format!("{:.0}", round.batched_per_second),
            format!("{:.0} %", round.batched_ratio * 100.0),
        ];
        table.row(cells, Style::Plain);
    }
    output.table(&table)?;
    let span = |micros: u64| show_span(Duration::from_micros(micros));
    let text = format!(
        "\nFrom a file through the server to a file, {} times: half within {}, all but one in a hundred within {}\n\
         (in: {} and {}; out: {} and {}).",
        trip.count,
        span(trip.p50_us),
        span(trip.p99_us),
        span(trip.in_p50_us),
        span(trip.in_p99_us),
        span(trip.out_p50_us),
        span(trip.out_p99_us),
    );
    Ok(output.line(&text)?)
}

//! `posthaste-load bench`: what this machine can do, through the whole server and beside a bare SQLite loop.

mod bare;
mod files;
mod map;
mod pages;
mod signed;
mod swarm;

use std::time::{Duration, Instant};

use posthaste_wire::control::{RegisterParams, SendParams, TokenCreateParams, TokenCreateResult, TokenRole};
use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::args::{BenchArgs, BenchDoor};
use crate::clients::{Connection, Process, Server, Signer};
use crate::runtime;
use posthaste::cli::exit::Failure;
use posthaste::cli::output::{Output, Style, Table};
use posthaste_host::units::{show_bytes, show_span};

/// The body of every message: about what an agent writes.
const BODY: &str = "The migration is done and the tests pass on both branches. Two files are left for you: the parser \
                    and its golden samples. Please look at the open question in the thread before you merge.";

/// One round: a number of requests in flight until the time is up.
#[derive(Serialize)]
struct Round {
    door: &'static str,
    in_flight: u32,
    messages: u64,
    per_second: f64,
    p50_us: u64,
    p99_us: u64,
    /// Of the server, user and system time together; absent where the system does not tell.
    server_cpu_us_per_message: Option<f64>,
    /// Of this program, which asks: the same cores paid for it, too.
    client_cpu_us_per_message: Option<f64>,
    server_bytes: Option<u64>,
    /// A loop that writes the same rows in transactions of `in_flight` messages, without any server; absent for tasks.
    bare_per_second: Option<f64>,
    ratio: Option<f64>,
}

pub(super) fn run(args: &BenchArgs, output: &Output) -> Result<(), Failure> {
    if args.files {
        return files::run(args, output);
    }
    let directory = tempfile::tempdir()?;
    if args.map.is_some() {
        return run_map(args, directory.path(), output);
    }
    let rounds = runtime()?.block_on(async {
        tokio::select! {
            rounds = measure(args, directory.path(), output) => rounds,
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    })?;
    show(&rounds, output)
}

/// Measures a MAP server: the one at the given address, or a server of this program's own.
fn run_map(args: &BenchArgs, directory: &std::path::Path, output: &Output) -> Result<(), Failure> {
    let own = match args.map.clone().flatten() {
        Some(url) => Err(url),
        None => Ok(Server::start(&directory.join("office"), &[])?),
    };
    let process = own.as_ref().map_or(Process { id: args.pid }, Server::process);
    let mut shelves = Vec::new();
    if own.is_ok() && args.only.iter().any(|scenario| scenario == "list") {
        for (n, _) in args.turns.iter().enumerate() {
            shelves.push(Server::start(&directory.join(format!("shelf-{n}")), &[])?);
        }
    }
    let figures = runtime()?.block_on(async {
        let url = match &own {
            Ok(server) => own_map(server).await?,
            Err(url) => url.clone(),
        };
        let mut homes = Vec::new();
        for server in &shelves {
            homes.push(own_map(server).await?);
        }
        homes.resize(args.turns.len(), url.clone());
        tokio::select! {
            figures = map::measure(args, &url, &process, &homes, output) => figures,
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    })?;
    for server in own.into_iter().chain(shelves) {
        server.stop()?;
    }
    if output.is_json() {
        return output.json(&figures);
    }
    Ok(())
}

/// The MAP door of a server as its users have it: with a token, and so with a share of the queue.
async fn own_map(server: &Server) -> Result<String, Failure> {
    let mut line = Connection::connect(&server.address, &server.token).await?;
    let params = TokenCreateParams {
        role: TokenRole::Admin,
        name: "bench".to_owned(),
        observe: false,
        expires_at: None,
    };
    let made: TokenCreateResult = line.ask("token.create", &params).await?;
    Ok(format!("ws://{}/map?token={}", server.address, made.token))
}

async fn measure(
    args: &BenchArgs,
    directory: &std::path::Path,
    output: &Output,
) -> Result<Vec<Round>, Failure> {
    let swarm = directory.join("swarm.json");
    std::fs::write(&swarm, swarm::FILE)?;
    let (with_agents, without) = (["--swarm", &*swarm.to_string_lossy()], []);
    let further: &[&str] = if args.door == BenchDoor::Swarm { &with_agents } else { &without };
    let server = Server::start(&directory.join("office"), further)?;
    let mut line = Connection::connect(&server.address, &server.token).await?;
    for agent in 0..args.agents {
        let entry = RegisterParams { id: Some(name(agent)), ..RegisterParams::default() };
        line.call("register", &entry).await?;
    }
    let senders = match args.door {
        BenchDoor::Airc => signed::register(&server, args.agents).await?,
        BenchDoor::Office | BenchDoor::Mcp | BenchDoor::Swarm => Vec::new(),
    };
    let users = match args.door {
        BenchDoor::Swarm => swarm::users(&mut line, args.in_flight.iter().max().copied()).await?,
        BenchDoor::Office | BenchDoor::Mcp | BenchDoor::Airc => Vec::new(),
    };
    let ways: &[Way] = match args.door {
        BenchDoor::Office => &[Way::Office],
        BenchDoor::Mcp => &[Way::Office, Way::Mcp],
        BenchDoor::Airc => &[Way::Office, Way::Mcp, Way::Airc(&senders)],
        BenchDoor::Swarm => {
            &[Way::Swarm(swarm::Course::OneHop, &users), Way::Swarm(swarm::Course::ThreeHops, &users)]
        }
    };
    let bar = output.progress("measuring", args.in_flight.len() as u64);
    let mut rounds = Vec::new();
    for (n, &in_flight) in args.in_flight.iter().enumerate() {
        // Database of its own for each round: the same number may be asked for twice.
        let bare = match args.door {
            BenchDoor::Swarm => None,
            BenchDoor::Office | BenchDoor::Mcp | BenchDoor::Airc => {
                Some(bare::per_second(&directory.join(format!("bare-{n}.db")), in_flight, BODY)?)
            }
        };
        // Turn by turn, so that all see the same machine.
        for way in ways {
            rounds.push(round(args, &server, in_flight, bare, *way).await?);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    server.stop()?;
    Ok(rounds)
}

/// The door that messages or tasks go in by.
#[derive(Clone, Copy)]
enum Way<'a> {
    Office,
    Mcp,
    Airc(&'a [Signer]),
    /// By the users with these tokens.
    Swarm(swarm::Course, &'a [String]),
}

async fn round(
    args: &BenchArgs,
    server: &Server,
    in_flight: u32,
    bare: Option<f64>,
    way: Way<'_>,
) -> Result<Round, Failure> {
    let each = args.messages.map_or(u64::MAX, |all| all.div_ceil(in_flight.into()));
    // Messages are signed before connecting: the server closes silent connections.
    let works = (0..in_flight)
        .map(|n| {
            let me = n % args.agents;
            Ok(match way {
                Way::Office => {
                    let next = name((me + 1) % args.agents);
                    Work::Message(Box::new(message(name(me), next, "Ready for review")?))
                }
                Way::Mcp => Work::Tool(tool_call(me, args.agents)),
                Way::Airc(senders) => {
                    let sender = &senders[me as usize];
                    Work::Signed(signed::sign(sender, me, args.agents, args.seconds, in_flight, each))
                }
                Way::Swarm(course, _) => Work::Task(course),
            })
        })
        .collect::<Result<Vec<Work>, Failure>>()?;
    let mut jobs = Vec::new();
    for (n, work) in (0..in_flight).zip(works) {
        let line = match way {
            Way::Office => Connection::connect(&server.address, &server.token).await?,
            Way::Mcp => Connection::to(&server.address, Some(&server.token), "/mcp").await?,
            Way::Airc(senders) => {
                let token = &senders[(n % args.agents) as usize].token;
                Connection::to(&server.address, Some(token), "/messages").await?
            }
            Way::Swarm(_, users) => {
                let token = &users[n as usize % users.len()];
                Connection::to(&server.address, Some(token), "/message").await?
            }
        };
        jobs.push(Job { line, work });
    }
    let (cpu, own) = (server.cpu(), Process::this().cpu());
    let started = Instant::now();
    let end = started + Duration::from_secs(args.seconds);
    let working: Vec<_> = jobs.into_iter().map(|job| tokio::spawn(send_until(job, end, each))).collect();
    let mut times = Vec::new();
    for sender in working {
        times.extend(sender.await??);
    }
    let wall = started.elapsed();
    times.sort_unstable();
    let messages = times.len() as u64;
    let rank = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    let per_second = messages as f64 / wall.as_secs_f64();
    let per_message = |before: Option<Duration>, after: Option<Duration>| {
        let spent = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        spent.map(|spent| spent.as_secs_f64() * 1e6 / messages.max(1) as f64)
    };
    Ok(Round {
        door: match way {
            Way::Office => "office",
            Way::Mcp => "mcp",
            Way::Airc(_) => "airc",
            Way::Swarm(course, _) => course.name(),
        },
        in_flight,
        messages,
        per_second,
        p50_us: rank(0.5),
        p99_us: rank(0.99),
        server_cpu_us_per_message: per_message(cpu, server.cpu()),
        client_cpu_us_per_message: per_message(own, Process::this().cpu()),
        server_bytes: server.resident_bytes(),
        bare_per_second: bare,
        ratio: bare.map(|bare| per_second / bare),
    })
}

/// One line and what goes over it.
struct Job {
    line: Connection,
    work: Work,
}

enum Work {
    /// The same message again and again.
    Message(Box<SendParams>),
    /// The same tool call again and again.
    Tool(String),
    /// Messages that each go once.
    Signed(Vec<String>),
    /// Tasks that all take the same course.
    Task(swarm::Course),
}

/// A message from one agent to the next.
pub(super) fn message(from: String, to: String, subject: &str) -> Result<SendParams, Failure> {
    Ok(SendParams {
        from: Some(from),
        to: vec![to],
        cc: Vec::new(),
        bcc: Vec::new(),
        kind: String::new(),
        subject: Some(subject.to_owned()),
        body: to_raw_value(BODY)?,
        priority: None,
        ack_required: false,
        expires_at: None,
        conversation: None,
        in_reply_to: None,
        key: None,
        attachments: Vec::new(),
    })
}

fn tool_call(me: u32, agents: u32) -> String {
    let message = json!({
        "project_key": "main", "sender_name": name(me), "to": [name((me + 1) % agents)],
        "subject": "Ready for review", "body_md": BODY,
    });
    let params = json!({ "name": "send_message", "arguments": message });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// Sends one message after the other; gives the microseconds that each took to be durable.
async fn send_until(mut job: Job, end: Instant, most: u64) -> Result<Vec<u64>, Failure> {
    let mut times: Vec<u64> = Vec::new();
    while Instant::now() < end && (times.len() as u64) < most {
        let asked = Instant::now();
        match &job.work {
            Work::Message(message) => job.line.call("send", message).await?,
            Work::Tool(call) => job.line.call_tool(call).await?,
            Work::Signed(messages) => match messages.get(times.len()) {
                Some(message) => job.line.send(message).await?,
                None => break,
            },
            Work::Task(course) => course.run(&mut job.line).await?,
        }
        times.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(times)
}

fn show(rounds: &[Round], output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&rounds);
    }
    let head = [
        "DOOR",
        "IN FLIGHT",
        "MESSAGES/S",
        "P50",
        "P99",
        "SERVER CPU",
        "SERVER MEMORY",
        "BARE LOOP/S",
        "SHARE",
    ];
    let mut table = Table::new(head);
    for round in rounds {
        let micros = |n: u64| show_span(Duration::from_micros(n));
        let cells = [
            round.door.to_owned(),
            round.in_flight.to_string(),
            format!("{:.0}", round.per_second),
            micros(round.p50_us),
            micros(round.p99_us),
            round.server_cpu_us_per_message.map_or("-".to_owned(), |us| format!("{us:.1}us")),
            round.server_bytes.map_or("-".to_owned(), show_bytes),
            round.bare_per_second.map_or("-".to_owned(), |bare| format!("{bare:.0}")),
            round.ratio.map_or("-".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0)),
        ];
        table.row(cells, Style::Plain);
    }
    output.table(&table)?;
    Ok(output.line("\nEvery message was synced to disk before it was counted. The bare loop writes the same rows without a server.")?)
}

fn name(agent: u32) -> String {
    format!("agent-{agent}")
}

//! Measures a MAP server over WebSocket, posthaste or another: the scenarios of the published load generator with a faster
//! client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::pages::{self, Filled};
use crate::args::BenchArgs;
use crate::clients::{Peer, Process, answered};
use posthaste::cli::exit::Failure;
use posthaste::cli::output::Output;

/// How long a scenario runs before it is measured.
const WARM_UP: Duration = Duration::from_secs(1);
/// Connections opened at a time.
const OPEN_AT_ONCE: usize = 64;

/// The figures of one scenario.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figure {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p50_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p99_us: Option<u64>,
    /// From sending a turn to its receipt by the last of all subscribers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_p50_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_p99_us: Option<u64>,
    /// Of the server, for each operation or each event that reached a subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_cpu_us: Option<f64>,
    /// Of this program, which asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_cpu_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_per_connection: Option<u64>,
}

/// Runs the chosen scenarios against a server. Each conversation that is listed has a home of its own.
pub(super) async fn measure(
    args: &BenchArgs,
    url: &str,
    process: &Process,
    homes: &[String],
    output: &Output,
) -> Result<Vec<Figure>, Failure> {
    let bench = Bench { url, process, lasts: Duration::from_secs(args.seconds) };
    let mut figures = Vec::new();
    let mut note = |figure: Figure| -> Result<(), Failure> {
        // Some take minutes; people see each as it comes.
        if !output.is_json() {
            output.line(&figure.line())?;
        }
        figures.push(figure);
        Ok(())
    };
    for scenario in &args.only {
        match scenario.as_str() {
            "send" | "forget" => {
                for &n in &args.in_flight {
                    note(bench.send(n as usize, scenario == "forget").await?)?;
                }
            }
            "turn" => {
                for &n in &args.in_flight {
                    note(bench.turn(n as usize).await?)?;
                }
            }
            "fanout" => {
                for &subscribers in &args.followers {
                    for n in [1, 8] {
                        note(bench.fan_out(subscribers as usize, n).await?)?;
                    }
                }
            }
            "list" => {
                let mut filled = Vec::new();
                for (url, &turns) in homes.iter().zip(&args.turns) {
                    let (one, figure) = Filled::fill(url, turns).await?;
                    filled.push(one);
                    note(figure)?;
                }
                for figure in pages::measure(&mut filled).await? {
                    note(figure)?;
                }
            }
            // Apart from the other: a second measurement would reuse memory of the first.
            "idle" => note(bench.idle("client", args.idle as usize).await?)?,
            _ => note(bench.idle("agent", args.idle as usize).await?)?,
        }
    }
    Ok(figures)
}

struct Bench<'a> {
    url: &'a str,
    process: &'a Process,
    lasts: Duration,
}

/// Times to the answers in microseconds, when the requests were sent, and how long it took in all.
struct Run {
    times: Vec<u64>,
    sent: Vec<Instant>,
    wall: Duration,
    cpu: Clocks,
}

/// The time that the server and this program have spent computing.
#[derive(Clone, Copy)]
struct Clocks {
    server: Option<Duration>,
    client: Option<Duration>,
}

impl Clocks {
    fn since(self, before: Self) -> Self {
        let spent = |before: Option<Duration>, now: Option<Duration>| {
            before.zip(now).map(|(before, now)| now.saturating_sub(before))
        };
        Self { server: spent(before.server, self.server), client: spent(before.client, self.client) }
    }
}

impl Bench<'_> {
    fn clocks(&self) -> Clocks {
        Clocks { server: self.process.cpu(), client: Process::this().cpu() }
    }

    /// Messages from one agent to another, both connected: in the database before the answer, or behind it.
    async fn send(&self, in_flight: usize, forget: bool) -> Result<Figure, Failure> {
        let mut from = Peer::open(self.url, "agent", "bench").await?;
        let mut to = Peer::open(self.url, "agent", "bench").await?;
        let meta = if forget { r#","meta":{"delivery":"fire-and-forget"}"# } else { "" };
        let (agent, padding) = (&to.agent, "x".repeat(100));
        let params = format!(r#"{{"to":{{"agent":"{agent}"}},"payload":{{"t":1,"p":"{padding}"}}{meta}}}"#);
        let got = Arc::new(AtomicU64::new(0));
        let counter = got.clone();
        let receiving = tokio::spawn(async move {
            while to.frame().await.is_ok() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let run = self.pump(&mut from, in_flight, "map/send", &params).await?;
        receiving.abort();
        let what = if forget { "forget" } else { "send" };
        Ok(run.figure(format!("{what}, {in_flight} in flight"), None, self.process))
    }

    /// Turns that are durable when they are answered.
    async fn turn(&self, in_flight: usize) -> Result<Figure, Failure> {
        let mut peer = Peer::open(self.url, "agent", "bench").await?;
        let conversation = new_conversation(&mut peer).await?;
        let params = turn(&conversation, &"y".repeat(200)).to_string();
        let run = self.pump(&mut peer, in_flight, "mail/turn", &params).await?;
        Ok(run.figure(format!("turn, {in_flight} in flight"), None, self.process))
    }

    /// One event to many subscribers.
    async fn fan_out(&self, subscribers: usize, in_flight: usize) -> Result<Figure, Failure> {
        let mut peer = Peer::open(self.url, "agent", "bench").await?;
        let conversation = new_conversation(&mut peer).await?;
        let filter = json!({ "filter": { "eventTypes": ["mail.turn.added"], "mail": { "conversationId": conversation } } });
        let mut listening = JoinSet::new();
        let (got, stop) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        for mut subscriber in self.open_many(subscribers, "client").await? {
            subscriber.call("map/subscribe", &filter).await?;
            let (got, stop) = (got.clone(), stop.clone());
            listening.spawn(async move {
                let mut received = Vec::new();
                while let Some(Ok(_)) = stop.run_until_cancelled(subscriber.frame()).await {
                    received.push(Instant::now());
                    while let Some(Ok(_)) = subscriber.frame_at_hand() {
                        received.push(Instant::now());
                    }
                    got.fetch_max(received.len() as u64, Ordering::Relaxed);
                }
                received
            });
        }
        let params = turn(&conversation, "news").to_string();
        let started = (Instant::now(), self.clocks());
        let run = self.pump_for(&mut peer, in_flight, "mail/turn", &params, self.lasts).await?;
        let patience = Instant::now() + Duration::from_secs(10);
        while got.load(Ordering::Relaxed) < run.times.len() as u64 && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // What the slowest subscriber has not received by now is counted as lost.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (cpu, wall) = (self.clocks().since(started.1), started.0.elapsed());
        stop.cancel();
        let received = listening.join_all().await;
        let events = received.iter().map(Vec::len).sum::<usize>() as u64;
        let lost = ((run.times.len() * subscribers) as u64).saturating_sub(events);
        let to_last = to_last(&run.sent, &received);
        let run = Run { times: run.times, sent: run.sent, wall, cpu };
        let name = format!("fan-out to {subscribers}, {in_flight} in flight, {lost} lost; figures per event");
        let figure = run.figure(name, Some(events), self.process);
        Ok(Figure {
            last_p50_us: percentile(&to_last, 0.5),
            last_p99_us: percentile(&to_last, 0.99),
            ..figure
        })
    }

    /// Connections that say nothing more after their greeting. Exact only on a server that has had no others.
    async fn idle(&self, kind: &'static str, connections: usize) -> Result<Figure, Failure> {
        // The first ones pay for what all share.
        let _first = self.open_many(100.min(connections), kind).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = self.process.resident_bytes();
        let _held = self.open_many(connections, kind).await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = self.process.resident_bytes();
        let each = before.zip(after).map(|(a, b)| b.saturating_sub(a) / connections.max(1) as u64);
        Ok(Figure {
            name: format!("{connections} idle connections ({kind})"),
            server_bytes: after,
            bytes_per_connection: each,
            ..Figure::default()
        })
    }

    async fn open_many(&self, count: usize, kind: &'static str) -> Result<Vec<Peer>, Failure> {
        let mut peers = Vec::with_capacity(count);
        while peers.len() < count {
            let mut opening = JoinSet::new();
            for n in peers.len()..count.min(peers.len() + OPEN_AT_ONCE) {
                let url = self.url.to_owned();
                opening.spawn(async move { Peer::open(&url, kind, &format!("bench-{n}")).await });
            }
            while let Some(opened) = opening.join_next().await {
                peers.push(opened??);
            }
        }
        Ok(peers)
    }

    async fn pump(&self, peer: &mut Peer, n: usize, method: &str, params: &str) -> Result<Run, Failure> {
        self.pump_for(peer, n, method, params, WARM_UP).await?;
        self.pump_for(peer, n, method, params, self.lasts).await
    }

    /// Keeps `n` calls in flight on one connection until the time is up, then waits for the answers.
    async fn pump_for(
        &self,
        peer: &mut Peer,
        n: usize,
        method: &str,
        params: &str,
        lasts: Duration,
    ) -> Result<Run, Failure> {
        let cpu = self.clocks();
        let started = Instant::now();
        let (mut times, mut sent) = (Vec::new(), Vec::new());
        let mut asked = std::collections::HashMap::with_capacity(n * 2);
        loop {
            let open = started.elapsed() < lasts;
            if open {
                while asked.len() < n {
                    let id = peer.put(method, params).await?;
                    asked.insert(id, Instant::now());
                    sent.push(Instant::now());
                }
                peer.flush().await?;
            } else if asked.is_empty() {
                break;
            }
            let mut next = Some(Ok(peer.frame().await?));
            while let Some(frame) = next {
                if let Some(at) = answered(&frame?).and_then(|id| asked.remove(&id)) {
                    times.push(micros(at.elapsed()));
                }
                next = peer.frame_at_hand();
            }
        }
        let cpu = self.clocks().since(cpu);
        Ok(Run { times, sent, wall: started.elapsed(), cpu })
    }
}

impl Run {
    fn figure(mut self, name: String, operations: Option<u64>, process: &Process) -> Figure {
        self.times.sort_unstable();
        let count = operations.unwrap_or(self.times.len() as u64);
        let rank = |share: f64| {
            self.times.get((self.times.len() as f64 * share) as usize).copied().unwrap_or_default()
        };
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count.max(1) as f64;
        Figure {
            name,
            per_second: Some(count as f64 / self.wall.as_secs_f64().max(1e-9)),
            p50_us: Some(rank(0.5)),
            p99_us: Some(rank(0.99)),
            server_cpu_us: self.cpu.server.map(each),
            client_cpu_us: self.cpu.client.map(each),
            server_bytes: process.resident_bytes(),
            ..Figure::default()
        }
    }
}

impl Figure {
    /// The figure on one line.
    pub(super) fn line(&self) -> String {
        let mut line = format!("{:<48}", self.name);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                line.push_str(&format!(" {name}={value}"));
            }
        };
        add("perSecond", self.per_second.map(|n| format!("{n:.0}")));
        add("p50us", self.p50_us.map(|n| n.to_string()));
        add("p99us", self.p99_us.map(|n| n.to_string()));
        add("lastP50us", self.last_p50_us.map(|n| n.to_string()));
        add("lastP99us", self.last_p99_us.map(|n| n.to_string()));
        add("serverUs", self.server_cpu_us.map(|n| format!("{n:.1}")));
        add("clientUs", self.client_cpu_us.map(|n| format!("{n:.1}")));
        add("serverMiB", self.server_bytes.map(|n| format!("{:.1}", n as f64 / 1_048_576.0)));
        add("KiBEach", self.bytes_per_connection.map(|n| format!("{:.1}", n as f64 / 1_024.0)));
        line
    }
}

/// The time from sending each turn to its receipt by the last subscriber. Turns of one connection are recorded in the order in
/// which they were sent, so the receipt of each subscriber that has the same index is that of the same turn.
fn to_last(sent: &[Instant], received: &[Vec<Instant>]) -> Vec<u64> {
    let last =
        |index: usize| received.iter().map(|times| times.get(index).copied()).collect::<Option<Vec<_>>>();
    let times =
        sent.iter().enumerate().filter_map(|(index, sent)| Some((sent, last(index)?.into_iter().max()?)));
    let mut times: Vec<u64> =
        times.map(|(sent, last)| micros(last.saturating_duration_since(*sent))).collect();
    times.sort_unstable();
    times
}

fn percentile(sorted: &[u64], share: f64) -> Option<u64> {
    sorted.get((sorted.len() as f64 * share) as usize).copied()
}

pub(super) async fn new_conversation(peer: &mut Peer) -> Result<String, Failure> {
    let made = peer.call("mail/create", &json!({ "subject": "bench" })).await?;
    Ok(made["conversation"]["id"].as_str().unwrap_or_default().to_owned())
}

pub(super) fn turn(conversation: &str, text: &str) -> Value {
    json!({ "conversationId": conversation, "contentType": "text", "content": { "text": text } })
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

//! `kill -9` of the bridge and of its writers, at random moments: no acknowledged message is lost on either side, and none
//! comes twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::files::bridge::{Place, until};
use crate::harness::Posthaste;
use crate::office::Office;

const ROUNDS: u64 = 8;

/// Two writers of files that are killed in each round, and one sender at the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_bridge_and_writers_neither_loses_nor_duplicates_messages() {
    let place = Place::new();
    std::fs::create_dir(place.mail().join("ann")).unwrap();
    let mut dropped: BTreeSet<String> = BTreeSet::new();
    let mut sent: BTreeSet<String> = BTreeSet::new();
    let mut chance = 0x9E37_79B9_7F4A_7C15_u64;
    for round in 0..ROUNDS {
        let office = Arc::new(place.open());
        office.register("bob").await;
        let mut writers: Vec<Child> = (0..2).map(|_| batch(&place)).collect();
        let readers: Vec<_> = writers
            .iter_mut()
            .enumerate()
            .map(|(writer, child)| {
                let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
                std::thread::spawn(move || feed(stdin, stdout, round, writer))
            })
            .collect();
        let sender = tokio::spawn(send_until_killed(office.clone(), round));
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tokio::time::sleep(Duration::from_millis(60 + (chance >> 33) % 300)).await;
        let pid = rustix::process::Pid::from_raw(office.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        for reader in readers {
            dropped.extend(reader.join().unwrap());
        }
        sent.extend(sender.await.unwrap());
        Arc::into_inner(office).expect("no other owner").kill();
    }
    assert!(
        dropped.len() > 20 && sent.len() > 20,
        "{} and {}: nothing was tested",
        dropped.len(),
        sent.len()
    );
    let office = place.open();
    let messages = async || -> BTreeMap<String, usize> {
        let mut count = BTreeMap::new();
        for message in office.inbox("ann", 0).await {
            *count.entry(message["subject"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        count
    };
    until("every file at the server", async || {
        let messages = messages().await;
        dropped.iter().all(|subject| messages.contains_key(subject))
    })
    .await;
    until("every message in the directory", async || {
        let files: BTreeSet<String> = place.files("ann").iter().map(|(_, value)| subject(value)).collect();
        sent.iter().all(|subject| files.contains(subject))
    })
    .await;
    let twice: Vec<_> = messages().await.into_iter().filter(|(_, count)| *count > 1).collect();
    assert_eq!(twice, [], "messages that came twice");
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    for (_, value) in place.files("ann") {
        *files.entry(subject(&value)).or_default() += 1;
    }
    let twice: Vec<_> = files.into_iter().filter(|(_, count)| *count > 1).collect();
    assert_eq!(twice, [], "files that came twice");
    assert_eq!(office.close(), Some(0));
}

fn subject(value: &Value) -> String {
    value["subject"].as_str().unwrap().to_owned()
}

fn batch(place: &Place) -> Child {
    let flag = format!("--mail-dir={}", place.mail().display());
    let mut program = Posthaste::new().args(["send", "--batch", &flag]);
    program.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Feeds a writer until it is killed; the subjects it acknowledged.
fn feed(
    mut stdin: impl Write + Send + 'static,
    stdout: impl std::io::Read,
    round: u64,
    writer: usize,
) -> Vec<String> {
    let feeding = std::thread::spawn(move || {
        for n in 0..20_000 {
            let subject = format!("file-{round}-{writer}-{n}");
            let line = json!({ "ref": subject, "from": format!("w-{writer}"), "to": "ann", "subject": subject, "body": "z" });
            // A dozen at a time: enough for batches, and few enough to check afterwards.
            if n % 12 == 11 {
                std::thread::sleep(Duration::from_millis(5));
            }
            if writeln!(stdin, "{line}").is_err() {
                return;
            }
        }
    });
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let acked = lines
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok()?["ref"].as_str().map(str::to_owned));
    let acked = acked.collect();
    feeding.join().unwrap();
    acked
}

async fn send_until_killed(office: Arc<Office>, round: u64) -> Vec<String> {
    let mut acked = Vec::new();
    for n in 0.. {
        let subject = format!("message-{round}-{n}");
        let message = json!({ "from": "bob", "to": ["ann"], "subject": subject, "body": "z" });
        match office.call("send", message).await {
            Ok(_) => acked.push(subject),
            Err(_) => break,
        }
    }
    acked
}

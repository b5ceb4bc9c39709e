//! Nothing acknowledged is lost when the process is killed or the disk is full.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::{Office, Trouble};

const WRITERS: usize = 8;
const ROUNDS: u64 = 25;

/// Keys of acknowledged messages and the ids they were acknowledged with.
type Acknowledged = Arc<Mutex<HashMap<String, String>>>;

/// 25 times: eight writers at once, `kill -9` at a random moment, restart. Every acknowledged message is there once, under
/// the id it was acknowledged with; no message is there twice; the database is intact each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_the_process_loses_nothing_acknowledged() {
    let dir = TestDir::new();
    let acknowledged = Acknowledged::default();
    let mut after = 0;
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let office = Office::open(dir.path());
    for writer in 0..WRITERS {
        office.register(&name(writer)).await;
    }
    let mut office = Some(office);
    for round in 0..ROUNDS {
        let running = Arc::new(office.take().expect("a running server"));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                tokio::spawn(write_until_silence(running.clone(), acknowledged.clone(), writer, round))
            })
            .collect();
        // The kill comes at a moment that nothing announces; every assertion is made after the restart.
        tokio::time::sleep(Duration::from_millis(20 + rng.next() % 230)).await;
        let pid = rustix::process::Pid::from_raw(running.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        for writer in writers {
            writer.await.unwrap();
        }
        Arc::into_inner(running).expect("the writers have ended").kill();

        let doctor = dir.posthaste().args(["doctor"]).run();
        assert_eq!(doctor.code, 0, "round {round}: {}{}", doctor.stdout, doctor.stderr);
        let reopened = Office::open(dir.path());
        after = check(&reopened, &acknowledged, round, after).await;
        office = Some(reopened);
    }
    let office = office.expect("a running server");
    check_everything(&office, &acknowledged).await;
    assert_eq!(office.close(), Some(0));
    let total = acknowledged.lock().unwrap().len();
    assert!(total > ROUNDS as usize, "only {total} messages were acknowledged: the test has tested nothing");
}

async fn write_until_silence(office: Arc<Office>, acknowledged: Acknowledged, writer: usize, round: u64) {
    for n in 0.. {
        let key = format!("{round}-{writer}-{n}");
        match office.send(&name(writer), &name((writer + 1) % WRITERS), &key, &key).await {
            Ok(sent) => {
                let id = sent["id"].as_str().unwrap().to_owned();
                acknowledged.lock().unwrap().insert(key, id);
            }
            Err(Trouble::Silence) => return,
            Err(refused) => panic!("{key}: {refused:?}"),
        }
    }
}

/// Checks the messages of this round; returns the seq after which the next round starts.
async fn check(office: &Office, acknowledged: &Acknowledged, round: u64, after: i64) -> i64 {
    let mut found: HashMap<String, String> = HashMap::new();
    let mut last = after;
    for writer in 0..WRITERS {
        for message in office.inbox(&name(writer), after).await {
            last = last.max(message["seq"].as_i64().unwrap());
            let (key, id) = key_and_id(&message);
            assert_eq!(found.insert(key.clone(), id), None, "{key} is there twice");
        }
    }
    let start = format!("{round}-");
    for (key, id) in acknowledged.lock().unwrap().iter().filter(|(key, _)| key.starts_with(&start)) {
        assert_eq!(found.get(key), Some(id), "{key} was acknowledged");
    }
    // A writer without a response sends again under the same key: the message counts once, committed before the kill or not.
    for writer in 0..WRITERS {
        let unheard = (0..).map(|n| format!("{round}-{writer}-{n}"));
        let key = unheard.into_iter().find(|key| !acknowledged.lock().unwrap().contains_key(key)).unwrap();
        let again = office.send(&name(writer), &name((writer + 1) % WRITERS), &key, &key).await.unwrap();
        let id = again["id"].as_str().unwrap().to_owned();
        assert_eq!(again["repeated"], json!(found.contains_key(&key)), "{key}");
        assert!(found.get(&key).is_none_or(|first| *first == id), "{key} changed its id");
        last = last.max(again["seq"].as_i64().unwrap());
        acknowledged.lock().unwrap().insert(key, id);
    }
    last
}

async fn check_everything(office: &Office, acknowledged: &Acknowledged) {
    let mut found = HashMap::new();
    for writer in 0..WRITERS {
        for message in office.inbox(&name(writer), 0).await {
            let (key, id) = key_and_id(&message);
            assert_eq!(found.insert(key.clone(), id), None, "{key} is there twice");
        }
    }
    for (key, id) in acknowledged.lock().unwrap().iter() {
        assert_eq!(found.get(key), Some(id), "{key} was acknowledged");
    }
}

/// A full disk: writes are refused as `read_only`, health is red, reads continue. With space and a restart everything
/// acknowledged is there and writes are accepted again.
#[tokio::test]
async fn a_full_disk_is_reported_and_loses_nothing_acknowledged() {
    let dir = TestDir::new();
    let office = Office::open_with_file_limit(dir.path(), 1_024);
    office.register("ann").await;
    let body = "x".repeat(20_000);
    let mut acknowledged = Vec::new();
    let refusal = loop {
        let key = format!("k{}", acknowledged.len());
        match office.send("ann", "ann", &body, &key).await {
            Ok(sent) => acknowledged.push(sent["id"].as_str().unwrap().to_owned()),
            Err(trouble) => break trouble,
        }
        assert!(acknowledged.len() < 1_000, "the limit on file sizes is not in force");
    };
    assert_eq!(refusal, Trouble::Refused("read_only".to_owned()));
    assert!(!acknowledged.is_empty());
    // The realm stays read-only: a failed write is not retried before a restart.
    let again = office.send("ann", "ann", "small", "small").await;
    assert_eq!(again, Err(Trouble::Refused("read_only".to_owned())));
    let (status, health) = office.get("/health").await;
    assert_eq!((status, &health["status"]), (503, &json!("unhealthy")));
    assert!(health["reason"].as_str().unwrap().contains("write failed"), "{health}");
    assert_eq!(ids(&office.inbox("ann", 0).await), acknowledged);
    assert_eq!(office.close(), Some(0));

    let office = Office::open(dir.path());
    let (status, _) = office.get("/health").await;
    assert_eq!(status, 200);
    assert_eq!(ids(&office.inbox("ann", 0).await), acknowledged);
    office.send("ann", "ann", "there is room again", "after").await.unwrap();
    assert_eq!(office.close(), Some(0));
    assert_eq!(dir.posthaste().args(["doctor"]).run().code, 0);
}

/// Two servers on one data directory would lose mail.
#[tokio::test]
async fn second_server_on_a_directory_is_refused() {
    let dir = TestDir::new();
    let first = Office::open(dir.path());
    let second = dir.posthaste().args(["serve", "--listen", "127.0.0.1:0"]).run();
    assert_eq!(second.code, 5, "{}", second.stderr);
    assert!(second.stderr.contains(&first.pid().to_string()), "the holder is named: {}", second.stderr);
    first.kill();
    // The lock ends with the process that holds it, also when that was killed.
    assert_eq!(Office::open(dir.path()).close(), Some(0));
}

fn name(writer: usize) -> String {
    format!("writer-{writer}")
}

fn key_and_id(message: &Value) -> (String, String) {
    let text = |field: &str| message[field].as_str().unwrap().to_owned();
    assert_eq!(message["body"], message["key"], "the body of a message is its key");
    (text("key"), text("id"))
}

fn ids(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

/// A pseudo-random generator with a fixed seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

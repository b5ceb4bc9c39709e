//! The real program with a slow disk and a wrong clock, both controlled by the test through a preloaded library.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::Office;

const HOUR: i64 = 3_600_000;

/// The preloaded library and the file that controls it.
struct Machine {
    library: PathBuf,
    told: PathBuf,
}

impl Machine {
    fn new(dir: &TestDir) -> Self {
        let (library, told) = (dir.path().join("machine.so"), dir.path().join("machine"));
        // SQLite is built from C, so a C compiler is there.
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/faults/machine.c"))
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(built.success());
        let machine = Self { library, told };
        std::fs::write(&machine.told, [0; 16]).unwrap();
        machine
    }

    /// Sets one of the two numbers that the library reads.
    fn set(&self, index: u64, number: i64) {
        let file = std::fs::OpenOptions::new().write(true).open(&self.told).unwrap();
        file.write_all_at(&number.to_ne_bytes(), index * 8).unwrap();
    }

    fn each_sync_takes(&self, span: Duration) {
        self.set(0, i64::try_from(span.as_millis()).unwrap());
    }

    fn clock_is_off_by(&self, millis: i64) {
        self.set(1, millis);
    }

    fn open(&self, dir: &TestDir) -> Office {
        let (library, told) = (self.library.to_str().unwrap(), self.told.to_str().unwrap());
        let env = [("LD_PRELOAD", library), ("POSTHASTE_TEST_MACHINE", told)];
        Office::open_with(&dir.path().join("data"), &[], &env)
    }
}

#[tokio::test]
async fn a_disk_whose_syncs_are_slow_makes_answers_late_and_loses_nothing() {
    const SYNC: Duration = Duration::from_millis(300);
    let dir = TestDir::new();
    let machine = Machine::new(&dir);
    let office = Arc::new(machine.open(&dir));
    office.register("ann").await;
    machine.each_sync_takes(SYNC);
    let writing: Vec<_> = (0..40)
        .map(|n| {
            let (office, key) = (office.clone(), format!("message {n}"));
            tokio::spawn(async move {
                let asked = Instant::now();
                office.send("ann", "ann", &key, &key).await.map(|_| (key, asked.elapsed()))
            })
        })
        .collect();
    // Reads continue meanwhile; they go on until the last write is answered.
    let mut looks = Vec::new();
    while !writing.iter().all(tokio::task::JoinHandle::is_finished) {
        let asked = Instant::now();
        office.inbox("ann", 0).await;
        looks.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    looks.sort_unstable();
    let look = looks[looks.len() / 2];
    assert!(look < SYNC, "most reads waited for the disk: {look:?}");
    let mut acknowledged = Vec::new();
    for one in writing {
        let (key, took) = one.await.unwrap().unwrap();
        assert!(took >= SYNC, "{key} was answered after {took:?}, before it can have been on disk");
        acknowledged.push(key);
    }
    // The process is killed in the midst of a batch, if the moment is right; every assertion is made after the restart.
    let unfinished = {
        let office = office.clone();
        tokio::spawn(async move { office.send("ann", "ann", "half", "half").await })
    };
    tokio::time::sleep(SYNC / 3).await;
    unfinished.abort();
    let _ = unfinished.await;
    Arc::try_unwrap(office).ok().expect("the last handle").kill();
    machine.each_sync_takes(Duration::ZERO);
    let office = machine.open(&dir);
    let there: Vec<Value> =
        office.inbox("ann", 0).await.into_iter().map(|mut message| message["body"].take()).collect();
    for key in &acknowledged {
        assert_eq!(there.iter().filter(|body| *body == key).count(), 1, "{key}");
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_clock_that_jumps_does_not_move_the_event_log_back() {
    let dir = TestDir::new();
    let machine = Machine::new(&dir);
    let office = machine.open(&dir);
    office.register("ann").await;
    let now = posthaste_engine::stamp::now;
    let at = |sent: &Value| posthaste_wire::time::parse_rfc3339(sent["at"].as_str().unwrap()).unwrap();
    let id = |sent: &Value| uuid::Uuid::parse_str(sent["id"].as_str().unwrap()).unwrap();
    let token = json!({ "role": "agent", "name": "ann", "expires_at": now() + HOUR });
    let token = office.call("token.create", token).await.unwrap()["token"].as_str().unwrap().to_owned();
    let ann = office.as_bearer(&token);
    ann.call("whoami", json!({})).await.unwrap();
    let before = office.send("ann", "ann", "before", "k1").await.unwrap();

    // A day ahead: the message has that time, and tokens that expire before it have expired.
    machine.clock_is_off_by(24 * HOUR);
    let ahead = office.send("ann", "ann", "ahead", "k2").await.unwrap();
    assert!(at(&ahead) - at(&before) >= 23 * HOUR, "{ahead}");
    assert!(id(&ahead) > id(&before));
    assert!(ann.call("whoami", json!({})).await.is_err(), "the token has expired");

    // An hour behind the true time: the event log's time does not decrease, expiry follows the clock.
    machine.clock_is_off_by(-HOUR);
    let back = office.send("ann", "ann", "back", "k3").await.unwrap();
    assert!(at(&back) >= at(&ahead), "{back}");
    assert!(id(&back) > id(&ahead));
    ann.call("whoami", json!({})).await.expect("the token's hour is not over");
    let reservation =
        json!({ "agent": "ann", "scope": "s", "paths": ["src/*"], "expires_at": now() - HOUR / 2 });
    office.call("reserve", reservation).await.expect("half an hour is left by this clock");
    assert_eq!(office.send("ann", "ann", "ahead", "k2").await.unwrap()["repeated"], true);
    office.kill();
    let office = machine.open(&dir);
    let last = office.send("ann", "ann", "after the kill", "k4").await.unwrap();
    assert!(at(&last) >= at(&back) && id(&last) > id(&back));
    let order: Vec<Value> =
        office.inbox("ann", 0).await.into_iter().map(|mut message| message["body"].take()).collect();
    assert_eq!(order, ["before", "ahead", "back", "after the kill"]);
    assert_eq!(office.close(), Some(0));
}

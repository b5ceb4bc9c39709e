//! The real program on a machine whose disk and clock do as they are told while it runs.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::Office;

const HOUR: i64 = 3_600_000;

/// What stands between the program and the system.
struct Machine {
    library: PathBuf,
    told: PathBuf,
}

impl Machine {
    fn new(dir: &TestDir) -> Self {
        let (library, told) = (dir.path().join("machine.so"), dir.path().join("machine"));
        // The compiler that the books' own library was built with.
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

    fn tell(&self, place: u64, number: i64) {
        let file = std::fs::OpenOptions::new().write(true).open(&self.told).unwrap();
        file.write_all_at(&number.to_ne_bytes(), place * 8).unwrap();
    }

    fn each_sync_takes(&self, span: Duration) {
        self.tell(0, i64::try_from(span.as_millis()).unwrap());
    }

    fn clock_is_off_by(&self, millis: i64) {
        self.tell(1, millis);
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
            let (office, key) = (office.clone(), format!("letter {n}"));
            tokio::spawn(async move {
                let asked = Instant::now();
                office.send("ann", "ann", &key, &key).await.map(|_| (key, asked.elapsed()))
            })
        })
        .collect();
    // Reading goes on beside it.
    let mut looks = Vec::new();
    while !writing.iter().all(tokio::task::JoinHandle::is_finished) {
        let asked = Instant::now();
        office.inbox("ann", 0).await;
        looks.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    looks.sort_unstable();
    let look = looks[looks.len() / 2];
    assert!(look < SYNC, "most readings waited for the disk: {look:?}");
    let mut acknowledged = Vec::new();
    for one in writing {
        let (key, took) = one.await.unwrap().unwrap();
        assert!(took >= SYNC, "{key} was answered after {took:?}, before it can have been on disk");
        acknowledged.push(key);
    }
    // Half a batch may be on its way when the power goes.
    let unfinished = {
        let office = office.clone();
        tokio::spawn(async move { office.send("ann", "ann", "half", "half").await })
    };
    tokio::time::sleep(SYNC / 3).await;
    unfinished.abort();
    let _ = unfinished.await;
    Arc::try_unwrap(office).ok().expect("nobody else asks").kill();
    machine.each_sync_takes(Duration::ZERO);
    let office = machine.open(&dir);
    let there: Vec<Value> =
        office.inbox("ann", 0).await.into_iter().map(|mut letter| letter["body"].take()).collect();
    for key in &acknowledged {
        assert_eq!(there.iter().filter(|body| *body == key).count(), 1, "{key}");
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_clock_that_jumps_while_the_office_is_open_moves_no_history_back() {
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

    // A day ahead: the letter is of that day, and what ends before it has ended.
    machine.clock_is_off_by(24 * HOUR);
    let ahead = office.send("ann", "ann", "ahead", "k2").await.unwrap();
    assert!(at(&ahead) - at(&before) >= 23 * HOUR, "{ahead}");
    assert!(id(&ahead) > id(&before));
    assert!(ann.call("whoami", json!({})).await.is_err(), "the token has ended");

    // And an hour behind where it should be: the history stands still, everything else goes by the clock.
    machine.clock_is_off_by(-HOUR);
    let back = office.send("ann", "ann", "back", "k3").await.unwrap();
    assert!(at(&back) >= at(&ahead), "{back}");
    assert!(id(&back) > id(&ahead));
    ann.call("whoami", json!({})).await.expect("the token's hour is not over");
    let lease = json!({ "agent": "ann", "scope": "s", "paths": ["src/*"], "expires_at": now() - HOUR / 2 });
    office.call("reserve", lease).await.expect("half an hour is left by this clock");
    assert_eq!(office.send("ann", "ann", "ahead", "k2").await.unwrap()["repeated"], true);
    office.kill();
    let office = machine.open(&dir);
    let last = office.send("ann", "ann", "after the kill", "k4").await.unwrap();
    assert!(at(&last) >= at(&back) && id(&last) > id(&back));
    let order: Vec<Value> =
        office.inbox("ann", 0).await.into_iter().map(|mut letter| letter["body"].take()).collect();
    assert_eq!(order, ["before", "ahead", "back", "after the kill"]);
    assert_eq!(office.close(), Some(0));
}

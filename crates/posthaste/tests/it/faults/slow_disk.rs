//! A disk that takes no writes for a while, simulated by a lock on the database file: it makes the writer wait in the same
//! way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::{LONG, TestDir, eventually};
use crate::office::{Office, Trouble};

/// A lock that keeps the server's writer waiting.
struct Hold(rusqlite::Connection);

impl Hold {
    fn on(dir: &TestDir) -> Self {
        let db = rusqlite::Connection::open(dir.path().join("realms/main.db")).unwrap();
        db.busy_timeout(Duration::from_secs(5)).unwrap();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(db)
    }

    fn end(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

/// Commands that wait for the writer.
async fn queue(office: &Office) -> u64 {
    office.get("/x-posthaste/status").await.1["queue"].as_u64().unwrap()
}

#[tokio::test]
async fn a_disk_that_hesitates_makes_answers_late_and_loses_nothing() {
    let dir = TestDir::new();
    let office = Arc::new(Office::open(dir.path()));
    office.register("ann").await;
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let hold = Hold::on(&dir);
        let writing: Vec<_> = (0..20)
            .map(|n| {
                let (office, key) = (office.clone(), format!("{round}-{n}"));
                tokio::spawn(async move { (key.clone(), office.send("ann", "ann", &key, &key).await) })
            })
            .collect();
        // No write is answered before it is on disk, and reads continue meanwhile.
        eventually(LONG, "writes are waiting", async || queue(&office).await > 0).await;
        for _ in 0..20 {
            let asked = Instant::now();
            assert_eq!(office.inbox("ann", 0).await.len(), acknowledged.len());
            assert_eq!(office.get("/health").await.0, 200);
            // In real time: a read takes milliseconds, one that waits for the lock 5 s.
            assert!(asked.elapsed() < Duration::from_secs(2), "reads wait for the disk");
        }
        assert!(writing.iter().all(|one| !one.is_finished()), "answered before it was on disk");
        hold.end();
        for one in writing {
            let (key, answer) = one.await.unwrap();
            answer.unwrap_or_else(|trouble| panic!("{key}: {trouble:?}"));
            acknowledged.push(key);
        }
    }
    let mut there: Vec<String> = office
        .inbox("ann", 0)
        .await
        .iter()
        .map(|message| message["body"].as_str().unwrap().to_owned())
        .collect();
    there.sort();
    acknowledged.sort();
    assert_eq!(there, acknowledged);
}

#[tokio::test]
async fn a_disk_that_takes_too_long_gives_busy_and_writes_nothing() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    let hold = Hold::on(&dir);
    let started = Instant::now();
    let refused = office.send("ann", "ann", "x", "refused").await;
    let waited = started.elapsed();
    assert_eq!(refused, Err(Trouble::Refused("busy".to_owned())));
    // The subject is a timeout of 5 s in real time.
    assert!(waited >= Duration::from_secs(4), "refused after {waited:?}");
    // A writer that commits nothing for 5 s is reported.
    let until = Instant::now() + LONG;
    let (mut status, mut body) = office.get("/health").await;
    while status == 200 && Instant::now() < until {
        (status, body) = office.get("/health").await;
    }
    assert_eq!(status, 503);
    assert!(body.to_string().contains("writer"), "{body}");
    // Slow is not broken: reads continue, and the same message is accepted when the disk is back.
    assert_eq!(office.inbox("ann", 0).await.len(), 0);
    hold.end();
    let again = office.send("ann", "ann", "x", "refused").await.unwrap();
    assert_eq!(again["repeated"], false, "the refused message left no row");
    assert_eq!(office.get("/health").await.0, 200, "and the server is healthy again");
    assert_eq!(office.inbox("ann", 0).await.len(), 1);
    assert_eq!(office.close(), Some(0));
    assert_eq!(dir.posthaste().args(["doctor"]).run().code, 0);
}

//! A disk that does not take what is written for a while: somebody else's hold on the file stands for it, which keeps the
//! writer waiting in the same way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::{LONG, TestDir};
use crate::office::{Office, Trouble};

/// Keeps the office's writer from its file.
struct Hold(rusqlite::Connection);

impl Hold {
    fn on(dir: &TestDir) -> Self {
        let books = rusqlite::Connection::open(dir.path().join("realms/main.db")).unwrap();
        books.busy_timeout(Duration::from_secs(5)).unwrap();
        books.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(books)
    }

    fn end(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
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
        // Nobody is answered before it is on disk, and reading goes on meanwhile.
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(400) {
            let asked = Instant::now();
            assert_eq!(office.inbox("ann", 0).await.len(), acknowledged.len());
            assert_eq!(office.get("/health").await.0, 200);
            assert!(asked.elapsed() < Duration::from_secs(2), "reading waits for the disk");
            tokio::time::sleep(Duration::from_millis(20)).await;
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
        .map(|letter| letter["body"].as_str().unwrap().to_owned())
        .collect();
    there.sort();
    acknowledged.sort();
    assert_eq!(there, acknowledged);
}

#[tokio::test]
async fn a_disk_that_takes_too_long_is_told_as_busy_and_nothing_is_half_done() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    let hold = Hold::on(&dir);
    let started = Instant::now();
    let refused = office.send("ann", "ann", "x", "refused").await;
    let waited = started.elapsed();
    assert_eq!(refused, Err(Trouble::Refused("busy".to_owned())));
    assert!(waited >= Duration::from_secs(4), "given up after {waited:?}");
    // A writer that gets nothing done for 5 s is reported.
    let until = Instant::now() + LONG;
    let (mut status, mut body) = office.get("/health").await;
    while status == 200 && Instant::now() < until {
        (status, body) = office.get("/health").await;
    }
    assert_eq!(status, 503);
    assert!(body.to_string().contains("writer"), "{body}");
    // Slow is not broken: reading goes on, and the same letter goes through when the disk is back.
    assert_eq!(office.inbox("ann", 0).await.len(), 0);
    hold.end();
    let again = office.send("ann", "ann", "x", "refused").await.unwrap();
    assert_eq!(again["repeated"], false, "what was refused had left no trace");
    assert_eq!(office.get("/health").await.0, 200, "and the server is well again");
    assert_eq!(office.inbox("ann", 0).await.len(), 1);
    assert_eq!(office.close(), Some(0));
    assert_eq!(dir.posthaste().args(["doctor"]).run().code, 0);
}

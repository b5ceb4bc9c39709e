//! Damaged files: the loss of acknowledged data is reported, and the realm does not continue without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::store::{Inspection, accept_loss, check_position};
use posthaste_engine::verbs::office::Sweep;
use posthaste_engine::{Engine, EngineError, EngineGuard, Fault};
use tempfile::TempDir;

use crate::harness::{Realm, admin, message};

fn open(directory: &Path) -> Result<(Engine, EngineGuard), Fault> {
    Engine::open(&directory.join("main.db"), RealmName::new("main").expect("a name"), Limits::default())
}

fn log(directory: &Path) -> PathBuf {
    directory.join("main.db-wal")
}

/// The files of a realm as a crash would leave them after 50 acknowledged messages, all of them in the log, with the
/// position of the last one.
async fn crashed() -> TempDir {
    let image = TempDir::new().expect("a directory");
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert"]).await;
    for n in 0..50 {
        realm.send(&anna, "bert", &n.to_string()).await;
    }
    let copy = |name: &str| {
        fs::copy(realm.directory.path().join(name), image.path().join(name)).expect("a copy");
    };
    copy("main.db");
    copy("main.db-wal");
    let realm = realm.reopened();
    fs::copy(realm.directory.path().join("main.db.pos"), image.path().join("main.db.pos")).expect("a copy");
    image
}

fn lost(directory: &Path) -> String {
    match open(directory) {
        Err(fault @ Fault::Lost { .. }) => fault.to_string(),
        Err(other) => panic!("another fault: {other}"),
        Ok(_) => panic!("opened as if nothing had happened"),
    }
}

fn cut(path: &Path, bytes: u64) {
    fs::File::options().write(true).open(path).and_then(|file| file.set_len(bytes)).expect("cut");
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("the file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

#[tokio::test]
async fn crash_loses_nothing_and_reports_no_fault() {
    let image = crashed().await;
    let (engine, guard) = open(image.path()).expect("a whole realm");
    assert!(engine.read_blocking(|view| view.head()).expect("read") > 50);
    drop(engine);
    guard.join();
    check_position(&image.path().join("main.db")).expect("a whole realm");
}

#[tokio::test]
async fn log_without_acknowledged_transactions_is_reported_and_kept() {
    let image = crashed().await;
    let size = fs::metadata(log(image.path())).expect("a log").len();
    cut(&log(image.path()), size / 2);
    assert!(lost(image.path()).contains("was acknowledged"));
    assert_eq!(
        fs::metadata(log(image.path())).expect("a log").len(),
        size / 2,
        "the file is not changed without consent"
    );

    let image = crashed().await;
    fs::remove_file(log(image.path())).expect("removed");
    assert!(lost(image.path()).contains("was acknowledged"));

    // A damaged frame followed by others is detected without the position file.
    let image = crashed().await;
    fs::remove_file(image.path().join("main.db.pos")).expect("removed");
    flip(&log(image.path()), usize::try_from(size / 2).expect("small"));
    let said = lost(image.path());
    assert!(said.contains("is damaged") && said.contains("--accept-loss"), "{said}");
    let kept = accept_loss(&image.path().join("main.db")).expect("accepted").expect("a copy");
    assert_eq!(fs::metadata(kept).expect("a copy").len(), size);
    let (engine, guard) = open(image.path()).expect("what is left");
    assert!(engine.read_blocking(|view| view.head()).expect("read") > 0);
    drop(engine);
    guard.join();
}

#[tokio::test]
async fn incomplete_last_transaction_is_no_loss() {
    let image = crashed().await;
    fs::remove_file(image.path().join("main.db.pos")).expect("removed");
    let size = fs::metadata(log(image.path())).expect("a log").len();
    cut(&log(image.path()), size - 1_000);
    open(image.path()).expect("all but the last transaction");

    let image = crashed().await;
    fs::remove_file(image.path().join("main.db.pos")).expect("removed");
    flip(&log(image.path()), usize::try_from(size - 1_000).expect("small"));
    open(image.path()).expect("all but the last transaction");
}

#[tokio::test]
async fn missing_or_replaced_database_is_not_recreated() {
    let image = crashed().await;
    fs::remove_file(image.path().join("main.db")).expect("removed");
    fs::remove_file(log(image.path())).expect("removed");
    assert!(lost(image.path()).contains("is gone"));
    assert!(!image.path().join("main.db").exists());

    let (image, other) = (crashed().await, crashed().await);
    for name in ["main.db", "main.db-wal"] {
        fs::copy(other.path().join(name), image.path().join(name)).expect("a copy");
    }
    assert!(lost(image.path()).contains("another history"));
}

#[tokio::test]
async fn removed_or_replaced_file_poisons_a_running_realm() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("deleted", |directory| fs::remove_file(directory.join("main.db")).expect("removed")),
        ("deleted", |directory| fs::remove_file(log(directory)).expect("removed")),
        ("replaced", |directory| {
            fs::write(directory.join("other"), b"x").expect("written");
            fs::rename(directory.join("other"), directory.join("main.db")).expect("renamed");
        }),
        ("shrank", |directory| cut(&directory.join("main.db"), 4_096)),
    ];
    for (word, harm) in harms {
        let realm = Realm::new();
        let [anna, ..] = realm.agents(["anna", "bert"]).await;
        realm.send(&anna, "bert", "one").await;
        // Idle: the log is checkpointed, so that the database file can shrink.
        realm.ask(&admin(), Sweep {}).await;
        assert!(realm.engine.poisoned().is_none());
        realm.send(&anna, "bert", "two").await;
        harm(realm.directory.path());
        let sent = realm.engine.submit(&anna, message("bert", "lost")).await;
        let Err(EngineError::Failed(Fault::Poisoned { reason })) = sent else {
            panic!("{word}: acknowledged")
        };
        assert!(reason.contains(word), "{reason}");

        let realm = Realm::new();
        realm.agent("anna").await;
        realm.ask(&admin(), Sweep {}).await;
        realm.agent("bert").await;
        harm(realm.directory.path());
        realm.engine.check_files();
        assert!(realm.engine.poisoned().is_some_and(|reason| reason.contains(word)), "{word}");
    }
}

#[tokio::test]
async fn idle_realm_is_checkpointed() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert"]).await;
    realm.send(&anna, "bert", "hello").await;
    realm.ask(&admin(), Sweep {}).await;
    // The next command runs after the checkpoint.
    realm.ask(&admin(), Sweep {}).await;
    let image = TempDir::new().expect("a directory");
    for name in ["main.db", "main.db.pos"] {
        fs::copy(realm.directory.path().join(name), image.path().join(name)).expect("a copy");
    }
    let (engine, _guard) = open(image.path()).expect("a whole realm without its log");
    let head = engine.read_blocking(|view| view.head()).expect("read");
    assert_eq!(head, realm.see(|view| view.head()));
}

// F6: an inspection finds damaged pages; from then on the realm refuses writes and reports the reason.
#[tokio::test]
async fn damaged_database_is_read_only_once_detected() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert"]).await;
    for _ in 0..80 {
        realm.send(&anna, "bert", &"words ".repeat(300)).await;
    }
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("main.db");
    let realm = realm.reopened();
    let source = realm.directory.path().join("main.db");
    assert_eq!(realm.engine.inspect(Duration::from_secs(60)), Inspection::Whole);
    assert_eq!(realm.engine.poisoned(), None);
    let mut bytes = fs::read(source).expect("a file");
    let middle = (bytes.len() / 2) & !4_095;
    bytes[middle..middle + 8_192].fill(0xff);
    fs::write(&path, bytes).expect("a file");
    let (engine, _guard) = open(directory.path()).expect("SQLite reads no page before it needs it");
    assert!(matches!(engine.inspect(Duration::from_secs(60)), Inspection::Damaged(_)));
    let reason = engine.poisoned().expect("a reason").to_owned();
    assert!(reason.contains("main.db is damaged") && reason.contains("posthaste restore"), "{reason}");
    let refused = engine.submit(&admin(), Sweep {}).await;
    assert!(matches!(refused, Err(EngineError::Failed(Fault::Poisoned { .. }))), "{refused:?}");
}

// F26: doors use this to distinguish a full disk from other failures.
#[test]
fn full_disk_is_distinguished_from_other_failures() {
    let poisoned = |reason: &str| Fault::Poisoned { reason: reason.to_owned() };
    assert!(poisoned("database or disk is full").is_disk_full());
    assert!(!poisoned("main.db was deleted").is_disk_full());
    assert!(!Fault::Closing.is_disk_full());
}

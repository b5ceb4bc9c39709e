//! Damaged files: what was acknowledged and is gone is said, and nothing goes on as if it had never been.

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
async fn after_a_crash_everything_is_there_and_nothing_is_complained_about() {
    let image = crashed().await;
    let (engine, guard) = open(image.path()).expect("a whole realm");
    assert!(engine.read_blocking(|view| view.head()).expect("read") > 50);
    drop(engine);
    guard.join();
    check_position(&image.path().join("main.db")).expect("a whole realm");
}

#[tokio::test]
async fn a_log_that_lost_acknowledged_transactions_is_said_and_kept() {
    let image = crashed().await;
    let size = fs::metadata(log(image.path())).expect("a log").len();
    cut(&log(image.path()), size / 2);
    assert!(lost(image.path()).contains("was acknowledged"));
    assert_eq!(fs::metadata(log(image.path())).expect("a log").len(), size / 2, "nothing is changed unasked");

    let image = crashed().await;
    fs::remove_file(log(image.path())).expect("removed");
    assert!(lost(image.path()).contains("was acknowledged"));

    // A damaged frame with others behind it is known without the position.
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
async fn a_transaction_that_was_being_written_is_no_loss() {
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
async fn a_database_that_is_gone_or_another_is_not_made_anew() {
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
async fn a_file_that_is_taken_away_from_a_running_realm_ends_its_writes() {
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
        // Idle: the log is folded, so that there is a file that can shrink.
        realm.ask(&admin(), Sweep {}).await;
        assert!(realm.engine.poisoned().is_none());
        realm.send(&anna, "bert", "two").await;
        harm(realm.directory.path());
        let sent = realm.engine.submit(&anna, message("bert", "into the void")).await;
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
async fn an_idle_realm_does_not_live_in_its_log() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert"]).await;
    realm.send(&anna, "bert", "hello").await;
    realm.ask(&admin(), Sweep {}).await;
    // The next command comes after the folding.
    realm.ask(&admin(), Sweep {}).await;
    let image = TempDir::new().expect("a directory");
    for name in ["main.db", "main.db.pos"] {
        fs::copy(realm.directory.path().join(name), image.path().join(name)).expect("a copy");
    }
    let (engine, _guard) = open(image.path()).expect("a whole realm without its log");
    let head = engine.read_blocking(|view| view.head()).expect("read");
    assert_eq!(head, realm.see(|view| view.head()));
}

// F6: a look through the file finds pages that are out of order; from then on the realm takes no writes, and says why.
#[tokio::test]
async fn a_damaged_database_is_read_only_from_the_moment_it_is_found() {
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
    let (engine, _guard) = open(directory.path()).expect("SQLite looks at no page before it needs it");
    assert!(matches!(engine.inspect(Duration::from_secs(60)), Inspection::Damaged(_)));
    let reason = engine.poisoned().expect("a reason").to_owned();
    assert!(reason.contains("main.db is damaged") && reason.contains("posthaste restore"), "{reason}");
    let refused = engine.submit(&admin(), Sweep {}).await;
    assert!(matches!(refused, Err(EngineError::Failed(Fault::Poisoned { .. }))), "{refused:?}");
}

// F26: doors tell a full disk from other failures by this.
#[test]
fn a_full_disk_is_told_from_other_failures() {
    let poisoned = |reason: &str| Fault::Poisoned { reason: reason.to_owned() };
    assert!(poisoned("database or disk is full").is_disk_full());
    assert!(!poisoned("main.db was deleted").is_disk_full());
    assert!(!Fault::Closing.is_disk_full());
}

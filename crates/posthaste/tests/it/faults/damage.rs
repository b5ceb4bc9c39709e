//! Database files that were truncated, deleted or damaged: reported, and the realm takes no writes.

use std::fs;

use crate::harness::TestDir;
use crate::office::Office;

#[tokio::test]
async fn a_realm_that_lost_acknowledged_mail_starts_only_with_accept_loss() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    let realms = dir.path().join("realms");
    // The durable position is written within a second; the check at the start compares with it.
    let noted = realms.join("main.db.pos");
    while !noted.exists() {
        office.register("bob").await;
    }
    for n in 0..20 {
        office.send("ann", "ann", "hello", &n.to_string()).await.unwrap();
    }
    let kept = fs::read(realms.join("main.db")).unwrap();
    let log = fs::read(realms.join("main.db-wal")).unwrap();
    assert_eq!(office.close(), Some(0));
    // As after a power cut that lost half of the write-ahead log.
    fs::write(realms.join("main.db"), kept).unwrap();
    fs::write(realms.join("main.db-wal"), &log[..log.len() / 2]).unwrap();
    let doctor = dir.posthaste().args(["doctor"]).run();
    assert_eq!(doctor.code, 6, "{}", doctor.stdout);
    assert!(doctor.stdout.contains("acknowledged"), "{}", doctor.stdout);
    let refused = dir.posthaste().args(["serve", "--listen", "127.0.0.1:0"]).run();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("--accept-loss"), "{}", refused.stderr);
    dir.posthaste().args(["doctor", "--accept-loss"]).run().ok();
    assert!(realms.join("main.db-wal.lost-1").exists());
    let office = Office::open(dir.path());
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn deleting_the_database_of_a_running_server_turns_health_red() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    assert_eq!(office.get("/health").await.0, 200);
    fs::remove_file(dir.path().join("realms/main.db")).unwrap();
    let (status, health) = office.get("/health").await;
    assert_eq!(status, 503, "{health}");
    assert!(health.to_string().contains("deleted"), "{health}");
    assert!(office.send("ann", "ann", "into the void", "k").await.is_err());
}

// F6: damage is reported at the start and in /health, and the realm takes no writes.
#[tokio::test]
async fn a_damaged_database_is_found_at_the_start() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    for n in 0..60 {
        office.send("ann", "ann", &"words ".repeat(400), &n.to_string()).await.unwrap();
    }
    assert_eq!(office.close(), Some(0));
    let db = dir.path().join("realms/main.db");
    crate::cli::backup::damage(&db, (fs::metadata(&db).unwrap().len() / 2) & !4_095, 8_192);
    let log = dir.path().join("log");
    let office = Office::open_logging(dir.path(), [], &log);
    let (status, health) = office.get("/health").await;
    assert_eq!(status, 503, "{health}");
    assert!(health.to_string().contains("damaged") && health.to_string().contains("restore"), "{health}");
    let refused = office.send("ann", "ann", "more", "k").await;
    assert_eq!(refused, Err(crate::office::Trouble::Refused("read_only".to_owned())));
    assert!(fs::read_to_string(&log).unwrap().contains("the database is damaged"));
}

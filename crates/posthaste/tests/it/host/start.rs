//! How `serve` starts: what it says, and what it says when it cannot.

use posthaste_engine::stamp;
use posthaste_wire::time::to_rfc3339;
use serde_json::Value;

use crate::harness::TestDir;
use crate::office::Office;

// F62
#[tokio::test]
async fn a_port_in_use_is_told_with_its_process() {
    let (first, second) = (TestDir::new(), TestDir::new());
    let office = Office::open(first.path());
    let address = office.url().strip_prefix("http://").unwrap().to_owned();
    let ran = second.posthaste().args(["serve", "--listen", &address]).run();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("the port is in use") && ran.stderr.contains("`--listen"), "{}", ran.stderr);
    #[cfg(target_os = "linux")]
    assert!(ran.stderr.contains("posthaste (process "), "{}", ran.stderr);
    assert_eq!(office.close(), Some(0));
}

// F63
#[tokio::test]
async fn the_banner_names_every_door() {
    let (dir, mail) = (TestDir::new(), TestDir::new());
    let log = dir.path().join("log");
    let boxes = mail.path().join("mail");
    let office = Office::open_logging(
        &dir.path().join("data"),
        ["--log", "text", "--mail-dir", boxes.to_str().unwrap()],
        &log,
    );
    assert_eq!(office.close(), Some(0));
    let said = std::fs::read_to_string(&log).unwrap();
    for door in ["page ", "MCP ", "MAP ", "AIRC ", "MAIL ", "mail files ", "curl ", boxes.to_str().unwrap()] {
        assert!(said.contains(&format!("  {door}")) || said.contains(door), "{door}: {said}");
    }
    assert!(said.contains("posthaste connect claude-code --write"), "{said}");
}

// F40
#[tokio::test]
async fn health_carries_the_time_of_the_answer() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    // The server said that it is ready before this moment.
    let before = to_rfc3339(stamp::now());
    let health: Value = reqwest::get(format!("{}/health", office.url())).await.unwrap().json().await.unwrap();
    let time = health["timestamp"].as_str().unwrap();
    assert!(time >= before.as_str(), "{time} is before {before}");
    assert_eq!(office.close(), Some(0));
}

// F55
#[test]
fn a_reservation_of_many_years_is_refused_with_the_bound() {
    let dir = TestDir::new();
    dir.posthaste().args(["register", "ann"]).run().ok();
    let reserve = |ttl: &str| {
        let words = ["reserve", "src/a.rs", "--agent", "ann", "--ttl", ttl];
        dir.posthaste().args(words).run()
    };
    let ran = reserve("9999d");
    assert!(ran.code != 0 && ran.stderr.contains("at most 30"), "{}", ran.stderr);
    reserve("30d").ok();
}

//! A few seconds of the soak: every door takes part, everything holds, and what was made is cleared away.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Posthaste, TestDir};

const SMALL: [&str; 5] = ["soak", "--agents=24", "--rate=60", "--seed=3", "--json"];

/// What the soak says, which must be that everything held.
#[track_caller]
fn report(stdout: &str, stderr: &str) -> Value {
    let report: Value = serde_json::from_str(stdout).unwrap_or_else(|why| panic!("{why}: {stdout}{stderr}"));
    assert_eq!((&report["ok"], &report["findings"]), (&true.into(), &Value::Array(Vec::new())), "{report:#}");
    report
}

#[test]
fn soak_for_a_few_seconds_with_a_kill() {
    let dir = TestDir::new();
    let ran = dir.posthaste().args(SMALL).args(["--seconds=8", "--kills=1", "--keep"]).run();
    let report = report(&ran.stdout, &ran.stderr);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(report["kills"], 1);
    for door in ["map", "mcp", "airc", "files", "own", "visitor"] {
        assert!(report["doors"][door]["acknowledged"].as_u64().unwrap() > 0, "{door}: {report:#}");
    }
    assert!(report["deeds"]["tasks"].as_u64().unwrap() > 0, "{report:#}");
    assert!(report["deeds"]["events_followed"].as_u64().unwrap() > 0, "{report:#}");
    let [says, counted] = [0, 1].map(|n| report["counters"]["letters in inboxes"][n].as_u64().unwrap());
    assert!(says == counted && says > 20, "{report:#}");
    // What was to be kept is there, and sound.
    let data = dir.path().join("office");
    let mut doctor = Posthaste::new();
    doctor.command.arg("--data").arg(data);
    doctor.args(["doctor"]).run().ok();
}

/// Ctrl-C ends the work, not the checks; nothing is left behind.
#[test]
fn soak_that_is_interrupted_still_checks_and_reports() {
    let dir = TestDir::new();
    let mut soak = dir.posthaste().args(SMALL).args(["--minutes=10", "--kills=0"]).command;
    let mut soak = soak.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It is at work once the office has mail to keep.
    let books = dir.path().join("office/realms/soak.db-wal");
    for _ in 0..200 {
        if std::fs::metadata(&books).is_ok_and(|about| about.len() > 1_000_000) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = rustix::process::Pid::from_raw(soak.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    soak.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    soak.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(soak.wait().unwrap().code(), Some(0), "{stdout}{stderr}");
    assert_eq!(report(&stdout, &stderr)["interrupted"], true);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "everything was cleared away");
}

//! A few seconds of soak: every door takes part, every check passes, and temporary files are removed.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{json, load, posthaste};

const SMALL: [&str; 5] = ["soak", "--agents=24", "--rate=60", "--seed=3", "--json"];

/// Asserts that every check passed.
#[track_caller]
fn assert_passed(report: &Value) {
    assert_eq!((&report["ok"], &report["findings"]), (&true.into(), &Value::Array(Vec::new())), "{report:#}");
}

#[test]
fn soak_for_a_few_seconds_with_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let data = format!("--data={}", dir.path().display());
    let ran = load(&SMALL).args(["--seconds=8", "--kills=1", "--keep", &data]).output().unwrap();
    let report = json(&ran);
    assert_passed(&report);
    assert_eq!(ran.status.code(), Some(0));
    assert_eq!(report["kills"], 1);
    for door in ["map", "mcp", "airc", "files", "own", "visitor"] {
        assert!(report["doors"][door]["acknowledged"].as_u64().unwrap() > 0, "{door}: {report:#}");
    }
    assert!(report["actions"]["tasks"].as_u64().unwrap() > 0, "{report:#}");
    assert!(report["actions"]["events_followed"].as_u64().unwrap() > 0, "{report:#}");
    let [says, counted] = [0, 1].map(|n| report["counters"]["messages in inboxes"][n].as_u64().unwrap());
    assert!(says == counted && says > 20, "{report:#}");
    // The data directory that was to be kept exists and is sound.
    let mut doctor = Command::new(posthaste());
    doctor.env_clear().arg("--data").arg(dir.path().join("office")).arg("doctor");
    let doctor = doctor.output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stderr));
}

/// Ctrl-C ends the work, not the checks, and temporary files are removed.
#[test]
fn interrupted_soak_still_checks_and_reports() {
    let dir = tempfile::tempdir().unwrap();
    let data = format!("--data={}", dir.path().display());
    let mut soak = load(&SMALL);
    soak.args(["--minutes=10", "--kills=0", &data]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut soak = soak.spawn().unwrap();
    // The fleet is at work once the server has mail to keep.
    let wal = dir.path().join("office/realms/soak.db-wal");
    for _ in 0..200 {
        if std::fs::metadata(&wal).is_ok_and(|about| about.len() > 1_000_000) {
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
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_passed(&report);
    assert_eq!(report["interrupted"], true);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "all files are removed");
}

//! A mail directory without an office: the commands on files alone.

pub(crate) mod bridge;
mod bridge_crash;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Posthaste, Ran, TestDir};

/// The program on a mail directory.
pub(crate) fn on(dir: &Path, command: &str, args: &[&str]) -> Ran {
    let flag = format!("--mail-dir={}", dir.display());
    Posthaste::new().args([command, &flag]).args(args.iter().copied()).run()
}

/// Sends a message into a mail directory; its file's name.
pub(crate) fn send(dir: &Path, from: &str, to: &str, subject: &str, body: &str) -> String {
    let args = [&format!("--from={from}"), &format!("--to={to}"), "--subject", subject, "--body", body]
        .map(|s: &str| s.to_owned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    on(dir, "send", &args).ok().stdout.trim().to_owned()
}

/// Writes a file as a peer does that follows the specification only.
pub(crate) fn drop_file(dir: &Path, agent: &str, name: &str, text: &str) -> PathBuf {
    let mailbox = dir.join(agent);
    fs::create_dir_all(&mailbox).unwrap();
    let path = mailbox.join(name);
    fs::write(mailbox.join(".peer.tmp"), text).unwrap();
    fs::rename(mailbox.join(".peer.tmp"), &path).unwrap();
    path
}

/// A message as a peer writes it.
pub(crate) fn message(from: &str, to: &str, subject: &str) -> String {
    json!({
        "from": from, "to": to, "type": "coordination", "subject": subject, "body": "b",
        "timestamp": "2026-03-05T10:30:00Z", "read": false, "priority": "normal",
    })
    .to_string()
}

/// Sets a file's times to some time ago.
pub(crate) fn age(path: &Path, span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a file's date is told by the same clock")]
    let then = SystemTime::now() - span;
    fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn invalid_values_are_refused_and_nothing_is_made() {
    let dir = TestDir::new();
    let mail = dir.path().join("mail");
    let send = |args: &[&str]| on(&mail, "send", &[&["--body", "x", "--subject", "s"], args].concat());
    for args in [
        &["--from=a", "--to=b", "--type=memo"][..],
        &["--from=a", "--to=b", "--priority=high"],
        &["--from=a", "--to=b", "--timestamp=yesterday"],
        &["--from=a b", "--to=b"],
        &["--from=a", "--to=b", "--to=c"],
        &["--from=a", "--to=b", "--cc=c"],
        &["--from=a"],
        &["--to=a"],
    ] {
        assert_eq!(send(args).code, 2, "{args:?}");
    }
    let huge = "x".repeat(1 << 20);
    fs::write(dir.path().join("huge"), format!("{huge}y")).unwrap();
    let file = dir.path().join("huge");
    let args = ["--from=a", "--to=b", "--body-file", file.to_str().unwrap()];
    assert_eq!(on(&mail, "send", &args).code, 2);
    assert!(!mail.exists(), "nothing was made");
    assert_eq!(on(&mail, "read", &["--agent=b", "../x.json"]).code, 8);
    send(&["--from=a", "--to=b"]).ok();
    for file in ["../x.json", "/etc/passwd", ".x.json", "archive/x.json", ""] {
        assert_eq!(on(&mail, "read", &["--agent=b", file]).code, 2, "{file}");
    }
    assert_eq!(on(&mail, "read", &["--agent=b", "2026-03-05T10-30-00Z-a.json"]).code, 8);
    for agent in ["../b", "b/archive", ""] {
        let flag = format!("--agent={agent}");
        for command in ["inbox", "archive"] {
            assert_eq!(on(&mail, command, &[&flag]).code, 2, "{command} {agent:?}");
        }
    }
}

#[test]
fn mailbox_that_is_a_link_is_refused() {
    let dir = TestDir::new();
    let (mail, elsewhere) = (dir.path().join("mail"), dir.path().join("elsewhere"));
    fs::create_dir_all(&mail).unwrap();
    fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, mail.join("ann")).unwrap();
    assert_eq!(on(&mail, "send", &["--from=a", "--to=ann", "--body=x"]).code, 1);
    assert_eq!(on(&mail, "inbox", &["--agent=ann"]).code, 1);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

/// Invalid files of every sort are named and hide no others.
#[test]
fn invalid_files_do_not_hide_others() {
    let dir = TestDir::new();
    let mail = dir.path().join("mail");
    let name = |who: &str| format!("2026-03-05T10-30-00Z-{who}.json");
    drop_file(&mail, "ann", &name("good"), &message("good", "ann", "good"));
    let path = mail.join("ann");
    fs::write(path.join(name("array")), "[]").unwrap();
    fs::write(path.join(name("deep")), "[".repeat(100_000)).unwrap();
    fs::write(path.join(name("large")), vec![b' '; 5 << 20]).unwrap();
    fs::create_dir(path.join(name("directory"))).unwrap();
    std::os::unix::fs::symlink(path.join(name("good")), path.join(name("link"))).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path.join(name("pipe")),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    let listed = on(&mail, "inbox", &["--agent=ann", "--json"]).ok();
    let listed_json = listed.json();
    assert_eq!(listed_json.as_array().unwrap().len(), 1);
    assert_eq!(listed_json[0]["file"], name("good"));
    for odd in ["array", "deep", "large", "directory", "link", "pipe"] {
        assert!(listed.stderr.contains(&name(odd)), "{odd} is not named: {}", listed.stderr);
    }
    // An archive that is a link is not followed either; the old message stays in the mailbox.
    std::os::unix::fs::symlink(dir.path(), path.join("archive")).unwrap();
    assert_eq!(on(&mail, "archive", &["--agent=ann"]).code, 1);
    assert!(path.join(name("good")).exists());
}

#[test]
fn variant_of_the_peers_tests_is_listed_and_marked() {
    let dir = TestDir::new();
    let text = r#"{"from":"witness-01","to":"mayor","channel":"mail","payload":"STALL_ALERT: polecat-2","timestamp":"2026-03-06T09:15:00.000Z","durable":true,"n":9007199254740993.0}"#;
    let name = "2026-03-06T09:15:00.000Z-witness-01.json";
    let path = drop_file(dir.path(), "mayor", name, text);
    let listed = on(dir.path(), "inbox", &["--agent=mayor", "--json"]).ok().json();
    assert_eq!(
        (&listed[0]["subject"], &listed[0]["read"], &listed[0]["type"]),
        (&json!("STALL_ALERT"), &json!(false), &json!("coordination"))
    );
    on(dir.path(), "read", &["--agent=mayor", name]).ok();
    let marked = fs::read_to_string(&path).unwrap();
    assert_eq!(marked, text.replace("\"n\":9007199254740993.0}", "\"n\":9007199254740993.0,\"read\":true}"));
    on(dir.path(), "archive", &["--agent=mayor"]).ok();
    assert!(dir.path().join("mayor/archive").join(name).exists(), "colons in the name are read");
    assert_eq!(on(dir.path(), "read", &["--agent=mayor", name]).code, 0, "it is found in the archive");
}

/// An archived message of the same name is not overwritten.
#[test]
fn archiving_keeps_both_messages_of_one_name() {
    let dir = TestDir::new();
    let name = "2020-01-01T00-00-00Z-a.json";
    let archive = dir.path().join("ann/archive");
    fs::create_dir_all(&archive).unwrap();
    fs::write(archive.join(name), message("a", "ann", "first")).unwrap();
    drop_file(dir.path(), "ann", name, &message("a", "ann", "second"));
    on(dir.path(), "archive", &["--agent=ann"]).ok();
    let mut subjects: Vec<String> = fs::read_dir(&archive)
        .unwrap()
        .map(|entry| {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["subject"].as_str().unwrap().to_owned()
        })
        .collect();
    subjects.sort();
    assert_eq!(subjects, ["first", "second"]);
    // Two copies of a message become one, and the one marked as read stays.
    drop_file(
        dir.path(),
        "ann",
        name,
        &message("a", "ann", "first").replace("\"read\":false", "\"read\":true"),
    );
    on(dir.path(), "archive", &["--agent=ann"]).ok();
    assert_eq!(fs::read_dir(&archive).unwrap().count(), 2);
    assert!(fs::read_to_string(archive.join(name)).unwrap().contains("\"read\":true"));
    assert_eq!(fs::read_dir(dir.path().join("ann")).unwrap().count(), 1, "only the archive is left");
}

/// A line that cannot be sent is reported; the others are acknowledged.
#[test]
fn batch_acknowledges_durable_messages_only() {
    let dir = TestDir::new();
    let mut child = Posthaste::new()
        .args(["send", "--batch", &format!("--mail-dir={}", dir.path().display())])
        .command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = [
        json!({ "ref": 1, "from": "a", "to": "b", "subject": "s", "body": "one" }),
        json!({ "ref": 2, "from": "../a", "to": "b", "subject": "s", "body": "two" }),
        json!({ "ref": 3, "from": "a", "to": "b", "type": "memo", "subject": "s", "body": "three" }),
        json!({ "ref": 4, "from": "a", "to": "c", "subject": "s", "body": "four", "thread_id": "t-1" }),
    ];
    let mut stdin = child.stdin.take().unwrap();
    for line in &lines {
        writeln!(stdin, "{line}").unwrap();
    }
    write!(stdin, "not json").unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let acks: Vec<Value> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(acks.iter().map(|ack| ack["ref"].clone()).collect::<Vec<_>>(), [json!(1), json!(4)]);
    for (ack, to) in acks.iter().zip(["b", "c"]) {
        assert!(dir.path().join(to).join(ack["file"].as_str().unwrap()).exists());
    }
    assert_eq!(String::from_utf8(done.stderr).unwrap().lines().count(), 4, "three lines and a last word");
}

/// A power cut leaves a whole message under a sender's temporary name. The doctor reports it and, on request, delivers a
/// copy; the sender's own file is not changed.
#[test]
fn doctor_restores_messages_that_a_power_cut_left() {
    let dir = TestDir::new();
    let mail = dir.path().join("mail");
    let data = dir.path().join("data");
    let doctor = |args: &[&str]| {
        let flag = format!("--mail-dir={}", mail.display());
        Posthaste::new()
            .args(["doctor", "--data", data.to_str().unwrap(), &flag])
            .args(args.iter().copied())
            .run()
    };
    let temp = drop_file(&mail, "ann", ".msg.tmp", &message("bob", "ann", "lost"));
    assert_eq!(doctor(&[]).code, 0, "it may be about to be delivered");
    age(&temp, Duration::from_secs(120));
    let found = doctor(&[]);
    assert_eq!(found.code, 6);
    assert!(found.stdout.contains("2026-03-05T10-30-00Z-bob.json"), "{}", found.stdout);
    assert!(!mail.join("ann/2026-03-05T10-30-00Z-bob.json").exists(), "nothing is changed unasked");
    assert_eq!(doctor(&["--restore"]).code, 0);
    let restored = mail.join("ann/2026-03-05T10-30-00Z-bob.json");
    assert_eq!(fs::read_to_string(&restored).unwrap(), message("bob", "ann", "lost"));
    // The sender writes its next message over its own file, not over the one that was restored.
    fs::write(&temp, "half of a mess").unwrap();
    assert_eq!(fs::read_to_string(&restored).unwrap(), message("bob", "ann", "lost"));
    age(&temp, Duration::from_secs(120));
    assert_eq!(doctor(&[]).code, 0, "half a message is none");
}

#[test]
fn nudges_replace_each_other_and_hooks_are_shown() {
    let dir = TestDir::new();
    let mail = dir.path().join("state/mail");
    let nudge = |args: &[&str]| on(&mail, "nudge", args);
    for message in ["first", "second"] {
        nudge(&["--from=witness", "--to=ann", "--message", message, "--requires-response"]).ok();
    }
    let path = dir.path().join("state/nudge/ann/latest.json");
    let latest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&latest["message"], &latest["requires_response"]), (&json!("second"), &json!(true)));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    assert_eq!(nudge(&["--from=witness", "--to=../ann"]).code, 2);
    assert_eq!(nudge(&["--from=witness", "--to=ann", "--type=poke"]).code, 2);
    assert_eq!(on(dir.path(), "nudge", &["--from=a", "--to=b"]).code, 2, "not called mail");
    let hooks = dir.path().join("state/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let hook =
        r#"{"agentId":"ann","status":"pending","workItem":{"beadId":"gt-1","title":"t","assignedAt":"x"}}"#;
    fs::write(hooks.join("ann.json"), hook).unwrap();
    fs::write(hooks.join("broken.json"), "{").unwrap();
    let shown = &on(&mail, "hooks", &["--json"]).ok().json()["hooks"];
    assert_eq!(shown.as_array().unwrap().len(), 1);
    assert_eq!((&shown[0]["bead_id"], &shown[0]["mail"]), (&json!("gt-1"), &json!("no mail")));
    on(
        &mail,
        "send",
        &["--from=mayor", "--to=ann", "--type=work_assignment", "--subject=Bead gt-1", "--body=b"],
    )
    .ok();
    let shown = &on(&mail, "hooks", &["--json"]).ok().json()["hooks"];
    assert_eq!(shown[0]["mail"], "unread");
    assert_eq!(fs::read_to_string(hooks.join("ann.json")).unwrap(), hook, "never written");
}

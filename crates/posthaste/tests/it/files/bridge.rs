//! The bridge between a mail directory and a realm: each change on one side reaches the other, once.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use notify::Watcher;
use notify::event::{AccessKind, EventKind};
use serde_json::{Value, json};

use crate::files::{age, drop_file, message, on, send};
use crate::harness::{LONG, TestDir};
use crate::office::Office;

/// A scratch directory with a data directory and a mail directory.
pub(crate) struct Place {
    pub(crate) dir: TestDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { dir: TestDir::new() };
        fs::create_dir_all(place.mail()).unwrap();
        place
    }

    pub(crate) fn mail(&self) -> PathBuf {
        self.dir.path().join("state/mail")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    pub(crate) fn open(&self) -> Office {
        self.open_with(&[])
    }

    fn open_with(&self, more: &[&str]) -> Office {
        let mail = self.mail();
        let flags = [&["--mail-dir", mail.to_str().unwrap()], more].concat();
        Office::open_logging(&self.dir.path().join("office"), flags, &self.dir.path().join("log"))
    }

    /// The messages in a mailbox, by name.
    pub(crate) fn files(&self, agent: &str) -> Vec<(String, Value)> {
        let Ok(entries) = fs::read_dir(self.mail().join(agent)) else { return Vec::new() };
        let mut files: Vec<(String, Value)> = entries
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let text = fs::read_to_string(self.mail().join(agent).join(&name)).ok()?;
                Some((name, serde_json::from_str(&text).ok()?))
            })
            .filter(|(name, _)| name.ends_with(".json"))
            .collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        files
    }
}

/// Waits for a condition; the time it took.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !so().await {
        assert!(started.elapsed() < LONG, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    started.elapsed()
}

/// An agent's inbox at the server: subjects and states, oldest first. Empty if the agent is unknown.
async fn mail_of(office: &Office, agent: &str) -> Vec<(String, String)> {
    let params = json!({ "agent": agent, "order": "oldest", "limit": 1000 });
    let Ok(page) = office.call("inbox", params).await else { return Vec::new() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = page["messages"].as_array().unwrap().iter();
    messages.map(|message| (text(&message["subject"]), text(&message["delivery"]["state"]))).collect()
}

fn subjects(mail: &[(String, String)]) -> Vec<&str> {
    mail.iter().map(|(subject, _)| subject.as_str()).collect()
}

#[tokio::test]
async fn file_becomes_a_message_soon_and_once() {
    let place = Place::new();
    let office = place.open();
    drop_file(&place.mail(), "ann", "2026-03-05T10-30-00Z-first.json", &message("first", "ann", "first"));
    until("the first message", async || mail_of(&office, "ann").await.len() == 1).await;
    let mut times = Vec::new();
    for n in 0..9 {
        let (name, subject) = (format!("2026-03-05T10-30-0{n}Z-zoe.json"), format!("n{n}"));
        drop_file(&place.mail(), "ann", &name, &message("zoe", "ann", &subject));
        times.push(until("a message", async || mail_of(&office, "ann").await.len() == n + 2).await);
    }
    times.sort();
    assert!(times[4] < Duration::from_millis(100), "inotify is not at work: {times:?}");
    let messages = office.call("inbox", json!({ "agent": "ann", "order": "oldest" })).await.unwrap();
    let received = &messages["messages"][0];
    assert_eq!(
        (&received["from"], &received["kind"], &received["door"]),
        (&json!("first"), &json!("coordination"), &json!("files"))
    );
    assert_eq!(received["delivery"]["state"], "delivered");
    assert_eq!(office.close(), Some(0));
    let office = place.open();
    drop_file(&place.mail(), "ann", "2026-03-05T11-00-00Z-zoe.json", &message("zoe", "ann", "after"));
    until("the message after the restart", async || mail_of(&office, "ann").await.len() >= 11).await;
    assert_eq!(mail_of(&office, "ann").await.len(), 11, "none came twice");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn message_becomes_a_file_in_the_specified_form() {
    let place = Place::new();
    fs::create_dir(place.mail().join("ann")).unwrap();
    let office = place.open();
    for agent in ["ann", "bob", "caf\u{e9}/x"] {
        office.register(agent).await;
    }
    let message = json!({
        "from": "bob", "to": ["ann"], "kind": "completion_report", "subject": "done", "body": "it is \"done\"\n\u{1f48c}",
        "priority": 1, "conversation": "talk-1",
    });
    let sent = office.call("send", message).await.unwrap();
    let took = until("the file", async || place.files("ann").len() == 1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let (name, value) = place.files("ann").remove(0);
    let text = fs::read_to_string(place.mail().join("ann").join(&name)).unwrap();
    assert_eq!(name, format!("{}-bob.json", value["timestamp"].as_str().unwrap().replace(':', "-")));
    assert!(
        text.starts_with("{\n  \"body\": \"it is \\\"done\\\"\\n\u{1f48c}\",\n  \"from\": \"bob\",")
            && text.ends_with("\n}\n"),
        "{text}"
    );
    let expected = [
        ("to", "ann"),
        ("type", "completion_report"),
        ("subject", "done"),
        ("priority", "urgent"),
        ("thread_id", "talk-1"),
    ];
    for (field, text) in expected {
        assert_eq!(value[field], text);
    }
    assert_eq!((&value["read"], &value["message_id"]), (&json!(false), &sent["id"]));
    until("the receipt", async || mail_of(&office, "ann").await[0].1 == "delivered").await;
    // A sender whose name is not valid in a file's name is shown as `sender`; a payload without text is shown as it is.
    let odd = json!({ "from": "caf\u{e9}/x", "to": ["ann"], "kind": "x.poke", "body": { "n": 1 } });
    office.call("send", odd).await.unwrap();
    until("the second file", async || place.files("ann").len() == 2).await;
    let (name, value) = place.files("ann").remove(1);
    assert!(name.ends_with("-posthaste.json"), "{name}");
    assert_eq!(
        (&value["sender"], &value["kind"], &value["body"]),
        (&json!("caf\u{e9}/x"), &json!("x.poke"), &json!("{\"n\":1}"))
    );
    assert_eq!(value["type"], "coordination");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn read_flags_go_both_ways_and_removed_files_count_as_read() {
    let place = Place::new();
    let office = place.open();
    let theirs =
        drop_file(&place.mail(), "ann", "2026-03-05T10-30-00Z-zoe.json", &message("zoe", "ann", "theirs"));
    until("the message", async || mail_of(&office, "ann").await.len() == 1).await;
    office.register("bob").await;
    for subject in ["ours", "gone"] {
        office
            .call("send", json!({ "from": "bob", "to": ["ann"], "subject": subject, "body": "b" }))
            .await
            .unwrap();
    }
    until("the files", async || place.files("ann").len() == 3).await;
    // Read at the server: the file is marked.
    let messages = office.call("inbox", json!({ "agent": "ann", "order": "oldest" })).await.unwrap();
    let id = messages["messages"][0]["id"].clone();
    office.call("read", json!({ "agent": "ann", "message": id })).await.unwrap();
    until("the flag in the file", async || fs::read_to_string(&theirs).unwrap().contains("\"read\":true"))
        .await;
    assert_eq!(
        fs::read_to_string(&theirs).unwrap(),
        message("zoe", "ann", "theirs").replace("false", "true")
    );
    // Marked in the file: read at the server.
    let name = |subject: &str| {
        place.files("ann").into_iter().find(|(_, value)| value["subject"] == subject).unwrap().0
    };
    on(&place.mail(), "read", &["--agent=ann", &name("ours")]).ok();
    let state = async |subject: &str| {
        let mail = mail_of(&office, "ann").await;
        mail.into_iter().find(|(other, _)| other == subject).unwrap().1
    };
    until("the state at the server", async || state("ours").await == "read").await;
    fs::remove_file(place.mail().join("ann").join(name("gone"))).unwrap();
    until("the one that was taken away", async || state("gone").await == "read").await;
    assert_eq!(place.files("ann").len(), 2, "it does not come back");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn changes_while_the_server_was_down_are_caught_up() {
    let place = Place::new();
    let office = place.open();
    let first =
        drop_file(&place.mail(), "ann", "2026-03-05T10-30-00Z-zoe.json", &message("zoe", "ann", "first"));
    let second =
        drop_file(&place.mail(), "ann", "2026-03-05T10-31-00Z-zoe.json", &message("zoe", "ann", "second"));
    until("both messages", async || mail_of(&office, "ann").await.len() == 2).await;
    assert_eq!(office.close(), Some(0));

    drop_file(&place.mail(), "ann", "2026-03-05T10-32-00Z-zoe.json", &message("zoe", "ann", "dropped"));
    drop_file(&place.mail(), "new", "2026-03-05T10-32-00Z-zoe.json", &message("zoe", "new", "new box"));
    on(&place.mail(), "read", &["--agent=ann", second.file_name().unwrap().to_str().unwrap()]).ok();
    // The database is changed without a server.
    let data = place.dir.path().join("office");
    let offline = |args: &[&str]| {
        crate::harness::Posthaste::new()
            .args(["--data", data.to_str().unwrap()])
            .args(args.iter().copied())
            .run()
            .ok()
    };
    let listed = offline(&["inbox", "--agent=ann", "--json"]).json();
    let oldest = listed["messages"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    offline(&["read", &oldest, "--agent=ann"]);
    offline(&["send", "--from=bob", "--to=ann", "--subject=offline", "--body=x"]);
    // Archived before the server ever saw it.
    let archive = place.mail().join("ann/archive");
    fs::create_dir_all(&archive).unwrap();
    fs::write(archive.join("2026-03-05T10-33-00Z-zoe.json"), message("zoe", "ann", "archived")).unwrap();

    let office = place.open();
    until("everything", async || mail_of(&office, "ann").await.len() == 5).await;
    let mail = mail_of(&office, "ann").await;
    for (subject, state) in
        [("first", "read"), ("second", "read"), ("dropped", "delivered"), ("archived", "delivered")]
    {
        until(subject, async || {
            mail_of(&office, "ann").await.contains(&(subject.to_owned(), state.to_owned()))
        })
        .await;
    }
    assert!(subjects(&mail).contains(&"offline"));
    until("the file of the message", async || {
        place.files("ann").iter().any(|(_, value)| value["subject"] == "offline")
    })
    .await;
    assert!(
        fs::read_to_string(&first).unwrap().contains("\"read\":true"),
        "read in the database, marked in the file"
    );
    until("the new mailbox", async || mail_of(&office, "new").await.len() == 1).await;
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn invalid_files_are_left_in_place_with_one_warning_each() {
    let place = Place::new();
    let office = place.open();
    let name = |who: &str| format!("2026-03-05T10-30-00Z-{who}.json");
    let path = place.mail().join("ann");
    drop_file(&place.mail(), "ann", &name("good"), &message("good", "ann", "good"));
    until("the good one", async || mail_of(&office, "ann").await.len() == 1).await;
    let odd: Vec<(&str, String)> = vec![
        ("corrupt", "{\"from\":".into()),
        ("empty", String::new()),
        ("array", "[1]".into()),
        ("unsigned", "{\"to\":\"ann\"}".into()),
        ("badname", message("../x", "ann", "s")),
        ("office", message("posthaste", "ann", "s")),
    ];
    for (who, text) in &odd {
        drop_file(&place.mail(), "ann", &name(who), text);
    }
    fs::write(path.join(name("large")), vec![b' '; 5 << 20]).unwrap();
    let long = message("long", "ann", &"x".repeat(70_000));
    drop_file(&place.mail(), "ann", &name("longhead"), &long);
    std::os::unix::fs::symlink(path.join(name("good")), path.join(name("link"))).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path.join(name("pipe")),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    fs::write(place.mail().join("stray.txt"), "x").unwrap();
    fs::write(path.join("notes.txt"), "x").unwrap();
    fs::write(path.join(".msg.tmp"), "{\"from\": \"half").unwrap();
    drop_file(&place.mail(), "ann", "2026-03-05T10-31-00Z-zoe.json", &message("zoe", "ann", "later"));
    let took = until("the one behind them", async || mail_of(&office, "ann").await.len() == 2).await;
    assert!(took < Duration::from_secs(2), "held up: {took:?}");
    let all =
        ["corrupt", "empty", "array", "unsigned", "badname", "office", "large", "longhead", "link", "pipe"];
    until("the warnings", async || all.iter().all(|who| place.log().contains(&name(who)))).await;
    // Later scans of the mailbox repeat no warning.
    for n in 0..3 {
        let name = format!("2026-03-05T10-32-0{n}Z-zoe.json");
        drop_file(&place.mail(), "ann", &name, &message("zoe", "ann", "more"));
        until("more", async || mail_of(&office, "ann").await.len() == 3 + n).await;
    }
    let log = place.log();
    for who in all {
        assert_eq!(log.matches(&name(who)).count(), 1, "{who}: {log}");
        assert!(path.join(name(who)).symlink_metadata().is_ok(), "{who} is still there");
    }
    for (who, text) in &odd {
        assert_eq!(fs::read_to_string(path.join(name(who))).unwrap(), *text);
    }
    assert_eq!(fs::read_to_string(path.join(".msg.tmp")).unwrap(), "{\"from\": \"half");
    // A file that was repaired is taken.
    drop_file(&place.mail(), "ann", &name("corrupt"), &message("mended", "ann", "mended"));
    until("the mended one", async || subjects(&mail_of(&office, "ann").await).contains(&"mended")).await;
    assert_eq!(office.close(), Some(0));
}

/// A file that a peer writes in place is taken when it is whole, without a warning.
#[tokio::test]
async fn unfinished_file_is_taken_when_complete() {
    use std::io::Write as _;
    let place = Place::new();
    let office = place.open();
    fs::create_dir(place.mail().join("ann")).unwrap();
    let path = place.mail().join("ann/2026-03-05T10:30:00.000Z-slow.json");
    let text = message("slow", "ann", "slow");
    let (head, rest) = text.split_at(20);
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(head.as_bytes()).unwrap();
    drop_file(&place.mail(), "ann", "2026-03-05T10-30-01Z-zoe.json", &message("zoe", "ann", "fast"));
    until("the fast one", async || mail_of(&office, "ann").await.len() == 1).await;
    file.write_all(rest.as_bytes()).unwrap();
    drop(file);
    until("the slow one", async || mail_of(&office, "ann").await.len() == 2).await;
    assert!(!place.log().contains("left in place"), "{}", place.log());
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn old_messages_are_archived() {
    let place = Place::new();
    let old = drop_file(&place.mail(), "ann", "2020-01-01T00-00-00Z-zoe.json", &message("zoe", "ann", "old"));
    let fresh = drop_file(
        &place.mail(),
        "ann",
        "2020-01-02T00-00-00Z-zoe.json",
        &message("zoe", "ann", "just arrived"),
    );
    age(&old, Duration::from_secs(3_600));
    let office = place.open_with(&["--archive-every", "1s"]);
    until("the archive", async || place.mail().join("ann/archive/2020-01-01T00-00-00Z-zoe.json").exists())
        .await;
    until("both messages", async || mail_of(&office, "ann").await.len() == 2).await;
    assert!(!old.exists() && fresh.exists(), "what has just arrived stays for its reader");
    let states = mail_of(&office, "ann").await;
    assert!(states.iter().all(|(_, state)| state == "delivered"), "archived is not read: {states:?}");
    // Read at the server, it is marked in the archive.
    let messages = office.call("inbox", json!({ "agent": "ann", "order": "oldest" })).await.unwrap();
    let id = messages["messages"][0]["id"].clone();
    office.call("read", json!({ "agent": "ann", "message": id })).await.unwrap();
    let archived = place.mail().join("ann/archive/2020-01-01T00-00-00Z-zoe.json");
    until("the flag in the archive", async || {
        fs::read_to_string(&archived).unwrap().contains("\"read\":true")
    })
    .await;
    assert!(!old.exists(), "it does not come back");
    assert_eq!(office.close(), Some(0));
}

/// Hook, assignment, activation, report, and the witness's nudges for an agent that is stuck.
#[tokio::test]
async fn hooks_nudges_and_mail_are_in_the_event_log() {
    let place = Place::new();
    let office = place.open();
    office.register("mayor").await;
    let hooks = place.dir.path().join("state/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let hook = |status: &str| {
        let text = json!({ "agent_id": "polecat-1", "status": status, "work_item": { "bead_id": "gt-1", "title": "t", "assigned_at": "x" } });
        fs::write(hooks.join(".tmp"), text.to_string()).unwrap();
        fs::rename(hooks.join(".tmp"), hooks.join("polecat-1.json")).unwrap();
    };
    let told = async |word: &str, text: &str| {
        let events =
            office.call("events", json!({ "after": 0, "kinds": ["announced"], "limit": 500 })).await.unwrap();
        let events = events["events"].as_array().unwrap().clone();
        events
            .iter()
            .any(|event| event["fact"]["word"] == word && event["fact"]["data"].to_string().contains(text))
    };
    hook("pending");
    until("the hook", async || told("files.hook", "pending").await).await;
    send(&place.mail(), "mayor", "polecat-1", "Bead gt-1 assigned", "Do it.");
    until("the assignment", async || mail_of(&office, "polecat-1").await.len() == 1).await;
    let shown = office.call("hooks", json!({})).await.unwrap();
    assert_eq!(shown["hooks"][0]["status"], "pending");
    hook("active");
    until("the work", async || told("files.hook", "active").await).await;
    office
        .call(
            "nudge",
            json!({ "from": "mayor", "to": "polecat-1", "message": "one", "requires_response": true }),
        )
        .await
        .unwrap();
    until("the nudge", async || told("files.nudge", "one").await).await;
    office.call("nudge", json!({ "from": "mayor", "to": "polecat-1", "message": "two" })).await.unwrap();
    until("the next nudge", async || told("files.nudge", "two").await).await;
    assert!(told("files.nudge", "one").await, "the event log keeps what the directory replaces");
    let latest = fs::read_to_string(place.dir.path().join("state/nudge/polecat-1/latest.json")).unwrap();
    assert!(latest.contains("two"));
    fs::create_dir(place.mail().join("mayor")).unwrap();
    let report = ["--from=polecat-1", "--to=mayor", "--type=completion_report", "--subject=done", "--body=b"];
    on(&place.mail(), "send", &report).ok();
    let alarm = [
        "--from=witness",
        "--to=mayor",
        "--type=health_escalation",
        "--priority=urgent",
        "--subject=stuck",
        "--body=b",
    ];
    on(&place.mail(), "send", &alarm).ok();
    until("the mayor's mail", async || mail_of(&office, "mayor").await.len() == 2).await;
    let kinds =
        office.call("inbox", json!({ "agent": "mayor", "kinds": ["health_escalation"] })).await.unwrap();
    assert_eq!(kinds["messages"][0]["priority"], 1);
    assert_eq!(
        office.call("nudge", json!({ "to": "../x" })).await,
        Err(crate::office::Trouble::Refused("bad_params".into()))
    );
    assert_eq!(office.close(), Some(0));
}

/// The files of a large mailbox are read once; a new file does not cause another read of the old ones.
#[tokio::test]
async fn known_files_are_not_read_again() {
    const FILES: usize = 400;
    let place = Place::new();
    for n in 0..FILES {
        let name = format!("2026-03-05T10-{:02}-{:02}.{:03}Z-zoe.json", n / 60 % 60, n % 60, n % 1000);
        drop_file(&place.mail(), "ann", &name, &message("zoe", "ann", &format!("n{n}")));
    }
    // Counts how often one of these files is opened.
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let mut watch = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let event = event.unwrap();
        let old = event.paths.iter().any(|path| path.to_string_lossy().contains("/ann/2026-03-05T10"));
        if old && matches!(event.kind, EventKind::Access(AccessKind::Open(_))) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    })
    .unwrap();
    watch.watch(&place.mail().join("ann"), notify::RecursiveMode::NonRecursive).unwrap();
    let office = place.open();
    // Files are taken in the order of their names, so the last one is the last to arrive.
    let newest = async || {
        let params = json!({ "agent": "ann", "limit": 1 });
        let page = office.call("inbox", params).await.unwrap_or_default();
        page["messages"][0]["subject"].as_str().map(str::to_owned)
    };
    until("the mailbox", async || newest().await == Some(format!("n{}", FILES - 1))).await;
    until("the watch", async || opened.load(Ordering::Relaxed) >= FILES).await;
    opened.store(0, Ordering::Relaxed);
    for n in 0..5 {
        let name = format!("2026-03-06T10-00-0{n}Z-zoe.json");
        drop_file(&place.mail(), "ann", &name, &message("zoe", "ann", &format!("new {n}")));
        until("the new one", async || newest().await == Some(format!("new {n}"))).await;
    }
    // Also after a sweep.
    let sweep = Instant::now();
    until("a sweep", async || sweep.elapsed() > Duration::from_secs(3)).await;
    assert_eq!(opened.load(Ordering::Relaxed), 0, "files that were known are opened again");
    assert_eq!(office.close(), Some(0));
}

/// A metric of the server, over all its labels.
async fn counted(office: &Office, start: &str) -> u64 {
    let text = reqwest::get(format!("{}/metrics", office.url())).await.unwrap().text().await.unwrap();
    let values = text.lines().filter(|line| line.starts_with(start)).filter_map(|line| line.rsplit_once(' '));
    values.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
}

/// Emptying a mailbox at once does not cause a commit for each file, for which the files of other agents would wait.
#[tokio::test]
async fn files_removed_together_share_commits() {
    const FILES: u64 = 200;
    let place = Place::new();
    fs::create_dir(place.mail().join("ann")).unwrap();
    let office = place.open();
    for agent in ["ann", "bob"] {
        office.register(agent).await;
    }
    for n in 0..FILES {
        let message = json!({ "from": "bob", "to": ["ann"], "subject": n.to_string(), "body": "z" });
        office.call("send", message).await.unwrap();
    }
    let marked = r#"posthaste_verb_total{realm="main",verb="mark_"#;
    until("every message as a file, and delivered", async || {
        place.files("ann").len() as u64 == FILES
            && mail_of(&office, "ann").await.iter().all(|(_, state)| state == "delivered")
    })
    .await;
    let (commits, marks) =
        (counted(&office, "posthaste_batch_commands_count").await, counted(&office, marked).await);
    for (file, _) in place.files("ann") {
        fs::remove_file(place.mail().join("ann").join(file)).unwrap();
    }
    until("every message read", async || {
        mail_of(&office, "ann").await.iter().all(|(_, state)| state == "read")
    })
    .await;
    let commits = counted(&office, "posthaste_batch_commands_count").await - commits;
    let marks = counted(&office, marked).await - marks;
    assert!(marks >= FILES, "{marks} marks");
    assert!(commits * 2 < marks, "{commits} commits for {marks} files");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn mailboxes_of_other_accounts_are_ignored() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let place = Place::new();
    let set =
        |path: &PathBuf, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    // A directory that others can write to is refused, unless the operator says that it is shared.
    set(&place.mail(), 0o777);
    let mail = place.mail();
    let flags = ["serve", "--listen", "127.0.0.1:0", "--mail-dir", mail.to_str().unwrap()];
    let refused = place.dir.posthaste().args(flags).run();
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("--mail-dir-shared"), "{}", refused.stderr);
    let shared = place.open_with(&["--mail-dir-shared"]);
    assert_eq!(shared.close(), Some(0));
    set(&mail, 0o755);
    // Files have the permissions of their mailbox.
    for (agent, mode) in [("ann", 0o700), ("bob", 0o755), ("eve", 0o755)] {
        fs::create_dir_all(mail.join(agent)).unwrap();
        set(&mail.join(agent), mode);
    }
    // Only root can give a directory away.
    let foreign = chown(mail.join("eve"), Some(65_534), None).is_ok();
    let office = place.open();
    for agent in ["ann", "bob", "eve"] {
        drop(office.call("register", json!({ "id": agent })).await);
    }
    office.register("walter").await;
    for agent in ["eve", "ann", "bob"] {
        office.send("walter", agent, "private", &format!("again-{agent}")).await.unwrap();
    }
    until("the files", async || !place.files("ann").is_empty() && !place.files("bob").is_empty()).await;
    let mode = |agent: &str| {
        let (name, _) = place.files(agent).remove(0);
        fs::metadata(mail.join(agent).join(name)).unwrap().mode() & 0o777
    };
    assert_eq!((mode("ann"), mode("bob")), (0o600, 0o644));
    if foreign {
        assert!(place.files("eve").is_empty());
        until("the warning", async || place.log().contains("another account made it")).await;
        assert_eq!(office.inbox("eve", 0).await.len(), 1, "it waits for her at the other doors");
    }
    assert_eq!(office.close(), Some(0));
}

// F14: a directory under the name of another door's agent is a way to write to it, and shows nothing of its mail.
#[tokio::test]
async fn directory_does_not_receive_mail_of_agents_of_other_doors() {
    let place = Place::new();
    let office = place.open();
    for agent in ["walter", "green"] {
        office.register(agent).await;
    }
    office.send("walter", "green", "private", "1").await.unwrap();
    fs::create_dir(place.mail().join("green")).unwrap();
    // A file in the directory reaches the agent, and by then the bridge has opened it.
    send(&place.mail(), "zoe", "green", "by file", "by file");
    until("the file", async || mail_of(&office, "green").await.len() == 2).await;
    office.send("walter", "green", "private too", "2").await.unwrap();
    // Mail of an agent that uses files takes the same path, so once it is there, the earlier messages were handled.
    send(&place.mail(), "green", "zoe", "to a files agent", "x");
    office.send("walter", "zoe", "last", "3").await.unwrap();
    until("the last file", async || place.files("zoe").iter().any(|(_, file)| file["body"] == "last")).await;
    assert_eq!(place.files("green").len(), 1, "only what was written there: {:?}", place.files("green"));
    for (name, _) in place.files("green") {
        fs::remove_file(place.mail().join("green").join(name)).unwrap();
    }
    // A removed file counts as read where its agent uses the directory. Two of those take a sweep over all mailboxes.
    for (round, (name, _)) in place.files("zoe").into_iter().enumerate() {
        fs::remove_file(place.mail().join("zoe").join(name)).unwrap();
        until("what zoe took out", async || {
            mail_of(&office, "zoe").await.iter().filter(|(_, state)| state == "read").count() == round + 1
        })
        .await;
    }
    let states: Vec<String> = mail_of(&office, "green").await.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["queued", "queued", "queued"]);
    assert_eq!(office.close(), Some(0));
}

// F14: the operator can have the mail of an agent copied all the same.
#[tokio::test]
async fn operator_names_agents_that_get_files() {
    let place = Place::new();
    let office = place.open_with(&["--mail-dir-agent", "green"]);
    for agent in ["walter", "green"] {
        office.register(agent).await;
    }
    fs::create_dir(place.mail().join("green")).unwrap();
    office.send("walter", "green", "hello", "1").await.unwrap();
    until("the file", async || !place.files("green").is_empty()).await;
    assert_eq!(office.close(), Some(0));
}

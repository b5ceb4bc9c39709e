//! What the commands show people: short ids, local times, tables that fit, what a message wants; and the one envelope of
//! lists in JSON.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Ran, TestDir};
use crate::office::Office;

fn run(dir: &TestDir, args: &[&str]) -> Ran {
    dir.posthaste().args(args.iter().copied()).run()
}

/// The command at a terminal of 60 columns: its output.
fn at_a_terminal(dir: &TestDir, zone: &str, args: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_posthaste");
    let line =
        format!("stty cols 60; {program} --data {} --color never {}", dir.path().display(), args.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).env_clear().env("PATH", std::env::var("PATH").unwrap());
    let ran = terminal.env("TZ", zone).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(ran.stdout).unwrap().replace('\r', "")
}

// F23: a message is named by its id, the beginning of its id, or the number that MCP clients see, at every command.
#[tokio::test]
async fn messages_are_named_by_number_and_by_the_beginning_of_their_id() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    for agent in ["ann", "bob"] {
        office.register(agent).await;
    }
    let sent = office.send("bob", "ann", "first", "k1").await.unwrap();
    office.send("bob", "ann", "second", "k2").await.unwrap();
    let (id, number) = (sent["id"].as_str().unwrap(), sent["seq"].to_string());
    assert!(
        run(&dir, &["inbox", "--agent=ann"]).ok().stdout.contains(&format!("\n{number} ")),
        "tables show the number"
    );
    for name in [id, &id[..35], &number] {
        assert!(run(&dir, &["read", name, "--agent=ann"]).ok().stdout.ends_with("first\n"), "{name}");
        run(&dir, &["ack", name, "--agent=ann"]).ok();
        let thread = run(&dir, &["thread", name, "--agent=ann", "--json"]).ok().json();
        assert_eq!(thread["said"][0]["id"], id, "{name}");
        let answer = run(&dir, &["reply", name, "--from=ann", "--body=yes", "--json"]).ok().json();
        let read = run(&dir, &["read", answer["id"].as_str().unwrap(), "--agent=bob", "--json"]).ok().json();
        assert_eq!(read["in_reply_to"], id, "{name}");
        run(&dir, &["send", "--from=ann", "--to=bob", "--body=more", "--in-reply-to", name]).ok();
    }
    for command in ["read", "ack"] {
        let ambiguous = run(&dir, &[command, &id[..4], "--agent=ann"]);
        assert_eq!(ambiguous.code, 2, "{}", ambiguous.stderr);
        assert!(
            ambiguous.stderr.contains("several messages") && ambiguous.stderr.contains("(number "),
            "{}",
            ambiguous.stderr
        );
        for (name, whole) in
            [("abc", "abc"), ("99999", "99999"), ("00000000-0000-0000-0000-000000000000", "00000000-")]
        {
            let missing = run(&dir, &[command, name, "--agent=ann"]);
            assert_eq!(missing.code, 8, "{}", missing.stderr);
            assert!(missing.stderr.contains(&format!("there is no message {whole}")), "{}", missing.stderr);
        }
    }
    assert_eq!(run(&dir, &["thread", "abc", "--agent=ann"]).code, 8);
    assert_eq!(office.close(), Some(0));
}

// F24
#[tokio::test]
async fn tokens_are_revoked_by_the_beginning_of_their_id_and_by_name() {
    let dir = TestDir::new();
    let make =
        |name: &str| run(&dir, &["token", "create", "--role=agent", "--json", "--name", name]).ok().json();
    let (ann, bob) = (make("ann"), make("bob"));
    for _ in 0..2 {
        make("crew");
    }
    let id = bob["id"].as_str().unwrap();
    let shared =
        &id[..id.bytes().zip(ann["id"].as_str().unwrap().bytes()).take_while(|(a, b)| a == b).count()];
    let ambiguous = run(&dir, &["token", "revoke", shared]);
    assert_eq!(ambiguous.code, 2, "{}", ambiguous.stderr);
    assert!(ambiguous.stderr.contains(id), "{}", ambiguous.stderr);
    assert!(run(&dir, &["token", "revoke", &id[..35]]).ok().stdout.contains("(bob) is revoked"));
    run(&dir, &["token", "revoke", "--name=ann"]).ok();
    assert_eq!(run(&dir, &["token", "revoke", "--name=ann"]).code, 8, "it is revoked already");
    let several = run(&dir, &["token", "revoke", "--name=crew"]);
    assert_eq!(several.code, 2, "{}", several.stderr);
    assert!(several.stderr.contains("--yes"), "{}", several.stderr);
    run(&dir, &["token", "revoke", "--name=crew", "--yes"]).ok();
    let listed = run(&dir, &["token", "list", "--json"]).ok().json();
    assert!(
        listed["tokens"].as_array().unwrap().iter().all(|token| token["revoked_at"].is_string()),
        "{listed}"
    );
}

// F29, F30, F31: what a person at a terminal sees.
#[tokio::test]
async fn a_terminal_gets_cut_tables_local_times_and_wanted_acks() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    for agent in ["ann", "bob"] {
        office.register(agent).await;
    }
    let message = json!({
        "from": "bob", "to": ["ann"], "subject": "\u{65e5}\u{672c}\u{8a9e} ".repeat(100), "body": "text",
        "priority": 1, "ack_required": true,
    });
    let sent = office.call("send", message).await.unwrap();
    let number = sent["seq"].to_string();
    let table = at_a_terminal(&dir, "America/New_York", &["inbox", "--agent", "ann"]);
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with(&number) && row.contains('\u{2026}'), "{table}");
    for word in ["urgent", "wanted"] {
        assert!(row.contains(word), "{word}: {table}");
    }
    let zones = ["UTC", "America/New_York"].map(|zone| {
        let text = at_a_terminal(&dir, zone, &["read", &number, "--agent", "ann", "--peek"]);
        text.lines().find(|line| line.starts_with("Date:")).unwrap().to_owned()
    });
    assert!(zones[0].ends_with(" UTC"), "{zones:?}");
    assert!(zones[1].ends_with(" EST") || zones[1].ends_with(" EDT"), "{zones:?}");
    let read = at_a_terminal(&dir, "UTC", &["read", &number, "--agent", "ann"]);
    for line in [
        "Priority: urgent".to_owned(),
        "Ack: wanted".to_owned(),
        format!("acknowledge: posthaste ack {number} --agent ann"),
        format!("answer: posthaste reply {number} --from ann"),
    ] {
        assert!(read.contains(&line), "{line}: {read}");
    }
    // A pipe gets everything, and no advice; JSON stays UTC.
    let piped = run(&dir, &["inbox", "--agent=ann"]).ok().stdout;
    assert!(piped.contains(&"\u{65e5}\u{672c}\u{8a9e} ".repeat(99)), "{piped}");
    assert!(!run(&dir, &["read", &number, "--agent=ann"]).ok().stdout.contains("posthaste reply"));
    let listed = dir
        .posthaste()
        .args(["inbox", "--agent=ann", "--json"])
        .env("TZ", "America/New_York")
        .run()
        .ok()
        .json();
    assert!(listed["messages"][0]["at"].as_str().unwrap().ends_with('Z'), "{listed}");
    let status = run(&dir, &["status"]).ok().stdout;
    assert!(status.starts_with("health"), "F39: {status}");
    assert!(status.contains(" KiB") || status.contains(" MiB"), "F39: {status}");
    let uptime = status.lines().find(|line| line.starts_with("uptime")).unwrap();
    assert!(uptime.ends_with('s') && !uptime.contains('.'), "F39: {status}");
    assert_eq!(office.close(), Some(0));
}

// F27: every list is an object with a named array and `next`, which --next takes.
#[tokio::test]
async fn lists_in_json_have_one_envelope() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    for n in 0..5 {
        let name = format!("agent{n}");
        office.register(&name).await;
        office.send(&name, "agent0", "word", "k").await.unwrap();
        let talk = json!({ "from": name, "to": ["agent0"], "body": "x", "conversation": format!("talk{n}") });
        office.call("send", talk).await.unwrap();
        let until = posthaste_engine::stamp::now() + 600_000;
        let paths =
            json!({ "agent": name, "scope": "project", "paths": [format!("{n}.rs")], "expires_at": until });
        office.call("reserve", paths).await.unwrap();
    }
    for (field, args) in [
        ("agents", &["agents"][..]),
        ("messages", &["inbox", "--agent=agent0"]),
        ("conversations", &["conversations"]),
        ("reservations", &["reservations"]),
        ("hits", &["search", "word", "--newest"]),
    ] {
        let whole = run(&dir, &[args, &["--json"]].concat()).ok().json();
        assert!(whole["next"].is_null() && whole.get("next").is_some(), "{args:?}: {whole}");
        let whole = whole[field].as_array().unwrap_or_else(|| panic!("{args:?}")).clone();
        assert!(whole.len() >= 5, "{args:?}: {whole:?}");
        let (mut paged, mut next) = (Vec::<Value>::new(), Value::Null);
        loop {
            let flag = match &next {
                Value::Null => vec![],
                Value::String(text) => vec![format!("--next={text}")],
                other => vec![format!("--next={other}")],
            };
            let mut given = [args, &["--json", "--limit=2"]].concat();
            given.extend(flag.iter().map(String::as_str));
            let page = run(&dir, &given).ok().json();
            paged.extend(page[field].as_array().unwrap().iter().cloned());
            next = page["next"].clone();
            if next.is_null() {
                break;
            }
        }
        assert_eq!(paged, whole, "{args:?}");
    }
    for (field, args) in [("tokens", &["token", "list"][..]), ("contacts", &["contacts", "--agent=agent0"])] {
        let list = run(&dir, &[args, &["--json"]].concat()).ok().json();
        assert!(list[field].is_array() && list.get("next") == Some(&Value::Null), "{list}");
    }
    assert_eq!(office.close(), Some(0));
}

// F35
#[test]
fn an_empty_message_needs_a_flag() {
    let dir = TestDir::new();
    for args in [&["--body="][..], &["--body-file=/dev/null"], &["--body= "], &[]] {
        let mut program = dir.posthaste().args(["send", "--from=ann", "--to=ann"]).args(args.iter().copied());
        program.command.stdin(Stdio::null());
        let ran = program.run();
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains("--allow-empty"), "{}", ran.stderr);
    }
    run(&dir, &["send", "--from=ann", "--to=ann", "--body=", "--allow-empty"]).ok();
    let listed = run(&dir, &["inbox", "--agent=ann", "--json"]).ok().json();
    assert_eq!(listed["messages"].as_array().unwrap().len(), 1);
}

// F21, F22: a second demo reports the address of the first; Ctrl-C ends it silently with exit code 0.
#[test]
fn one_demo_runs_at_a_time_and_ends_silently() {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    let dir = TestDir::new();
    let mut program = dir.posthaste().args(["demo", "--listen=127.0.0.1:0", "--json"]);
    // A group of its own, as a shell gives it: the signal below goes to all in it, as Ctrl-C does.
    program.command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = program.command.spawn().unwrap();
    let mut out = BufReader::new(demo.stdout.take().unwrap());
    let mut text = String::new();
    while !text.ends_with("}\n") {
        assert_ne!(out.read_line(&mut text).unwrap(), 0, "{text}");
    }
    let page = serde_json::from_str::<Value>(&text).unwrap()["page"].as_str().unwrap().to_owned();
    let second = run(&dir, &["demo"]);
    assert_eq!(second.code, 9, "{}", second.stderr);
    assert!(second.stderr.contains(&format!("a demo is running already: {page}")), "{}", second.stderr);
    let pid = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process_group(pid, rustix::process::Signal::INT).unwrap();
    let mut said = String::new();
    demo.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((demo.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

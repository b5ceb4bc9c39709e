//! The commands for mail: the same at a server and on the database, in words and in JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Posthaste, Ran, TestDir};
use crate::office::Office;

fn run(dir: &TestDir, args: &[&str]) -> Ran {
    dir.posthaste().args(args.iter().copied()).run()
}

#[test]
fn a_message_to_an_unknown_agent_is_refused() {
    let dir = TestDir::new();
    let refused = run(&dir, &["send", "--from=ann", "--to=stranger", "--body=x"]);
    assert_eq!(refused.code, 8, "{}", refused.stderr);
    assert!(refused.stderr.contains("there is no agent stranger"), "{}", refused.stderr);
    assert_eq!(run(&dir, &["send", "--from=ann", "--body=x"]).code, 2);
    assert_eq!(run(&dir, &["send", "--from=ann", "--to=bob", "--body=x", "--priority=soon"]).code, 2);
}

/// Every command, first on the database and then at a server.
#[tokio::test]
async fn mail_commands_work_with_and_without_a_server() {
    let dir = TestDir::new();
    run(&dir, &["send", "--from=bob", "--to=bob", "--body=to myself"]).ok();
    let mut office = None;
    for round in ["database", "server"] {
        if round == "server" {
            office = Some(Office::open(dir.path()));
        }
        let ok = |args: &[&str]| run(&dir, args).ok();
        let subject = format!("lunch {round}");
        let message = [
            "send",
            "--from=ann",
            "--to=bob",
            "--body=at noon?",
            "--ack",
            "--priority=urgent",
            "--json",
            "--subject",
        ];
        let sent = ok(&[&message[..], &[&subject]].concat()).json();
        assert_eq!(sent["receipts"][0]["agent"], "bob");
        let id = sent["id"].as_str().unwrap();
        let listed = ok(&["inbox", "--agent=bob", "--unread", "--by-priority", "--json"]).json();
        assert_eq!(
            (&listed["messages"][0]["id"], &listed["messages"][0]["subject"]),
            (&json!(id), &json!(subject))
        );
        let table = ok(&["inbox", "--agent=bob"]);
        assert!(table.stdout.contains(&subject) && !table.stdout.contains('\x1b'), "{}", table.stdout);
        let shown = ok(&["read", id, "--agent=bob"]);
        assert!(
            shown.stdout.contains("Subject:") && shown.stdout.ends_with("at noon?\n"),
            "{}",
            shown.stdout
        );
        ok(&["ack", id, "--agent=bob", "--response", "gladly"]);
        let reply = ok(&["reply", id, "--from=bob", "--body", "yes", "--json"]).json();
        assert_eq!(reply["receipts"][0]["agent"], "ann");
        for asked in [id, reply["id"].as_str().unwrap()] {
            let thread = ok(&["thread", asked, "--agent=ann", "--json"]).json();
            let said: Vec<&str> =
                thread["said"].as_array().unwrap().iter().map(|one| one["body"].as_str().unwrap()).collect();
            assert_eq!(said, ["at noon?", "yes"], "thread of {asked}");
        }
        let found = ok(&["search", "noon", "--agent=bob", "--newest", "--json"]).json();
        assert_eq!(found["hits"][0]["message"], id);
        assert_eq!(ok(&["agents", "--json"]).json()["agents"].as_array().unwrap().len(), 2);
        assert!(
            !ok(&["conversations", "--agent=ann", "--json"]).json()["conversations"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        assert_eq!(ok(&["whoami", "--json"]).json()["role"], "admin");
        let held = ok(&["reserve", "src/**", "--agent=ann", "--json"]).json();
        let overlapping = run(&dir, &["reserve", "src/a.rs", "--agent=bob"]);
        assert_eq!(overlapping.code, 6, "{}", overlapping.stderr);
        assert!(overlapping.stderr.starts_with("warning: reserved"), "F26: {}", overlapping.stderr);
        assert_eq!(ok(&["reservations", "--json"]).json()["reservations"].as_array().unwrap().len(), 2);
        let number = held["id"].to_string();
        assert_eq!(
            ok(&["release", &number, "--agent=ann", "--json"]).json()["released"].as_array().unwrap().len(),
            1
        );
        assert_eq!(ok(&["release", "--agent=bob", "--json"]).json()["released"].as_array().unwrap().len(), 1);
        ok(&["contacts", "ask", "bob", "--agent=ann", "--reason=lunch"]);
        ok(&["contacts", "accept", "ann", "--agent=bob"]);
        assert_eq!(ok(&["contacts", "--agent=bob", "--json"]).json()["contacts"][0]["state"], "accepted");
        ok(&["contacts", "end", "ann", "--agent=bob"]);
        let history = ok(&["tail", "--after=0", "--no-follow", "--type=message.*", "--json"]);
        let kinds: Vec<Value> = history
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone())
            .collect();
        assert!(
            kinds.contains(&json!("message.acked"))
                && kinds.iter().all(|kind| kind.as_str().unwrap().starts_with("message."))
        );
        assert_eq!(run(&dir, &["thread", "no-such-thing"]).code, 8);
        let missing = run(&dir, &["read", "not-an-id", "--agent=bob"]);
        assert_eq!(missing.code, 8);
        assert!(missing.stderr.contains("there is no message not-an-id"), "F23: {}", missing.stderr);
    }
    assert_eq!(office.unwrap().close(), Some(0));
}

/// A server is found by its address and accepts its tokens.
#[tokio::test]
async fn a_server_is_used_by_address_and_token() {
    let (dir, elsewhere) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    office.register("ann").await;
    let token = dir.posthaste().args(["token", "create", "--role=agent", "--name=ann"]).run().ok().stdout;
    let me = || elsewhere.posthaste().args(["whoami", "--json"]);
    let by_flag = me().args(["--url", office.url(), "--token", token.trim()]).run().ok();
    assert_eq!(by_flag.json(), json!({ "name": "ann", "role": "agent", "realm": "main" }));
    let by_env = me().env("POSTHASTE_URL", office.url()).env("POSTHASTE_TOKEN", office.token()).run().ok();
    assert_eq!(by_env.json()["role"], "admin");
    assert_eq!(me().args(["--url", office.url()]).run().code, 4, "no token, no entry");
    assert_eq!(me().args(["--url", office.url(), "--token", "wrong"]).run().code, 4);
    assert_eq!(me().args(["--url", "http://127.0.0.1:1"]).run().code, 3);
    assert_eq!(me().args(["--url", "ftp://x"]).run().code, 2);
    let forged = elsewhere
        .posthaste()
        .args(["send", "--from=bob", "--to=ann", "--body=x", "--url", office.url(), "--token", token.trim()])
        .run();
    assert_eq!(forged.code, 4, "an agent's token speaks for that agent alone");
    let remote = elsewhere.path().join("remote.jsonl");
    let export = ["export", remote.to_str().unwrap(), "--url", office.url(), "--token"];
    assert_eq!(elsewhere.posthaste().args(export).args([token.trim()]).run().code, 4);
    elsewhere.posthaste().args(export).args([office.token()]).run().ok();
    elsewhere.posthaste().args(["import", remote.to_str().unwrap()]).run().ok();
    assert_eq!(elsewhere.posthaste().args(["agents", "--json"]).run().ok().json()["agents"][0]["id"], "ann");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn watch_prints_messages_as_they_arrive() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    office.send("ann", "ann", "before", "k0").await.unwrap();
    for (args, field) in [
        (&["inbox", "--agent=ann", "--watch", "--json"][..], "body"),
        (&["tail", "--after=0", "--type=message.sent", "--json"], "message"),
    ] {
        let mut program = dir.posthaste().args(args.iter().copied());
        let mut child = program.command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
        assert!(next()[field].to_string().contains("before"));
        office.send("ann", "ann", "while watching", args[0]).await.unwrap();
        let mut seen = next();
        // The second command begins with the first one's message.
        if !seen[field].to_string().contains("while watching") {
            seen = next();
        }
        assert!(seen[field].to_string().contains("while watching"), "{seen}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(office.close(), Some(0));
}

#[test]
fn texts_come_from_a_file_standard_input_or_an_editor() {
    let dir = TestDir::new();
    run(&dir, &["send", "--from=ann", "--to=ann", "--body=first"]).ok();
    let file = dir.write("text", "from a file\n");
    run(&dir, &["send", "--from=ann", "--to=ann", "--body-file", file.to_str().unwrap()]).ok();
    let mut program = dir.posthaste().args(["send", "--from=ann", "--to=ann"]);
    let mut child = program.command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("--from standard input `id` $HOME\n".as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let listed = &run(&dir, &["inbox", "--agent=ann", "--json"]).ok().json()["messages"];
    let bodies: Vec<&str> =
        listed.as_array().unwrap().iter().map(|message| message["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, ["--from standard input `id` $HOME\n", "from a file\n", "first"]);
    assert_eq!(run(&dir, &["send", "--from=ann", "--to=ann", "--body-file=/no/such"]).code, 2);
}

/// At a terminal, a command without a text opens the editor; an empty text or an editor that fails sends nothing.
#[test]
fn a_message_is_written_in_the_editor() {
    let dir = TestDir::new();
    let program = env!("CARGO_BIN_EXE_posthaste");
    let data = dir.path().to_str().unwrap();
    let write = |editor: &str| {
        let line = format!("{program} --data {data} send --from=ann --to=ann --subject=edited");
        // `script` gives the program a terminal.
        let mut terminal = std::process::Command::new("script");
        terminal.args(["-qec", &line, "/dev/null"]).env_clear().env("PATH", std::env::var("PATH").unwrap());
        terminal.env("EDITOR", editor).stdin(Stdio::null());
        terminal.output().unwrap().status.code()
    };
    let editor = dir.write(
        "editor.sh",
        "#!/bin/sh\nprintf '%s: %s\\n' \"$1\" \"written in $(wc -c < \"$2\") bytes\" > \"$2\"\n",
    );
    assert_eq!(write(&format!("sh {} 'two words'", editor.display())), Some(0));
    assert_eq!(write("false"), Some(1), "an editor that fails");
    assert_eq!(write("true"), Some(1), "a text that is empty");
    assert_eq!(write(""), Some(2), "no editor");
    let listed = &run(&dir, &["inbox", "--agent=ann", "--json"]).ok().json()["messages"];
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["body"], "two words: written in 0 bytes\n");
}

/// A realm goes out and comes in again, and is the same; whatever is damaged on the way changes nothing.
#[tokio::test]
async fn a_realm_is_exported_and_imported_without_loss() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    for agent in ["ann", "bob"] {
        office.register(agent).await;
    }
    for n in 0..50 {
        let message = json!({ "from": "ann", "to": ["bob"], "subject": format!("n{n}"), "body": { "n": n, "text": "\u{1f48c}\u{0}\n" }, "key": n.to_string(), "conversation": "talk" });
        office.call("send", message).await.unwrap();
    }
    let first = dir.path().join("first.jsonl");
    run(&dir, &["export", first.to_str().unwrap()]).ok();
    assert_eq!(
        run(&dir, &["export", first.to_str().unwrap()]).code,
        2,
        "a file that exists is not replaced unasked"
    );
    assert_eq!(
        run(&dir, &["import", first.to_str().unwrap(), "--force"]).code,
        5,
        "the server is running and has this realm open"
    );
    run(&dir, &["import", first.to_str().unwrap(), "--realm=beside"]).ok();
    let found = run(&dir, &["search", "n49", "--realm=beside", "--json"]).ok().json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "a running server opens the new realm when asked");
    assert_eq!(
        run(&dir, &["import", first.to_str().unwrap(), "--realm=beside"]).code,
        5,
        "once it exists the server owns it"
    );
    assert_eq!(office.close(), Some(0));
    assert_eq!(
        run(&dir, &["import", first.to_str().unwrap()]).code,
        2,
        "a realm that exists is not replaced unasked"
    );
    run(&dir, &["import", first.to_str().unwrap(), "--realm=copy"]).ok();
    let again = run(&dir, &["export", "-", "--realm=copy"]).ok().stdout;
    let text = std::fs::read_to_string(&first).unwrap();
    // All but the realm's name, the history's, and the seal over both.
    let plain = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| {
                !["\"posthaste\"", "\"history\"", "{\"end\""].iter().any(|mark| line.contains(mark))
            })
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(plain(&again), plain(&text));
    assert!(plain(&text).len() > 200);
    assert!(text.contains("\"history\""));
    let found = run(&dir, &["search", "n49", "--realm=copy", "--json"]).ok().json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "it can be searched");
    run(&dir, &["send", "--from=ann", "--to=bob", "--body=later", "--realm=copy"]).ok();
    assert_eq!(run(&dir, &["doctor"]).code, 0);

    let damaged = |name: &str, text: String| {
        let path = dir.write(name, &text);
        let ran = run(&dir, &["import", path.to_str().unwrap(), "--realm=damaged"]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
        assert!(!dir.path().join("realms/damaged.db").exists(), "{name}");
        assert_eq!(
            std::fs::read_dir(dir.path().join("realms"))
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().contains("damaged"))
                .count(),
            0
        );
    };
    let lines: Vec<&str> = text.lines().collect();
    damaged("cut", lines[..lines.len() - 1].join("\n") + "\n");
    damaged("half", text[..text.len() - 10].to_owned());
    damaged("missing", [&lines[..20], &lines[21..]].concat().join("\n") + "\n");
    damaged("changed", text.replace("n48", "n47"));
    damaged("table", text.replacen("\"table\":\"agents\"", "\"table\":\"sqlite_schema\"", 1));
    damaged("other", "{\"hello\":1}\n".to_owned());
    damaged("newer", text.replacen("\"form\":2", "\"form\":9", 1));
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    let bash = Posthaste::new().args(["completions", "bash"]).run().ok().stdout;
    for command in [
        "send", "inbox", "reply", "thread", "tail", "reserve", "contacts", "export", "import", "nudge",
        "hooks",
    ] {
        assert!(
            bash.contains(&format!("posthaste__subcmd__{command}"))
                || bash.contains(&format!("posthaste__{command}")),
            "{command}"
        );
        assert!(Posthaste::new().args(["man", command]).run().ok().stdout.contains(".SH"), "{command}");
    }
}

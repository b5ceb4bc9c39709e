//! A server that is named is asked or the command refuses; no command works on a new data directory instead.

use clap::CommandFactory;
use posthaste::cli::args::Args;
use serde_json::json;

use super::{at_home, data_of};
use crate::harness::TestDir;
use crate::office::Office;

/// What becomes of a command that names a server.
enum Fate {
    /// The server does it.
    Done,
    /// The command says that it cannot.
    Refuses(&'static str),
    /// Nothing is asked of any server.
    NoServer,
    /// It needs arguments, or something that does not exist here.
    Incomplete,
}

use Fate::{Done, Incomplete, NoServer, Refuses};

/// A call of each command; commands that are not listed are called without arguments.
fn rows<'a>(message: &'a str, file: &'a str) -> Vec<(Vec<&'a str>, Fate)> {
    let local = "works on the data directory of this machine";
    vec![
        (vec!["whoami"], Done),
        (vec!["agents"], Done),
        (vec!["inbox", "--agent", "ann"], Done),
        (vec!["read", message, "--agent", "ann", "--peek"], Done),
        (vec!["thread", message, "--agent", "ann"], Done),
        (vec!["ack", message, "--agent", "ann"], Done),
        (vec!["reply", message, "--agent", "ann", "--body", "x"], Done),
        (vec!["send", "--agent", "ann", "--to", "ann", "--body", "x"], Done),
        (vec!["search", "noon", "--agent", "ann"], Done),
        (vec!["tail", "--after", "0", "--no-follow"], Done),
        (vec!["conversations"], Done),
        (vec!["reserve", "src/**", "--agent", "ann"], Done),
        (vec!["release", "--agent", "ann"], Done),
        (vec!["reservations"], Done),
        (vec!["contacts", "--agent", "ann"], Done),
        (vec!["token", "create", "--role", "agent", "--agent", "ann"], Done),
        (vec!["token", "list"], Done),
        (vec!["status"], Done),
        (vec!["export", "-"], Done),
        (vec!["map"], Done),
        (vec!["mcp"], Done),
        (vec!["connect", "claude-code"], NoServer),
        (vec!["connect", "claude-code", "--write"], NoServer),
        (vec!["config"], NoServer),
        (vec!["context", "show"], NoServer),
        (vec!["api", "schema"], NoServer),
        (vec!["completions", "bash"], NoServer),
        (vec!["man"], NoServer),
        (vec!["serve"], Refuses(local)),
        (vec!["doctor"], Refuses(local)),
        (vec!["backup", "backup.ph"], Done),
        (vec!["restore", file], Refuses(local)),
        (vec!["import", file], Refuses(local)),
        (vec!["demo"], Refuses(local)),
        (vec!["archive", "--mail-dir", "mail"], Refuses(local)),
        (vec!["guard", "uninstall"], Refuses(local)),
        (vec!["inbox", "--agent", "ann", "--mail-dir", "mail"], Refuses(local)),
    ]
}

// F7: with a server named, half of the commands worked on a new, empty data directory.
#[tokio::test]
async fn a_named_server_is_always_used() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    let sent = office.call("send", json!({ "from": "ann", "to": ["ann"], "body": "at noon" })).await.unwrap();
    let message = sent["id"].as_str().unwrap();
    let mut table = rows(message, "file");
    let command = Args::command();
    for other in command.get_subcommands() {
        if !table.iter().any(|(words, _)| words[0] == other.get_name()) {
            table.push((vec![other.get_name()], Incomplete));
        }
    }
    for (words, fate) in &table {
        for by_flag in [true, false] {
            let home = TestDir::new();
            let mut posthaste = at_home(&home).args(words.iter().copied());
            posthaste = match by_flag {
                true => posthaste.args(["--url", office.url(), "--token", office.token()]),
                false => posthaste.env("POSTHASTE_URL", office.url()).env("POSTHASTE_TOKEN", office.token()),
            };
            // A server named in the environment does not keep these commands from working on this machine.
            let local_only =
                ["serve", "demo", "archive", "guard"].contains(&words[0]) || words.contains(&"--mail-dir");
            if !by_flag && local_only {
                continue;
            }
            let ran = posthaste.run();
            let said = format!("{words:?}, by flag: {by_flag}: {} {}", ran.stdout, ran.stderr);
            match fate {
                Done => assert_eq!(ran.code, 0, "{said}"),
                NoServer => assert_eq!(ran.code, 0, "{said}"),
                Incomplete => {}
                Refuses(why) => {
                    assert_eq!(ran.code, 2, "{said}");
                    assert!(ran.stderr.contains(why) && ran.stderr.contains(office.url()), "{said}");
                }
            }
            assert!(!data_of(&home).exists(), "a data directory was made: {said}");
            assert!(!home.path().join("file").exists(), "{said}");
        }
    }
    assert_eq!(office.close(), Some(0));
}

// F7: what was made at the server is known there, and nowhere else.
#[tokio::test]
async fn a_token_is_made_listed_and_revoked_at_the_server_that_is_named() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    let there = |words: &[&'static str]| {
        at_home(&home).args(words.iter().copied()).args(["--url", office.url(), "--token", office.token()])
    };
    let made = there(&["token", "create", "--role=agent", "--name=ann", "--json"]).run().ok().json();
    let token = made["token"].as_str().unwrap();
    let me =
        at_home(&home).args(["whoami", "--json", "--url", office.url(), "--token", token]).run().ok().json();
    assert_eq!(me["name"], "ann");
    assert!(there(&["token", "list"]).run().ok().stdout.contains(made["id"].as_str().unwrap()));
    there(&["token", "revoke"]).args([made["id"].as_str().unwrap()]).run().ok();
    let me = at_home(&home).args(["whoami", "--url", office.url(), "--token", token]).run();
    assert_eq!(me.code, 4, "{}", me.stderr);
    assert_eq!(office.close(), Some(0));
}

//! Commands that only read create nothing.

use serde_json::json;

use super::{at_home, data_of, names_in};
use crate::harness::TestDir;
use crate::office::Office;

// F8: `posthaste whoami` made a data directory with an admin token.
#[test]
fn reading_commands_create_no_data_directory() {
    for words in [
        &["whoami"][..],
        &["agents"],
        &["inbox", "--agent=ann"],
        &["contacts"],
        &["token", "list"],
        &["tail", "--no-follow"],
        &["export", "-"],
        &["status"],
        &["search", "x"],
        &["config"],
        &["context", "list"],
        &["context", "show"],
        &["connect", "claude-code"],
        &["send", "--from=me", "--to=ann", "--body=x"],
        &["guard", "check"],
    ] {
        let home = TestDir::new();
        let ran = at_home(&home).env("POSTHASTE_LISTEN", "127.0.0.1:1").args(words.iter().copied()).run();
        assert!(!data_of(&home).exists(), "{words:?}: {}", ran.stderr);
        assert_eq!(names_in(home.path()), Vec::<String>::new(), "{words:?}");
        if !matches!(words[0], "config" | "context" | "connect" | "guard") {
            assert!([3, 8].contains(&ran.code), "{words:?}: {} {}", ran.code, ran.stderr);
        }
    }
}

// F8: `agents --realm nosuch` made the realm, and `inbox --agent typooo` the agent.
#[tokio::test]
async fn reading_commands_create_no_realm_and_no_agent() {
    let dir = TestDir::new();
    let run = |words: &[&str]| dir.posthaste().args(words.iter().copied()).run();
    run(&["send", "--from=walter", "--to=walter", "--body=x"]).ok();
    let mut office = None;
    for round in ["database", "server"] {
        if round == "server" {
            office = Some(Office::open(dir.path()));
        }
        let realm = run(&["agents", "--realm=mian"]);
        assert_eq!(realm.code, 8, "{round}: {}", realm.stderr);
        assert!(
            realm.stderr.contains("there is no realm mian") && realm.stderr.contains("did you mean main?")
        );
        assert_eq!(run(&["tail", "--no-follow", "--realm=nosuch"]).code, 8);
        assert!(!dir.path().join("realms/nosuch.db").exists() && !dir.path().join("realms/mian.db").exists());
        assert_eq!(run(&["send", "--from=walter", "--to=bob", "--body=x", "--realm=mian"]).code, 8);
        let inbox = run(&["inbox", "--agent=waltre"]);
        assert_eq!(inbox.code, 8, "{round}: {}", inbox.stderr);
        assert!(inbox.stderr.contains("there is no agent waltre; did you mean walter?"), "{}", inbox.stderr);
        assert_eq!(run(&["contacts", "--agent=waltre"]).code, 8);
        // A refused message registers no one; the operator's own inbox is empty and makes no operator.
        let refused = run(&["send", "--from=newcomer", "--to=stranger", "--body=x"]);
        assert_eq!(refused.code, 8, "{round}: {}", refused.stderr);
        run(&["inbox"]).ok();
        let agents = run(&["agents", "--json"]).ok().json();
        let names: Vec<&str> =
            agents["agents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(names, ["walter"], "{round}");
    }
    let office = office.unwrap();
    assert!(office.call("inbox", json!({ "agent": "waltre" })).await.is_err());
    assert_eq!(office.call("agents", json!({})).await.unwrap()["agents"].as_array().unwrap().len(), 1);
    assert_eq!(office.close(), Some(0));
}

// F8: a message that is sent registers its sender, whose name it is; one that is refused on a new data directory leaves none.
#[test]
fn a_first_message_creates_data_directory_and_realm() {
    let dir = TestDir::new();
    let data = dir.path().join("new");
    let run = |words: &[&str]| {
        let mut posthaste = crate::harness::Posthaste::new().args(["--data"]);
        posthaste.command.arg(&data);
        posthaste.args(words.iter().copied()).run()
    };
    let refused = run(&["send", "--from=me", "--to=stranger", "--body=x"]);
    assert_eq!((refused.code, data.exists()), (8, false), "{}", refused.stderr);
    run(&["send", "--from=me", "--to=me", "--body=x"]).ok();
    assert_eq!(run(&["inbox", "--agent=me", "--json"]).ok().json()["messages"].as_array().unwrap().len(), 1);
}

// F36: an empty admin.token is named, by commands and by doctor.
#[test]
fn an_empty_key_is_reported() {
    let dir = TestDir::new();
    dir.posthaste().args(["send", "--from=me", "--to=me", "--body=x"]).run().ok();
    dir.write("admin.token", "");
    let path = dir.path().join("admin.token");
    for words in [&["agents"][..], &["whoami"], &["serve", "--listen=127.0.0.1:0"], &["doctor"]] {
        let ran = dir.posthaste().args(words.iter().copied()).run();
        assert_ne!(ran.code, 0, "{words:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(path.to_str().unwrap()) && said.contains("empty"), "{words:?}: {said}");
    }
}

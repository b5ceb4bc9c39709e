//! The commands about the address book: who is connected, entering and removing agents, and the operator's address.

use serde_json::{Value, json};

use crate::harness::{Ran, TestDir};
use crate::map::client::Client;
use crate::mcp::client::Mcp;
use crate::office::Office;

fn run(dir: &TestDir, args: &[&str]) -> Ran {
    dir.posthaste().args(args.iter().copied()).run()
}

fn admin(dir: &TestDir) -> String {
    std::fs::read_to_string(dir.path().join("admin.token")).unwrap().trim().to_owned()
}

fn find(agents: &Value, id: &str) -> Value {
    agents["agents"].as_array().unwrap().iter().find(|agent| agent["id"] == id).cloned().unwrap_or_default()
}

// F3, F8
#[tokio::test]
async fn agents_shows_who_is_connected_and_remove_takes_agents_out() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let connected = Client::agent_at(office.url(), &admin(&dir), "carl").await;
    run(&dir, &["register", "ann", "--role=reviewer"]).ok();
    let agents = run(&dir, &["agents", "--json"]).ok().json();
    let (ann, carl) = (find(&agents, "ann"), find(&agents, "carl"));
    assert_eq!(
        (&ann["connected"], &ann["connected_by"], &ann["role"]),
        (&json!(false), &json!([]), &json!("reviewer"))
    );
    assert_eq!((&carl["connected"], &carl["connected_by"]), (&json!(true), &json!(["map"])));
    assert!(carl["last_seen"].is_string(), "{carl}");
    let table = run(&dir, &["agents"]).ok().stdout;
    assert!(table.contains("CONNECTED"), "{table}");
    let shown = run(&dir, &["agent", "show", "carl"]).ok().stdout;
    assert!(shown.contains("yes, by map"), "{shown}");

    run(&dir, &["send", "--from=me", "--to=ann", "--body=wait for me"]).ok();
    assert_eq!(run(&dir, &["agent", "show", "ann", "--json"]).ok().json()["waiting"], 1);
    let refused = run(&dir, &["agent", "remove", "carl"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("connected by map") && refused.stderr.contains("--force"),
        "{}",
        refused.stderr
    );
    run(&dir, &["agent", "remove", "carl", "--force"]).ok();
    let removed = run(&dir, &["agent", "remove", "ann"]).ok().stdout;
    assert!(removed.contains("removed") && removed.contains("1 of its messages"), "{removed}");
    let left = run(&dir, &["agents", "--json"]).ok().json();
    assert_eq!((find(&left, "ann"), find(&left, "carl")), (Value::Null, Value::Null));
    // What was written to it stays, and its sender finds it.
    let kept = run(&dir, &["search", "wait", "--agent=me", "--json"]).ok().json();
    assert_eq!(kept["hits"].as_array().unwrap().len(), 1, "{kept}");
    let gone = run(&dir, &["agent", "remove", "anm"]);
    assert!(gone.code != 0 && gone.stderr.contains("there is no agent anm"), "{}", gone.stderr);
    // Only for administrators.
    let token = run(&dir, &["token", "create", "--role=agent", "--name=eve"]).ok().stdout;
    let denied = run(&dir, &["agent", "remove", "me", "--token", token.trim()]);
    assert_ne!(denied.code, 0);
    drop(connected);
    drop(office);
}

// F9, F33
#[tokio::test]
async fn a_token_makes_its_name_known_and_its_bearer_is_entered_by_its_first_message() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    for role in ["agent", "user"] {
        let name = format!("ann-{role}");
        run(&dir, &["token", "create", "--role", role, "--name", &name]).ok();
        // The example of `posthaste --help`.
        let sent = run(&dir, &["send", "--from=me", "--to", &name, "--body=hello", "--json"]).ok().json();
        assert_eq!(sent["receipts"][0], json!({ "agent": name, "copy": "to", "state": "queued" }));
        let inbox = run(&dir, &["inbox", "--agent", &name, "--json"]).ok().json();
        assert_eq!(inbox["messages"][0]["body"], "hello");
    }
    let hank = run(&dir, &["token", "create", "--role=agent", "--name=hank"]).ok().stdout;
    let hank = hank.trim();
    assert_eq!(run(&dir, &["inbox", "--token", hank, "--json"]).ok().json()["messages"], json!([]));
    run(&dir, &["send", "--token", hank, "--to=ann-agent", "--body=from hank"]).ok();
    let first = run(&dir, &["inbox", "--agent=ann-agent", "--json"]).ok().json();
    assert_eq!(first["messages"][0]["from"], "hank");
    let ida = run(&dir, &["token", "create", "--role=agent", "--name=ida"]).ok().stdout;
    let mut client = Client::open_at(office.url(), ida.trim()).await;
    assert_eq!(client.call("x-posthaste/register", json!({})).await.unwrap()["id"], "ida");
    let again = run(&dir, &["register", "--token", ida.trim(), "--role=cook"]).ok().stdout;
    assert!(again.contains("ida was registered already"), "{again}");
}

// F8
#[test]
fn reading_commands_register_no_agent() {
    let dir = TestDir::new();
    run(&dir, &["register", "typo"]).ok();
    let looked = run(&dir, &["inbox", "--agent=typooo"]);
    assert_ne!(looked.code, 0);
    assert!(
        looked.stderr.contains("there is no agent typooo") && looked.stderr.contains("typo"),
        "{}",
        looked.stderr
    );
    assert_ne!(run(&dir, &["contacts", "--agent=typooo"]).code, 0);
    assert_ne!(run(&dir, &["send", "--from=me", "--to=ghost", "--body=x"]).code, 0);
    assert_eq!(run(&dir, &["inbox", "--json"]).ok().json()["messages"], json!([]));
    let agents = run(&dir, &["agents", "--json"]).ok().json();
    assert_eq!(agents["agents"].as_array().unwrap().len(), 1, "{agents}");
}

// F34, F54
#[test]
fn refusals_say_what_to_do_about_names() {
    let dir = TestDir::new();
    for name in ["ann", "bob", "Jos\u{e9}"] {
        run(&dir, &["register", name]).ok();
    }
    let listed = run(&dir, &["send", "--from=me", "--to=ann,bob", "--body=x"]);
    assert!(listed.stderr.contains("--to ann --to bob"), "{}", listed.stderr);
    let near = run(&dir, &["send", "--from=me", "--to=jose", "--body=x"]);
    assert!(near.stderr.contains("Jos\u{e9}"), "{}", near.stderr);
    let blocked = run(&dir, &["contacts", "block", "bpb", "--agent=ann"]);
    assert!(blocked.code != 0 && blocked.stderr.contains("bob"), "{}", blocked.stderr);
    run(&dir, &["contacts", "block", "bob", "--agent=ann"]).ok();
    // F32
    for name in ["all", "role:x", "a@b", "@me", "operator"] {
        let refused = run(&dir, &["register", name]);
        assert_ne!(refused.code, 0, "{name}");
        assert!(refused.stderr.contains("name"), "{name}: {}", refused.stderr);
    }
    let refused = run(&dir, &["send", "--from=all", "--to=ann", "--body=x"]);
    assert!(refused.code != 0 && refused.stderr.contains("address"), "{}", refused.stderr);
}

// F44
#[tokio::test]
async fn the_operator_is_reached_from_every_door() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let token = run(&dir, &["token", "create", "--role=agent", "--name=ann"]).ok().stdout;
    let token = token.trim();
    run(&dir, &["send", "--token", token, "--to=operator", "--body=by the command line"]).ok();
    let mut map = Client::agent_at(office.url(), token, "ann").await;
    for to in [json!("operator"), json!({ "agent": "operator" }), json!({ "agent": "admin" })] {
        map.call("map/send", json!({ "to": to, "payload": "by MAP" })).await.unwrap();
    }
    let inbox = run(&dir, &["inbox", "--json"]).ok().json();
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 4, "{inbox}");
    assert_eq!(run(&dir, &["inbox", "--agent=operator", "--json"]).ok().json(), inbox);
    // By MCP in a project, which is a realm of its own.
    let coder = Mcp::bearer(&office, "agent", "coder").await;
    coder.project("/tmp/shop", &["BlueLake"]).await;
    coder.send("/tmp/shop", "BlueLake", "operator", "by MCP").await;
    coder.send("/tmp/shop", "BlueLake", "admin", "by MCP again").await;
    let there = run(&dir, &["inbox", "--realm=tmp-shop", "--json"]).ok().json()["messages"].take();
    assert_eq!((&there[0]["subject"], &there[1]["subject"]), (&json!("by MCP again"), &json!("by MCP")));
    // By the command line in another realm.
    run(&dir, &["register", "clerk", "--realm=shop"]).ok();
    run(&dir, &["send", "--realm=shop", "--from=clerk", "--to=operator", "--body=help"]).ok();
    let there = run(&dir, &["inbox", "--realm=shop", "--json"]).ok().json();
    assert_eq!(there["messages"][0]["body"], "help");
    // The operator answers.
    run(&dir, &["reply", inbox["messages"][0]["id"].as_str().unwrap(), "--body=what is it?"]).ok();
    assert_eq!(map.message().await["from"], "admin");
}

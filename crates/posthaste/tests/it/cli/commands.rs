//! What the commands do at a running server and on the database itself.

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::{Office, Trouble};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A token works from the moment it is made until it expires or is revoked, with and without a running server.
#[tokio::test]
async fn tokens_are_made_listed_and_revoked_with_and_without_a_server() {
    let dir = TestDir::new();
    let create = ["token", "create", "--role", "agent", "--name", "ann"];
    let before = dir.posthaste().args(create).run();
    assert_eq!(before.code, 0, "{}", before.stderr);
    let first = before.stdout.trim().to_owned();
    assert_eq!(before.stdout, format!("{first}\n"), "the token and nothing else");

    let office = Office::open(dir.path());
    let second = dir.posthaste().args(create).run().stdout.trim().to_owned();
    assert_ne!(first, second);
    for token in [&first, &second] {
        assert_eq!(
            whoami(&office, token).await,
            Ok(json!({ "name": "ann", "role": "agent", "realm": "main" }))
        );
    }
    let listed = dir.posthaste().args(["token", "list", "--json"]).run();
    let tokens = &json(&listed.stdout)["tokens"];
    assert_eq!(tokens.as_array().unwrap().len(), 2);
    assert!(!listed.stdout.contains(&first), "a token is shown once");
    let id = tokens[0]["id"].as_str().unwrap();
    assert_eq!(dir.posthaste().args(["token", "revoke", id]).run().code, 0);
    assert_eq!(whoami(&office, &first).await, Err(Trouble::Refused("unauthorized".into())));
    assert!(whoami(&office, &second).await.is_ok());
    assert_eq!(dir.posthaste().args(["token", "revoke", "nothing"]).run().code, 8);
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let made =
        dir.posthaste().args(["token", "create", "--role", "user", "--name", "u", "--expires", "1s"]).run();
    assert_eq!(made.code, 0, "{}", made.stderr);
    let token = made.stdout.trim();
    assert!(whoami(&office, token).await.is_ok(), "it is good for a second");
    let started = std::time::Instant::now();
    while whoami(&office, token).await.is_ok() {
        assert!(started.elapsed().as_secs() < 5, "it does not expire");
    }
    assert_eq!(whoami(&office, token).await, Err(Trouble::Refused("unauthorized".into())));
    assert_eq!(office.close(), Some(0));
}

/// A token of one realm is not valid in another.
#[tokio::test]
async fn a_token_belongs_to_its_realm() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let create = ["token", "create", "--role", "admin", "--name", "adm", "--realm", "shop"];
    let token = dir.posthaste().args(create).run().stdout.trim().to_owned();
    assert_eq!(whoami(&office, &token).await, Err(Trouble::Refused("unauthorized".into())));
    let shop = office.as_bearer(&token).in_realm("shop");
    let known = shop.call("whoami", json!({})).await;
    assert_eq!(known, Ok(json!({ "name": "adm", "role": "admin", "realm": "shop" })));
    assert_eq!(office.get("/r/elsewhere/health").await.0, 404, "a request makes no realm");
    assert_eq!(office.get("/r/..%2F..%2Fetc/health").await.0, 404);
    assert_eq!(office.close(), Some(0));
}

/// Only administrators act for others or make tokens.
#[tokio::test]
async fn an_agents_token_acts_for_that_agent_only() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    for agent in ["ann", "bob"] {
        office.register(agent).await;
    }
    let token = dir.posthaste().args(["token", "create", "--role", "agent", "--name", "ann"]).run().stdout;
    let ann = office.as_bearer(token.trim());
    assert!(ann.call("send", json!({ "to": ["bob"], "body": "hello" })).await.is_ok());
    let denied = Err(Trouble::Refused("not_allowed".into()));
    assert_eq!(ann.call("send", json!({ "from": "bob", "to": ["ann"], "body": "forged" })).await, denied);
    assert_eq!(ann.call("inbox", json!({ "agent": "bob" })).await, denied);
    assert_eq!(ann.call("token.create", json!({ "role": "admin", "name": "x" })).await, denied);
    assert_eq!(ann.call("token.list", json!({})).await, denied);
    assert_eq!(ann.call("realm.open", json!({ "name": "x" })).await, denied);
    assert_eq!(office.close(), Some(0));
}

/// A backup taken while mail comes in holds one moment; a restore brings that moment back under a new history.
#[tokio::test]
async fn a_backup_is_taken_while_the_server_runs_and_restored_when_it_is_stopped() {
    let dir = TestDir::new();
    let file = dir.path().join("kept.posthaste");
    let file = file.to_str().unwrap();
    let office = Office::open(dir.path());
    office.register("ann").await;
    office.send("ann", "ann", "before", "1").await.unwrap();
    let history = office.get("/x-posthaste/status").await.1["history"].clone();
    let backup = dir.posthaste().args(["backup", file, "--json"]).run();
    assert_eq!(backup.code, 0, "{}", backup.stderr);
    assert_eq!(
        dir.posthaste().args(["backup", file]).run().code,
        2,
        "a file that exists is not replaced unasked"
    );
    office.send("ann", "ann", "after", "2").await.unwrap();
    assert_eq!(dir.posthaste().args(["restore", file, "--force"]).run().code, 5, "the server is running");
    assert_eq!(office.close(), Some(0));

    assert_eq!(
        dir.posthaste().args(["restore", file]).run().code,
        2,
        "a realm that exists is not replaced unasked"
    );
    let restore = dir.posthaste().args(["restore", file, "--force"]).run();
    assert_eq!(restore.code, 0, "{}", restore.stderr);
    let office = Office::open(dir.path());
    let bodies: Vec<Value> =
        office.inbox("ann", 0).await.iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies, [json!("before")]);
    assert_ne!(
        office.get("/x-posthaste/status").await.1["history"],
        history,
        "cursors of the old history can be told"
    );
    assert_eq!(office.close(), Some(0));
    let other =
        dir.write("other.db", "this is not a database, but long enough to look at".repeat(40).as_str());
    assert_ne!(dir.posthaste().args(["restore", other.to_str().unwrap(), "--force"]).run().code, 0);
    assert_eq!(dir.posthaste().args(["doctor"]).run().code, 0, "the realm is still there");
}

/// What brings a realm back says how many tokens came along, and can leave them out.
#[tokio::test]
async fn restored_and_imported_tokens_are_reported_and_can_be_left_out() {
    let dir = TestDir::new();
    let [kept, lines] = ["kept.posthaste", "kept.jsonl"].map(|name| dir.path().join(name));
    let [kept, lines] = [kept.to_str().unwrap(), lines.to_str().unwrap()];
    let office = Office::open(dir.path());
    let mut tokens = Vec::new();
    for (role, name) in [("admin", "root"), ("agent", "ann"), ("user", "gone")] {
        let made = office.call("token.create", json!({ "role": role, "name": name })).await.unwrap();
        tokens.push(made["token"].as_str().unwrap().to_owned());
        if name == "gone" {
            office.call("token.revoke", json!({ "id": made["id"] })).await.unwrap();
        }
    }
    assert_eq!(office.close(), Some(0));
    dir.posthaste().args(["backup", kept]).run().ok();
    dir.posthaste().args(["export", lines]).run().ok();
    let lets_in = async || {
        let office = Office::open(dir.path());
        let mut open = 0;
        for token in &tokens {
            open += usize::from(office.as_bearer(token).call("whoami", json!({})).await.is_ok());
        }
        assert_eq!(office.close(), Some(0));
        open
    };
    for words in [["restore", kept], ["import", lines]] {
        let ran = dir.posthaste().args(words).args(["--force"]).run().ok();
        assert!(
            ran.stderr.contains("2 tokens (1 of administrators) came along"),
            "{words:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains("--without-tokens"), "{words:?}: {}", ran.stderr);
        assert_eq!(lets_in().await, 2, "{words:?}");
        let ran = dir.posthaste().args(words).args(["--force", "--without-tokens", "--json"]).run().ok();
        assert_eq!(ran.json()["tokens"], json!({ "valid": 2, "admins": 1, "dropped": true }), "{words:?}");
        assert_eq!(lets_in().await, 0, "{words:?}");
    }
}

#[tokio::test]
async fn doctor_reports_problems() {
    let dir = TestDir::new();
    assert_eq!(Office::open(dir.path()).close(), Some(0));
    assert_eq!(dir.posthaste().args(["doctor"]).run().code, 0);
    private(&dir.path().join("admin.token"), 0o644);
    let found = dir.posthaste().args(["doctor", "--json"]).run();
    assert_eq!(found.code, 6);
    let problems = json(&found.stdout);
    let problem =
        problems.as_array().unwrap().iter().find(|finding| finding["verdict"] == "problem").unwrap();
    assert_eq!(problem["check"], "admin.token");
    private(&dir.path().join("admin.token"), 0o600);
    dir.write("realms/main.db", &"damaged ".repeat(4_000));
    assert_eq!(dir.posthaste().args(["doctor"]).run().code, 6);
}

#[tokio::test]
async fn status_shows_health_and_figures() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let status = dir.posthaste().args(["status", "--json"]).run();
    assert_eq!(status.code, 0, "{}", status.stderr);
    let status = json(&status.stdout);
    assert_eq!(
        (&status["health"]["status"], &status["status"]["realm"]),
        (&json!("healthy"), &json!("main"))
    );
    assert!(status["status"]["limits"]["message_bytes"].as_u64() > Some(0));
    assert_eq!(office.close(), Some(0));
    assert_eq!(dir.posthaste().args(["status", "--listen", "127.0.0.1:1"]).run().code, 3);
}

/// Every bad input gets an error in the protocol's own form, and nothing is half-written.
#[tokio::test]
async fn bad_input_is_answered_clearly() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("1", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/nothing"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/send","params":{}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/send","params":{"from":"ann","to":"ann","body":""}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/send","params":{"from":"ann","to":["ann"],"body":1,"extra":1}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/send","params":{"from":"ann","to":["ann"],"body":"","priority":9}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/send","params":{"from":"ann","to":["stranger"],"body":""}}"#,
            -32000,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/search","params":{"query":"\"open"}}"#, -32602),
    ] {
        let answer = office.post(body).await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
    }
    let large = "x".repeat((1 << 20) + 1);
    let refused = office.send("ann", "ann", &large, "large").await;
    assert_eq!(refused, Err(Trouble::Refused("too_large".into())));
    assert!(office.inbox("ann", 0).await.is_empty());
    assert_eq!(office.close(), Some(0));
}

async fn whoami(office: &Office, token: &str) -> crate::office::Answer {
    office.as_bearer(token).call("whoami", json!({})).await
}

fn private(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn databases_are_private_to_their_owner() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (dir, target) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    office.register("ann").await;
    let file = dir.path().join("kept.db");
    dir.posthaste().args(["backup", file.to_str().unwrap()]).run().ok();
    assert_eq!(office.close(), Some(0));
    // A directory that was made by hand and is open to all.
    for folder in [target.path().to_owned(), target.path().join("realms")] {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    target.posthaste().args(["restore", file.to_str().unwrap()]).run().ok();
    let office = Office::open(target.path());
    office.call("realm.open", json!({ "name": "later" })).await.unwrap();
    let mode = |name: &str| std::fs::metadata(target.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode(""), mode("realms")), (0o700, 0o700));
    for name in ["main.db", "main.db-wal", "later.db", "later.db-wal", "later.db-shm"] {
        assert_eq!(mode(&format!("realms/{name}")), 0o600, "{name}");
    }
    assert_eq!(office.close(), Some(0));
}

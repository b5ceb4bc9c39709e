//! The MCP door from outside: who may do what, what is refused and how, and where projects live.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

const APP: &str = "/srv/app";

#[tokio::test]
async fn plain_calls_work_at_every_address_without_a_session() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let operator = Mcp::operator(&office);
    operator.project(APP, &["BlueLake"]).await;
    for path in ["/mcp", "/mcp/", "/api", "/api/", "/r/main/mcp", "/r/main/api/"] {
        let here = Mcp { url: format!("{}{path}", office.url()), ..operator.clone() };
        let inbox = here.result("fetch_inbox", json!({ "project_key": APP, "agent_name": "BlueLake" })).await;
        assert_eq!(
            inbox,
            json!({
                "content": [
                    { "type": "text", "text": "[]" },
                    { "type": "resource", "resource": {
                        "uri": "posthaste://empty", "mimeType": "text/plain", "text": "The inbox is empty." } },
                ],
                "structuredContent": { "result": [] },
                "isError": false,
            }),
            "{path}"
        );
        let narrow = here.request(reqwest::Method::POST).header("accept", "text/plain");
        let answer = narrow.body(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.text().await.unwrap(), r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
    }
    let stranger = Mcp::at(&format!("{}/mcp", office.url()), None);
    let refused = stranger.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    assert_eq!(
        (refused.status().as_u16(), refused.headers()["www-authenticate"].to_str().unwrap()),
        (401, "Bearer")
    );
    assert_eq!(operator.request(reqwest::Method::GET).send().await.unwrap().status().as_u16(), 405);
    let bodies: [(&[u8], i64); 4] = [
        (b"{", -32700),
        // F14
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700),
        (b"[]", -32600),
        (br#"{"jsonrpc":"2.0","id":1}"#, -32600),
    ];
    for (body, code) in bodies {
        let answer = operator.request(reqwest::Method::POST).body(body).send().await.unwrap();
        let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], code, "{}", String::from_utf8_lossy(body));
    }
    for (method, params) in [("nope", json!({})), ("tools/call", json!([])), ("resources/read", json!({}))] {
        assert!(operator.method(method, params).await["error"]["code"].is_i64(), "{method}");
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn callers_act_for_an_agent_as_its_owner_or_with_its_token_only() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let (ann, bob) = (Mcp::bearer(&office, "user", "ann").await, Mcp::bearer(&office, "agent", "bob").await);
    ann.call("ensure_project", json!({ "human_key": APP })).await;
    let register = |name: &str| json!({ "project_key": APP, "program": "p", "model": "m", "name": name });
    let secret = ann.call("register_agent", register("BlueLake")).await["registration_token"].clone();
    bob.call("register_agent", register("GreenFox")).await;
    let message = json!({ "project_key": APP, "sender_name": "BlueLake", "to": ["GreenFox"], "subject": "s", "body_md": "b" });
    assert_eq!(bob.fails("send_message", message.clone()).await.0, "AUTHENTICATION_REQUIRED");
    for tool in
        ["fetch_inbox", "release_file_reservations", "list_contacts", "deregister_agent", "wait_for_mail"]
    {
        let given = json!({ "project_key": APP, "agent_name": "BlueLake" });
        assert_eq!(bob.fails(tool, given).await.0, "AUTHENTICATION_REQUIRED", "{tool}");
    }
    let inbox = format!("resource://inbox/BlueLake?project={APP}");
    assert!(bob.method("resources/read", json!({ "uri": inbox })).await["error"]["message"].is_string());
    assert_eq!(bob.fails("register_agent", register("BlueLake")).await.0, "NAME_TAKEN");
    // With the token bob may; ann may without, for it is hers; a wrong one is refused even to administrators.
    let with = |token: &Value| {
        let mut message = message.clone();
        message["sender_token"] = token.clone();
        message
    };
    assert_eq!(bob.call("send_message", with(&secret)).await["verified_sender"], true);
    ann.call("send_message", message.clone()).await;
    Mcp::operator(&office).call("send_message", message.clone()).await;
    let wrong = Mcp::operator(&office).fails("send_message", with(&json!("pha_wrong"))).await;
    assert_eq!(wrong.0, "AUTHENTICATION_REQUIRED");
    let mut back = register("BlueLake");
    back["registration_token"] = secret.clone();
    assert_eq!(
        bob.call("register_agent", back).await["registration_token"],
        secret,
        "the token stays the same"
    );
    // What is not one's own is not found by searching either.
    let found = |who: Mcp| async move {
        who.call("search_messages", json!({ "project_key": APP, "query": "s OR b" })).await
    };
    assert_eq!(found(ann.clone()).await.as_array().unwrap().len(), 3);
    let carl = Mcp::bearer(&office, "user", "carl").await;
    assert_eq!(found(carl).await, json!([]));
    // A token ends with its agent, at once; registering the name again makes another.
    ann.call("deregister_agent", json!({ "project_key": APP, "agent_name": "BlueLake" })).await;
    assert!(bob.fails("send_message", with(&secret)).await.1.contains("not found"));
    let again = ann.call("register_agent", register("BlueLake")).await["registration_token"].clone();
    assert_ne!(again, secret);
    assert_eq!(bob.fails("send_message", with(&secret)).await.0, "AUTHENTICATION_REQUIRED");
    bob.call("send_message", with(&again)).await;
    assert_eq!(office.close(), Some(0));

    // The setting that trusts this machine lets bob act for every agent, as the protocol's first server did.
    let office = Office::open_in(dir.path(), dir.path(), &["--trust-local"]);
    let bob = Mcp::bearer(&office, "agent", "bob2").await;
    bob.call("send_message", message).await;
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn errors_say_what_an_agent_can_do_about_them() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox"]).await;
    let message = |member: &str, value: Value| {
        let mut given = json!({ "project_key": APP, "sender_name": "BlueLake", "to": ["GreenFox"], "subject": "s", "body_md": "b" });
        given[member] = value;
        given
    };
    let paths = |path: &str| json!({ "project_key": APP, "agent_name": "BlueLake", "paths": [path] });
    let big = "x".repeat(1_100_000);
    let cases = [
        ("ensure_project", json!({ "human_key": "rel/path" }), "INVALID_PROJECT", "absolute path"),
        (
            "fetch_inbox",
            json!({ "project_key": "/srv/ap", "agent_name": "BlueLake" }),
            "PROJECT_NOT_FOUND",
            "did you mean /srv/app",
        ),
        (
            "fetch_inbox",
            json!({ "project_key": APP, "agent_name": "BlueLaek" }),
            "AGENT_NOT_FOUND",
            "did you mean BlueLake",
        ),
        ("send_message", message("to", json!(["GrenFox"])), "AGENT_NOT_FOUND", "GreenFox"),
        ("send_message", message("to", json!([])), "NO_RECIPIENTS", "'to'"),
        ("send_message", message("to", json!(7)), "INVALID_ARGUMENT", "a list of strings"),
        (
            "send_message",
            message("importance", json!("huge")),
            "INVALID_ARGUMENT",
            "low, normal, high, urgent",
        ),
        ("send_message", message("body_md", json!(big)), "TOO_LARGE", "at most 1048576"),
        ("send_message", message("body_md", json!("<script>x</script>")), "UNSAFE_MARKDOWN", "backticks"),
        ("send_message", message("thread_id", json!(" x ")), "INVALID_THREAD_ID", "white space"),
        ("send_message", message("topic", json!("no spaces")), "INVALID_TOPIC", "1 to 64"),
        (
            "send_message",
            message("attachment_paths", json!(["nowhere.png"])),
            "ATTACHMENT_REFUSED",
            "send the bytes",
        ),
        ("send_message", message("bodymd", json!("x")), "INVALID_ARGUMENT", "did you mean body_md"),
        (
            "send_message",
            json!({ "project_key": APP }),
            "MISSING_ARGUMENT",
            "sender_name, to, subject, body_md",
        ),
        (
            "fetch_inbox",
            json!({ "project_key": APP, "agent_name": "BlueLake", "limit": 0 }),
            "INVALID_LIMIT",
            "1 to 1000",
        ),
        (
            "fetch_inbox",
            json!({ "project_key": APP, "agent_name": "BlueLake", "since_ts": "soon" }),
            "INVALID_TIMESTAMP",
            "2026",
        ),
        ("file_reservation_paths", paths("/etc/passwd"), "INVALID_PATH", "relative to the project"),
        ("file_reservation_paths", paths("../up"), "INVALID_PATH", "climb"),
        ("file_reservation_paths", paths("src/[a"), "INVALID_PATH", "not closed"),
        (
            "file_reservation_paths",
            json!({ "project_key": APP, "agent_name": "BlueLake", "paths": [] }),
            "EMPTY_PATHS",
            "src/app.py",
        ),
        (
            "register_agent",
            json!({ "project_key": APP, "program": "p", "model": "m", "name": "no good" }),
            "INVALID_NAME",
            "BlueLake",
        ),
        (
            "acknowledge_message",
            json!({ "project_key": APP, "agent_name": "BlueLake", "message_id": 999 }),
            "MESSAGE_NOT_FOUND",
            "fetch_inbox",
        ),
        (
            "set_contact_policy",
            json!({ "project_key": APP, "agent_name": "BlueLake", "policy": "x" }),
            "INVALID_ARGUMENT",
            "block_all",
        ),
        ("fetch_inbx", json!({}), "UNKNOWN_TOOL", "did you mean fetch_inbox"),
    ];
    for (tool, given, code, part) in cases {
        let (found, words) = mcp.fails(tool, given).await;
        assert_eq!(found, code, "{tool}: {words}");
        assert!(words.contains(part), "{tool}: {words}");
    }
    // Nothing of all that was half done.
    assert_eq!(
        mcp.call("fetch_inbox", json!({ "project_key": APP, "agent_name": "GreenFox" })).await,
        json!([])
    );
    assert_eq!(mcp.resource("resource://file_reservations/srv-app").await, json!([]));
    for uri in
        ["resource://inbox/x", "resource://nope/x", "http://x", "resource://message/x?project=/srv/app"]
    {
        assert!(mcp.method("resources/read", json!({ "uri": uri })).await["error"]["code"].is_i64(), "{uri}");
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_project_that_the_server_was_started_in_is_the_realm_that_all_doors_share() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join(".git")).unwrap();
    std::fs::create_dir_all(top.join("src")).unwrap();
    let config = "[remote \"origin\"]\n\turl = git@example.org:team/app.git\n";
    std::fs::write(top.join(".git/config"), config).unwrap();
    let office = Office::open_in(data.path(), &top.join("src"), &["--project", "/elsewhere/app"]);
    let mcp = Mcp::operator(&office);
    let here = top.to_str().unwrap();
    for key in [here, "/elsewhere/app", "https://example.org/team/app"] {
        let project = mcp.call("ensure_project", json!({ "human_key": key })).await;
        assert_eq!(project["slug"], "main", "{key}");
    }
    // One directory and one event log: an agent of another door is written to, and reads it there.
    office.register("walter").await;
    mcp.project(here, &["BlueLake"]).await;
    let agents = mcp.call("list_agents", json!({ "project_key": here })).await;
    let doors: Vec<_> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| (agent["name"].clone(), agent["door"].clone()))
        .collect();
    assert_eq!(doors, [(json!("BlueLake"), json!("mcp")), (json!("walter"), json!("cli"))]);
    mcp.send(here, "BlueLake", "walter", "across").await;
    assert_eq!(office.inbox("walter", 0).await[0]["subject"], "across");
    office.send("walter", "BlueLake", "back", "k").await.unwrap();
    let inbox = mcp
        .call(
            "fetch_inbox",
            json!({ "project_key": "main", "agent_name": "BlueLake", "include_bodies": true }),
        )
        .await;
    assert_eq!((&inbox[0]["from"], &inbox[0]["body_md"]), (&json!("walter"), &json!("back")));
    // A project that no realm claims is a realm of its own, and stays one after a restart.
    let other = mcp.project("/srv/other", &["RedElm"]).await;
    assert_eq!(other["slug"], "srv-other");
    assert_eq!(office.close(), Some(0));
    let office = Office::open(data.path());
    let mcp = Mcp::operator(&office);
    assert_eq!(mcp.call("ensure_project", json!({ "human_key": "/srv/other" })).await, other);
    assert_eq!(mcp.call("ensure_project", json!({ "human_key": here })).await["slug"], "main");
    let names = mcp.resource("resource://tooling/projects").await;
    assert!(names.as_array().unwrap().iter().any(|project| project["slug"] == "srv-other"), "{names}");
    // From one project to the other by name@project.
    let given = json!({ "project_key": here, "sender_name": "BlueLake", "to": ["RedElm@srv-other"], "subject": "far", "body_md": "b" });
    mcp.call("send_message", given).await;
    let wait = json!({ "project_key": "/srv/other", "agent_name": "RedElm", "timeout_seconds": 8 });
    assert_eq!(mcp.call("wait_for_mail", wait).await["messages"][0]["subject"], "far");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_realms_own_door_opens_that_realm_only() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let operator = Mcp::operator(&office);
    operator.project("/srv/secret", &["BlueLake"]).await;
    office.call("realm.open", json!({ "name": "shop" })).await.unwrap();
    let made = office.as_bearer(office.token()).in_realm("shop");
    let token = made.call("token.create", json!({ "role": "user", "name": "sue" })).await.unwrap();
    let sue = Mcp::at(&format!("{}/r/shop/mcp", office.url()), token["token"].as_str());
    assert_eq!(
        sue.fails("list_agents", json!({ "project_key": "/srv/secret" })).await.0,
        "PROJECT_NOT_FOUND"
    );
    // A path is a name that each realm gives for itself.
    assert_eq!(sue.call("ensure_project", json!({ "human_key": "/srv/secret" })).await["slug"], "shop");
    assert_eq!(sue.call("list_agents", json!({ "project_key": "/srv/secret" })).await, json!([]));
    assert_eq!(sue.call("ensure_project", json!({ "human_key": "/srv/shop" })).await["slug"], "shop");
    sue.project("/srv/shop", &["GreenFox"]).await;
    assert_eq!(sue.call("list_agents", json!({ "project_key": "shop" })).await[0]["name"], "GreenFox");
    // Her token opens no other door.
    let wrong = Mcp::at(&format!("{}/mcp", office.url()), token["token"].as_str());
    assert_eq!(
        wrong.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await.status().as_u16(),
        401
    );
    // A realm that is no project is not opened by the main door either.
    let eve = Mcp::bearer(&office, "user", "eve").await;
    office.call("realm.open", json!({ "name": "vault" })).await.unwrap();
    assert_eq!(eve.fails("list_agents", json!({ "project_key": "vault" })).await.0, "PROJECT_NOT_FOUND");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn files_are_kept_by_their_hash_and_read_by_the_recipients_of_the_message() {
    let (data, work, elsewhere) = (TestDir::new(), TestDir::new(), TestDir::new());
    let root = work.path().canonicalize().unwrap();
    let path = root.to_str().unwrap();
    work.write("plan.md", "# Plan");
    std::fs::write(root.join("big.bin"), vec![0_u8; (10 << 20) + 1]).unwrap();
    let outside = elsewhere.write("secret.txt", "not yours");
    let office = Office::open_in(data.path(), data.path(), &["--project", path]);
    let ann = Mcp::bearer(&office, "user", "ann").await;
    ann.project(path, &["BlueLake", "GreenFox"]).await;
    let message = |file: &str| {
        json!({ "project_key": path, "sender_name": "BlueLake", "to": ["GreenFox"], "subject": "s", "body_md": "b",
                "attachment_paths": [file] })
    };
    let sent = ann.call("send_message", message("plan.md")).await;
    let file = &sent["attachments"][0];
    assert_eq!(
        (&file["name"], &file["size"], &file["media_type"]),
        (&json!("plan.md"), &json!(6), &json!("text/markdown"))
    );
    let hash = file["sha256"].as_str().unwrap();
    let realm =
        ann.call("ensure_project", json!({ "human_key": path })).await["slug"].as_str().unwrap().to_owned();
    let kept = data.path().join("attachments").join(realm).join(&hash[..2]).join(hash);
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "# Plan");
    let inbox = ann.call("fetch_inbox", json!({ "project_key": path, "agent_name": "GreenFox" })).await;
    assert_eq!(inbox[0]["attachments"][0]["sha256"], hash);
    let uri = format!("resource://attachment/{}/{hash}?project={path}&agent=GreenFox", inbox[0]["id"]);
    let read = ann.method("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["result"]["contents"][0]["blob"], "IyBQbGFu");
    let carl = Mcp::bearer(&office, "user", "carl").await;
    assert!(carl.method("resources/read", json!({ "uri": uri })).await["error"]["code"].is_i64());
    for (file, part) in [
        ("big.bin", "too large"),
        (outside.to_str().unwrap(), "that the operator named"),
        ("../x", "that the operator named"),
        ("none.txt", "no such file"),
        (".", "not a plain name"),
    ] {
        let (code, words) = ann.fails("send_message", message(file)).await;
        assert_eq!(code, "ATTACHMENT_REFUSED", "{file}");
        assert!(words.contains(part), "{file}: {words}");
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn every_agent_may_use_a_thread_name_and_reads_only_its_own_mail() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox", "RedElm"]).await;
    let say = |from: &str, to: &str, text: &str| json!({ "project_key": APP, "sender_name": from, "to": [to], "subject": "s", "body_md": text, "thread_id": "TKT-1" });
    mcp.call("send_message", say("BlueLake", "GreenFox", "TODO: between us")).await;
    let third = mcp.call("send_message", say("RedElm", "BlueLake", "may I?")).await;
    assert_eq!(third["deliveries"][0]["payload"]["thread_id"], "TKT-1");
    let gist = |agent: &str| json!({ "project_key": APP, "thread_id": "TKT-1", "agent_name": agent });
    let seen = mcp.call("summarize_thread", gist("BlueLake")).await;
    assert_eq!(seen["summary"]["participants"], json!(["BlueLake", "RedElm"]));
    let seen = mcp.call("summarize_thread", gist("RedElm")).await;
    assert_eq!(
        (&seen["summary"]["total_messages"], &seen["summary"]["action_items"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn tasks_and_conversations_run_from_start_to_end() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["Boss", "Worker", "Other"]).await;
    let as_agent = |agent: &str, mut given: Value| {
        given["project_key"] = APP.into();
        given["agent_name"] = agent.into();
        given
    };
    let asked = mcp
        .call(
            "send_request",
            as_agent("Boss", json!({ "target": "Worker", "subject": "build", "body": "please" })),
        )
        .await;
    let task = asked["task_id"].as_str().unwrap().to_owned();
    let mail = mcp.call("await_message", as_agent("Worker", json!({ "timeout_seconds": 5 }))).await;
    assert_eq!(
        (&mail["messages"][0]["subject"], &mail["messages"][0]["thread_id"]),
        (&json!("build"), &json!(task))
    );
    let reply = json!({ "target": "Boss", "subject": "Re: build", "body": "done", "task_id": task });
    assert_eq!(mcp.call("send_response", as_agent("Worker", reply)).await["kind"], "response");
    let outsider = json!({ "target": "Boss", "subject": "x", "body": "x", "task_id": task });
    assert_eq!(mcp.fails("send_response", as_agent("Other", outsider)).await.0, "TASK_NOT_FOUND");
    let note = json!({ "subject": "news", "body": "all hear this", "task_id": task });
    mcp.call("send_broadcast", as_agent("Boss", note)).await;
    assert_eq!(
        mcp.call("acknowledge_broadcast", as_agent("Other", json!({ "note": "ok" }))).await["acknowledged"],
        true
    );
    assert_eq!(mcp.call("ignore_broadcast", as_agent("Worker", json!({}))).await["ignored"], true);
    assert_eq!(mcp.fails("ignore_broadcast", as_agent("Worker", json!({}))).await.0, "MESSAGE_NOT_FOUND");
    let stop = json!({ "target": "Worker", "subject": "wait", "body": "hold on", "task_id": task });
    mcp.call("send_interrupt", as_agent("Boss", stop.clone())).await;
    let end = json!({ "task_id": task, "finish_message": "shipped" });
    let ended = mcp.call("task_complete", as_agent("Boss", end.clone())).await;
    assert_eq!(
        (&ended["completed"], &ended["message"]["subject"]),
        (&json!(true), &json!("::task_complete::"))
    );
    assert_eq!(mcp.call("task_complete", as_agent("Boss", end)).await["duplicate"], true);
    assert_eq!(mcp.fails("send_interrupt", as_agent("Boss", stop)).await.0, "TASK_ENDED");

    let opened = json!({ "participants": ["Worker"], "subject": "talk", "first_turn": "hello" });
    let talk = mcp.call("open_conversation", as_agent("Boss", opened)).await["conversation_id"].clone();
    let said = json!({ "conversation_id": talk, "text": "only for Boss", "visible_to": ["Boss", "Worker"] });
    mcp.call("add_turn", as_agent("Worker", said)).await;
    let turns = mcp.call("list_turns", as_agent("Boss", json!({ "conversation_id": talk }))).await;
    let texts: Vec<&str> =
        turns["turns"].as_array().unwrap().iter().map(|turn| turn["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["hello", "only for Boss"]);
    assert_eq!(
        mcp.fails("list_turns", as_agent("Other", json!({ "conversation_id": talk }))).await.0,
        "THREAD_NOT_FOUND"
    );
    let listed = mcp.call("list_conversations", as_agent("Worker", json!({}))).await;
    assert_eq!(listed[0]["conversation_id"], talk);
    assert_eq!(
        mcp.call("close_conversation", as_agent("Boss", json!({ "conversation_id": talk }))).await["status"],
        "completed"
    );
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn mail_of_one_moment_is_not_missed_by_asking_since_the_last_one() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(APP, &["BlueLake", "GreenFox"]).await;
    // Many at once share commits, and with them milliseconds.
    let sends = (0..40).map(|n| {
        let mcp = mcp.clone();
        async move { mcp.send(APP, "BlueLake", "GreenFox", &format!("n{n}")).await }
    });
    futures_util::future::join_all(sends).await;
    let fetch = |since: Option<String>| json!({ "project_key": APP, "agent_name": "GreenFox", "limit": 100, "since_ts": since });
    let all = mcp.call("fetch_inbox", fetch(None)).await;
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 40);
    for (later, message) in all.iter().enumerate() {
        let since = message["created_ts"].as_str().unwrap().to_owned();
        let newer = mcp.call("fetch_inbox", fetch(Some(since))).await;
        assert_eq!(newer.as_array().unwrap().len(), later, "{message}");
        let after =
            json!({ "project_key": APP, "agent_name": "GreenFox", "limit": 100, "after_id": message["id"] });
        assert_eq!(mcp.call("fetch_inbox", after).await.as_array().unwrap().len(), later);
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn few_tools_are_listed_if_few_are_asked_for_and_all_can_be_called() {
    let dir = TestDir::new();
    let office = Office::open_in(dir.path(), dir.path(), &["--tools", "core"]);
    let mcp = Mcp::operator(&office);
    let answer = mcp.method("tools/list", json!({})).await;
    let names: Vec<&str> = answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(
        answer.to_string().len() < 15_000 && names.contains(&"send_message") && !names.contains(&"whois_all"),
        "{names:?}"
    );
    mcp.project(APP, &["BlueLake"]).await;
    assert!(!names.contains(&"set_contact_policy"));
    mcp.call("set_contact_policy", json!({ "project_key": APP, "agent_name": "BlueLake", "policy": "auto" }))
        .await;
    assert_eq!(office.close(), Some(0));
    // The same words without an office: the settings are checked like all others.
    let ran = Command::new(env!("CARGO_BIN_EXE_posthaste"))
        .args(["config", "--tools", "some"])
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
}

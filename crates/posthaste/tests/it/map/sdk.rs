//! What the published SDK's types and helpers go by: whose an agent is, what states mean, and what events carry.

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

/// A connection that has said hello, and what it was answered.
async fn greeted(office: &Office, hello: Value) -> (Client, Value) {
    let mut client = Client::stranger(office).await;
    let answer = client.call("map/connect", hello).await.unwrap();
    (client, answer)
}

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

async fn agent(client: &mut Client, id: &str) -> Value {
    client.call("map/agents/get", json!({ "agentId": id })).await.unwrap()["agent"].take()
}

async fn names(client: &mut Client, params: Value) -> Vec<String> {
    let agents = client.call("map/agents/list", params).await.unwrap()["agents"].take();
    agents.as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap().to_owned()).collect()
}

/// The next event of a kind, with its envelope.
async fn event(client: &mut Client, kind: &str) -> Value {
    let kind = kind.to_owned();
    client.next(move |frame| frame["params"]["event"]["type"] == kind.as_str()).await["params"].take()
}

/// The kinds of a subscriber's events up to the message that says so.
async fn heard(client: &mut Client, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let frame = client.next(|frame| frame["method"] == "map/event").await;
        let event = &frame["params"]["event"];
        if event["data"]["payload"] == last {
            return all;
        }
        all.push(event["type"].as_str().unwrap().to_owned());
    }
}

/// Cuts a connection and waits until the server knows.
async fn cut(client: Client, watching: &mut Client) -> Value {
    drop(client);
    event(watching, "participant_disconnected").await
}

#[tokio::test]
async fn an_orphan_has_no_owner_until_its_session_comes_back() {
    let office = Office::open(&["--no-auth"]).await;
    let mut watching = Client::connect(&office, "client").await;
    watching.call("map/subscribe", json!({})).await.unwrap();
    let policy = json!({ "agentBehavior": "orphan" });
    let hello = json!({ "participantType": "agent", "disconnectPolicy": policy });
    let (mut first, greeting) = greeted(&office, hello).await;
    first.call("map/agents/register", json!({ "agentId": "ann" })).await.unwrap();
    first.call("map/agents/register", json!({ "agentId": "shy", "visibility": "system" })).await.unwrap();
    let gone = cut(first, &mut watching).await;
    assert!(gone["event"]["data"].get("name").is_none(), "{gone}");
    let orphaned = event(&mut watching, "agent_orphaned").await;
    let told = json!({ "agentId": "ann", "previousOwner": greeting["participantId"] });
    assert_eq!(orphaned["event"]["data"], told);
    assert_eq!(orphaned["causedBy"], json!([gone["eventId"]]));
    let alone = agent(&mut watching, "ann").await;
    assert_eq!((&alone["ownerId"], &alone["state"]), (&Value::Null, &json!("orphaned")));
    let resume = json!({ "participantType": "agent", "resumeToken": greeting["resumeToken"] });
    let (mut again, hello) = greeted(&office, resume).await;
    assert_eq!(hello["ownedAgents"], json!(["ann", "shy"]), "{hello}");
    for agent in hello["reclaimedAgents"].as_array().unwrap() {
        let expected = (&greeting["participantId"], &json!("idle"));
        assert_eq!((&agent["ownerId"], &agent["state"]), expected, "{agent}");
    }
    again.call("map/agents/update", json!({ "agentId": "ann", "state": "busy" })).await.unwrap();
}

#[tokio::test]
async fn only_its_principal_reclaims_an_orphan() {
    let office = Office::open(&[]).await;
    let mut admin = Client::connect_with(&office, &office.admin_token(), "client").await;
    let mut token = async |name: &str| {
        let made = admin.call("x-posthaste/token.create", json!({ "name": name, "role": "agent" })).await;
        made.unwrap()["token"].as_str().unwrap().to_owned()
    };
    let (ann, bob) = (token("ann").await, token("bob").await);
    admin.call("map/subscribe", json!({ "filter": { "eventTypes": ["agent_orphaned"] } })).await.unwrap();
    let mut first = Client::open_with(&office, &ann).await;
    let policy = json!({ "agentBehavior": "orphan" });
    let hello = json!({ "participantType": "agent", "disconnectPolicy": policy });
    first.call("map/connect", hello).await.unwrap();
    first.call("map/agents/register", json!({ "agentId": "worker" })).await.unwrap();
    drop(first);
    event(&mut admin, "agent_orphaned").await;
    let mut other = Client::connect_with(&office, &bob, "agent").await;
    assert_eq!(code(&mut other, "map/agents/register", json!({ "agentId": "worker" })).await, 3000);
    let change = json!({ "agentId": "worker", "state": "busy" });
    assert_eq!(code(&mut other, "map/agents/update", change).await, 1003);
    let mut back = Client::connect_with(&office, &ann, "agent").await;
    let own = back.call("map/agents/register", json!({ "agentId": "worker" })).await.unwrap();
    assert_eq!((&own["resumed"], &own["agent"]["state"]), (&json!(true), &json!("idle")));
    assert!(own["agent"]["ownerId"].is_string(), "{own}");
}

#[tokio::test]
async fn agents_are_listed_by_every_spelling_of_a_filter() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut client, hello) = greeted(&office, json!({ "participantType": "agent" })).await;
    let accepts = json!([{ "contentType": "application/json" }, { "contentType": "text/plain" }]);
    let one = json!({
        "agentId": "one", "role": "scout", "state": "busy", "scopes": ["team"],
        "capabilities": { "dig": true }, "capabilityDescriptor": { "accepts": accepts },
    });
    client.call("map/agents/register", one).await.unwrap();
    client.call("map/agents/spawn", json!({ "agentId": "below", "parent": "one" })).await.unwrap();
    let _other = Client::agent(&office, "two").await;
    for filter in [
        json!({ "accepts": "application/json" }),
        json!({ "accepts": ["text/html", "text/plain"] }),
        json!({ "role": "scout" }),
        json!({ "roles": ["scout"] }),
        json!({ "state": "busy" }),
        json!({ "states": ["busy", "x-odd"] }),
        json!({ "scopes": ["team"] }),
        json!({ "capability": "dig" }),
        json!({ "capabilityId": "dig" }),
    ] {
        assert_eq!(names(&mut client, filter.clone()).await, ["one"], "{filter}");
        assert_eq!(names(&mut client, json!({ "filter": filter })).await, ["one"], "in a filter: {filter}");
    }
    assert_eq!(names(&mut client, json!({ "parent": "one" })).await, ["below"]);
    assert_eq!(names(&mut client, json!({ "sessionId": hello["sessionId"] })).await, ["below", "one"]);
    assert!(names(&mut client, json!({ "accepts": "image/png" })).await.is_empty());
    assert_eq!(names(&mut client, json!({ "filter": null })).await, ["below", "one", "two"]);
}

#[tokio::test]
async fn null_members_count_as_absent() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::agent(&office, "ann").await;
    for (method, params) in [
        ("map/tasks/list", json!({ "filter": null })),
        ("map/subscribe", json!({ "filter": null, "options": null })),
        ("map/subscribe", json!({ "options": { "excludeOwnEvents": null } })),
        ("map/replay", json!({ "options": null })),
        ("map/agents/get", json!({ "agentId": "ann", "include": null })),
        ("map/agents/get", json!({ "agentId": "ann", "include": { "children": null } })),
    ] {
        let answer = client.call(method, params.clone()).await;
        assert!(answer.is_ok(), "{method} {params}: {answer:?}");
    }
    client.call("map/scopes/create", json!({ "scopeId": "plain" })).await.unwrap();
    client.call("map/scopes/delete", json!({ "scopeId": "plain" })).await.unwrap();
    let mut nameless = Client::connect(&office, "agent").await;
    nameless.call("map/agents/register", json!({ "agentId": "bare" })).await.unwrap();
    for kind in ["participant_connected", "agent_registered", "scope_created", "scope_deleted"] {
        let data = event(&mut client, kind).await["event"]["data"].take();
        assert!(!data.as_object().unwrap().values().any(Value::is_null), "{kind}: {data}");
    }
}

#[tokio::test]
async fn an_owner_sees_and_reaches_its_hidden_agents() {
    let office = Office::open(&["--no-auth"]).await;
    let mut owner = Client::agent(&office, "first").await;
    let mut other = Client::agent(&office, "other").await;
    owner.call("map/subscribe", json!({ "filter": { "eventTypes": ["agent.*"] } })).await.unwrap();
    for visibility in ["parent-only", "scope", "system"] {
        let hidden = json!({ "agentId": visibility, "visibility": visibility });
        owner.call("map/agents/register", hidden).await.unwrap();
        assert!(names(&mut owner, json!({})).await.contains(&visibility.to_owned()), "{visibility}");
        assert!(!names(&mut other, json!({})).await.contains(&visibility.to_owned()), "{visibility}");
        let send = json!({ "to": { "agent": visibility }, "payload": visibility });
        owner.call("map/send", send.clone()).await.unwrap();
        assert_eq!(owner.message().await["payload"], visibility);
        assert_eq!(code(&mut other, "map/send", send).await, 2001);
        let told = event(&mut owner, "agent_registered").await;
        assert_eq!(told["event"]["data"]["agentId"], visibility);
    }
}

#[tokio::test]
async fn permission_events_have_changes_and_effective_permissions() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    ann.call("map/subscribe", json!({ "filter": { "eventTypes": ["permissions.*"] } })).await.unwrap();
    let (see, write) = (json!({ "agents": "hierarchy" }), json!({ "agents": "direct" }));
    for overrides in [json!({ "canSee": see }), json!({ "canMessage": write })] {
        let update = json!({ "agentId": "ann", "permissionOverrides": overrides, "metadata": { "a": 1 } });
        ann.call("map/agents/update", update).await.unwrap();
    }
    event(&mut ann, "permissions_agent_updated").await;
    let told = event(&mut ann, "permissions_agent_updated").await;
    let expected = json!({
        "agentId": "ann",
        "changes": { "canMessage": write },
        "effectivePermissions": { "canSee": see, "canMessage": write },
        "updatedBy": "ann",
    });
    assert_eq!(told["event"]["data"], expected);
}

#[tokio::test]
async fn a_delivery_names_its_recipients_in_a_list() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, _bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    ann.call("map/subscribe", json!({ "filter": { "eventTypes": ["message_delivered"] } })).await.unwrap();
    ann.call("map/send", json!({ "to": { "agent": "bob" }, "payload": 1 })).await.unwrap();
    let told = event(&mut ann, "message_delivered").await;
    assert_eq!(told["event"]["data"]["deliveredTo"], json!(["bob"]));
}

#[tokio::test]
async fn own_events_are_left_out_from_the_first_to_the_last() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let mut other = Client::agent(&office, "other").await;
    let options = json!({ "options": { "excludeOwnEvents": true } });
    ann.call("map/subscribe", options).await.unwrap();
    for n in 0..20 {
        let id = format!("helper-{n}");
        ann.call("map/agents/register", json!({ "agentId": id, "scopes": ["team"] })).await.unwrap();
        ann.call("map/agents/update", json!({ "agentId": id, "state": "busy" })).await.unwrap();
        ann.call("map/agents/unregister", json!({ "agentId": id })).await.unwrap();
    }
    other.call("map/send", json!({ "to": { "agent": "ann" }, "payload": "end" })).await.unwrap();
    // The scope itself was created by the participant that registered with it.
    let kinds = heard(&mut ann, "end").await;
    assert!(kinds.iter().all(|kind| kind == "scope_created"), "{kinds:?}");
}

#[tokio::test]
async fn a_session_under_its_own_name_outlives_its_predecessor() {
    let office = Office::open(&["--no-auth"]).await;
    let mut watching = Client::agent(&office, "watching").await;
    watching.call("map/subscribe", json!({})).await.unwrap();
    let policy = json!({ "agentBehavior": "grace-period", "gracePeriodMs": 200 });
    let hello = json!({ "participantType": "client", "participantId": "desk", "disconnectPolicy": policy });
    let (mut first, _) = greeted(&office, hello.clone()).await;
    // One that goes with it shows when its time is over.
    first.call("map/agents/register", json!({ "agentId": "helper" })).await.unwrap();
    cut(first, &mut watching).await;
    let (mut second, answer) = greeted(&office, hello).await;
    assert_eq!(answer["participantId"], "desk");
    event(&mut watching, "agent_unregistered").await;
    // The server is still ending the first session.
    for n in 0..20 {
        let meta = json!({ "delivery": "queue" });
        let send = json!({ "to": { "participant": "desk" }, "payload": n, "meta": meta });
        watching.call("map/send", send).await.unwrap();
        assert_eq!(second.message().await["payload"], n);
    }
}

#[tokio::test]
async fn final_states_stay_and_only_the_suspending_caller_resumes() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let mut client = Client::connect(&office, "client").await;
    let to = |state: &str| json!({ "agentId": "ann", "state": state });
    ann.call("map/agents/update", to("suspended")).await.unwrap();
    ann.call("map/agents/update", to("idle")).await.unwrap();
    let one = json!({ "agentId": "ann" });
    client.call("map/agents/suspend", one.clone()).await.unwrap();
    let both = json!({ "agentId": "ann", "state": "busy", "metadata": { "left": true } });
    assert_eq!(code(&mut ann, "map/agents/update", both).await, 3001);
    let kept = agent(&mut ann, "ann").await;
    assert_eq!((&kept["metadata"], kept.get("permissionOverrides")), (&json!({}), None), "{kept}");
    client.call("map/agents/resume", one.clone()).await.unwrap();
    ann.call("map/agents/update", to("stopped")).await.unwrap();
    for method in ["map/agents/suspend", "map/agents/resume", "map/agents/stop"] {
        assert_eq!(code(&mut client, method, one.clone()).await, 3001, "{method}");
    }
    assert_eq!(code(&mut ann, "map/agents/update", to("idle")).await, 3001);
    ann.call("map/agents/update", json!({ "agentId": "ann", "metadata": { "exitCode": 0 } })).await.unwrap();
    ann.call("map/disconnect", json!({})).await.unwrap();
    let mut again = Client::connect(&office, "agent").await;
    let back = again.call("map/agents/register", one).await.unwrap();
    assert_eq!((&back["resumed"], &back["agent"]["state"]), (&json!(true), &json!("idle")), "{back}");
}

#[tokio::test]
async fn a_null_assignee_unassigns_a_task() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let task = json!({ "id": "t", "assignee": "ann", "meta": { "a": 1, "b": 1 } });
    ann.call("map/tasks/create", json!({ "task": task })).await.unwrap();
    let update = json!({ "taskId": "t", "meta": { "b": 2 } });
    let task = ann.call("map/tasks/update", update).await.unwrap()["task"].take();
    assert_eq!((&task["assignee"], &task["meta"]), (&json!("ann"), &json!({ "a": 1, "b": 2 })));
    let update = json!({ "taskId": "t", "assignee": null });
    let task = ann.call("map/tasks/update", update).await.unwrap()["task"].take();
    assert_eq!(task.get("assignee").and_then(Value::as_str), None, "{task}");
}

#[tokio::test]
async fn a_websocket_is_welcome_on_any_path() {
    let office = Office::open(&[]).await;
    let token = office.admin_token();
    let mut operator = Client::open_with(&office, &token).await;
    operator.call("x-posthaste/realm.open", json!({ "name": "side" })).await.unwrap();
    for path in ["/", "/ws", "/ws/map", "/foo/bar", "/r/side", "/r/side/ws/map", "/r/side/"] {
        let mut client = Client::open_on(&office, &format!("{path}?token={token}")).await;
        let hello = client.call("map/connect", json!({ "participantType": "client" })).await.unwrap();
        let realm = if path.starts_with("/r/") { "side" } else { "main" };
        assert_eq!(hello["systemInfo"]["systemId"], realm, "{path}");
    }
    // Another test of this process may have done it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    for (path, status) in [("/", 200), ("/ws", 404), ("/foo/bar", 404), ("/r/side/ws", 404)] {
        let answer = http.get(format!("http://{}{path}", office.address())).bearer_auth(&token);
        assert_eq!(answer.send().await.unwrap().status().as_u16(), status, "{path}");
    }
}

#[tokio::test]
async fn a_request_waits_as_long_as_it_says_wherever_it_says_so() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, _bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    for said in [
        json!({ "timeout": 20 }),
        json!({ "timeoutMs": 20 }),
        json!({ "options": { "timeout": 20 } }),
        json!({ "meta": { "timeout": 20 } }),
        json!({ "meta": { "ttl": 20 } }),
        json!({ "meta": { "ttlMs": 20 } }),
    ] {
        let mut ask = said.clone();
        ask["to"] = json!({ "agent": "bob" });
        ask["payload"] = json!("?");
        assert_eq!(code(&mut ann, "map/request", ask).await, 2003, "{said}");
    }
}

#[tokio::test]
async fn what_is_missing_or_not_allowed_is_said() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    assert_eq!(code(&mut ann, "map/inject", json!({ "agentId": "ann" })).await, -32602);
    ann.call("map/inject", json!({ "agentId": "ann", "content": "now" })).await.unwrap();
    ann.call("map/scopes/create", json!({ "scopeId": "open" })).await.unwrap();
    let may = json!({ "observation": { "canQuery": false } });
    let (mut blind, _) = greeted(&office, json!({ "participantType": "client", "capabilities": may })).await;
    for (method, params) in [("map/scopes/list", json!({})), ("map/scopes/get", json!({ "scopeId": "open" }))]
    {
        assert_eq!(code(&mut blind, method, params).await, 1003, "{method}");
    }
}

#[tokio::test]
async fn a_line_is_answered_whatever_stands_before_it() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&office, "client").await;
    client.text("garbage\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"map/session/info\"}").await;
    let first = client.next(|frame| frame.get("id").is_some()).await;
    assert_eq!((&first["id"], &first["error"]["code"]), (&Value::Null, &json!(-32700)));
    let second = client.next(|frame| frame["id"] == 7).await;
    assert!(second.get("result").is_some(), "{second}");
}

#[tokio::test]
async fn a_persistent_identity_leads_back_to_the_agent_that_was_left() {
    let office = Office::open(&["--no-auth"]).await;
    let mut watching = Client::connect(&office, "client").await;
    watching.call("map/subscribe", json!({})).await.unwrap();
    let known = json!({
        "name": "Ann", "persistentIdentity": { "persistentId": "did:x:ann" }, "resumePersistentIdentity": true,
    });
    let (mut first, before) = greeted(&office, json!({ "participantType": "agent" })).await;
    let ann = first.call("map/agents/register", known.clone()).await.unwrap();
    assert!(ann.get("resumed").is_none(), "{ann}");
    let (mut second, hello) = greeted(&office, json!({ "participantType": "agent" })).await;
    let other = second.call("map/agents/register", known.clone()).await.unwrap();
    assert_ne!(other["agent"]["id"], ann["agent"]["id"], "a connected agent is not taken over");
    second.call("map/agents/unregister", json!({ "agentId": other["agent"]["id"] })).await.unwrap();
    cut(first, &mut watching).await;
    let back = second.call("map/agents/register", known).await.unwrap();
    assert_eq!(back["agent"]["id"], ann["agent"]["id"], "{back}");
    assert_eq!(back["resumed"], true);
    assert_eq!(back["resumedFrom"], json!({ "previousSessionId": before["sessionId"] }));
    cut(second, &mut watching).await;
    let mut third = Client::connect(&office, "agent").await;
    let back = third.call("map/agents/register", json!({ "agentId": ann["agent"]["id"] })).await.unwrap();
    assert_eq!(back["resumedFrom"], json!({ "previousSessionId": hello["sessionId"] }), "by its id, too");
}

#[tokio::test]
async fn systems_are_joined_by_the_credentials_of_the_sdks_gateways() {
    let here = Office::open(&["--no-auth", "--realm", "here"]).await;
    let there = Office::open(&["--realm", "there"]).await;
    let mut ann = Client::agent(&here, "ann").await;
    for name in ["credentials", "credential", "token"] {
        let auth = json!({ "method": "bearer", name: there.admin_token() });
        let link = json!({ "systemId": "there", "endpoint": there.url(), "auth": auth });
        let joined = ann.call("map/federation/connect", link).await.unwrap();
        assert_eq!(joined["connected"], true, "{name}: {joined}");
    }
}

#[tokio::test]
async fn dropped_events_are_counted_even_if_filtered_out() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let talk = ann.call("mail/create", json!({})).await.unwrap()["conversation"]["id"].take();
    for kind in ["text", "data", "text"] {
        let turn = json!({ "conversationId": talk, "contentType": kind, "content": { "text": "x" } });
        ann.call("mail/turn", turn).await.unwrap();
    }
    let replay = json!({ "conversationId": talk, "contentTypes": ["data"] });
    let replay = ann.call("mail/replay", replay).await.unwrap();
    assert_eq!((replay["turns"].as_array().unwrap().len(), &replay["missedCount"]), (1, &json!(3)));
}

//! MAP Mail: the order of refusals, what new participants see, and what events contain.

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

/// A well-formed id that is not used.
const NO_TURN: &str = "turn-01ARZ3NDEKTSV4RRFFQ69G5FAV";
const NO_THREAD: &str = "thread-01ARZ3NDEKTSV4RRFFQ69G5FAV";

async fn conversation(client: &mut Client, params: Value) -> Value {
    client.call("mail/create", params).await.unwrap()["conversation"]["id"].clone()
}

async fn say(client: &mut Client, conversation: &Value, text: &str) -> Value {
    say_more(client, conversation, text, json!({})).await
}

async fn say_more(client: &mut Client, conversation: &Value, text: &str, further: Value) -> Value {
    let mut params =
        json!({ "conversationId": conversation, "contentType": "text", "content": { "text": text } });
    for (name, value) in further.as_object().unwrap() {
        params[name] = value.clone();
    }
    client.call("mail/turn", params).await.unwrap()["turn"]["id"].clone()
}

async fn refused(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

fn texts(turns: &Value) -> Vec<&str> {
    turns.as_array().unwrap().iter().map(|turn| turn["content"]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn malformed_ids_are_refused_after_earlier_checks() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let open = conversation(&mut ann, json!({})).await;
    let muted = json!({ "id": "bob", "permissions": { "canSend": false, "canCreateThreads": false } });
    let muted = conversation(&mut ann, json!({ "initialParticipants": [muted] })).await;
    let closed = conversation(&mut ann, json!({ "initialParticipants": [{ "id": "bob" }] })).await;
    ann.call("mail/close", json!({ "conversationId": closed })).await.unwrap();
    let turn = |id: &Value, thread: &str| json!({ "conversationId": id, "contentType": "text", "content": {}, "threadId": thread });
    let thread = |id: &Value, root: &str| json!({ "conversationId": id, "rootTurnId": root });
    for (no_thread, no_turn) in [("thread-none", "turn-none"), (NO_THREAD, NO_TURN)] {
        for (id, code) in [(&open, 10002), (&muted, 10003), (&closed, 10001)] {
            assert_eq!(refused(&mut bob, "mail/turn", turn(id, no_thread)).await, code, "{no_thread}");
            assert_eq!(refused(&mut bob, "mail/thread/create", thread(id, no_turn)).await, code, "{no_turn}");
        }
        assert_eq!(refused(&mut ann, "mail/turn", turn(&open, no_thread)).await, 10007);
        assert_eq!(refused(&mut ann, "mail/thread/create", thread(&open, no_turn)).await, 10006);
        let listed = json!({ "conversationId": open, "parentThreadId": no_thread });
        assert_eq!(refused(&mut ann, "mail/thread/list", listed).await, 10007);
        let child = json!({ "parentTurnId": no_turn });
        assert_eq!(refused(&mut ann, "mail/create", child).await, 10006);
        let child = json!({ "parentConversationId": "conv-none", "parentTurnId": no_turn });
        assert_eq!(refused(&mut ann, "mail/create", child).await, 10000);
        let join = |id: &Value| json!({ "conversationId": id, "catchUp": { "from": no_turn } });
        assert_eq!(refused(&mut bob, "mail/join", join(&json!("conv-none"))).await, 10000);
        assert_eq!(refused(&mut ann, "mail/join", join(&open)).await, 10004);
        assert_eq!(refused(&mut bob, "mail/join", join(&open)).await, 10006);
    }
    let joined = bob.call("mail/join", json!({ "conversationId": open })).await;
    assert!(joined.is_ok(), "who was refused has not joined: {joined:?}");
}

#[tokio::test]
async fn joining_catches_up_with_the_latest_turns() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    for text in ["1", "2", "3", "4"] {
        say(&mut ann, &id, text).await;
    }
    for (name, from, seen) in [
        ("a", Value::Null, ["3", "4"]),
        ("b", json!("recent"), ["3", "4"]),
        ("c", json!("beginning"), ["1", "2"]),
        ("d", json!(0), ["1", "2"]),
    ] {
        let mut newcomer = Client::agent(&office, name).await;
        let join = json!({ "conversationId": id, "catchUp": { "from": from, "limit": 2 } });
        let joined = newcomer.call("mail/join", join).await.unwrap();
        assert_eq!(texts(&joined["history"]), seen, "{from}");
        let more = json!({ "conversationId": id, "filter": { "afterTurnId": joined["historyCursor"] } });
        let more = newcomer.call("mail/turns/list", more).await.unwrap();
        assert_eq!(texts(&more["turns"]).len(), if seen[1] == "4" { 0 } else { 2 });
    }
    let parts = json!({ "conversationId": id, "include": { "participants": true } });
    let parts = ann.call("mail/get", parts).await.unwrap()["participants"].take();
    let parts: Vec<&Value> = parts.as_array().unwrap().iter().map(|part| &part["id"]).collect();
    assert_eq!(parts, ["ann", "a", "b", "c", "d"], "in the order in which they came");
}

#[tokio::test]
async fn joining_without_history_permission_returns_no_turns() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    say(&mut ann, &id, "before").await;
    let mut blind = Client::stranger(&office).await;
    let mail = json!({ "mail": { "canViewHistory": false } });
    let hello = json!({ "protocolVersion": 1, "participantType": "agent", "capabilities": mail });
    blind.call("map/connect", hello).await.unwrap();
    blind.call("map/agents/register", json!({ "agentId": "blind" })).await.unwrap();
    let catch_up = json!({ "from": 0, "includeSummary": true });
    let joined = blind.call("mail/join", json!({ "conversationId": id, "catchUp": catch_up })).await.unwrap();
    assert_eq!((joined["history"].clone(), joined.get("summary")), (json!([]), None));
    let recent = json!({ "conversationId": id, "include": { "recentTurns": 5 } });
    assert_eq!(refused(&mut blind, "mail/get", recent).await, 10003);

    // The same for one whose part in the conversation has no history.
    let part = json!({ "id": "bob", "permissions": { "historyAccess": "none" } });
    ann.call("mail/invite", json!({ "conversationId": id, "participant": part })).await.unwrap();
    let mut bob = Client::agent(&office, "bob").await;
    bob.call("mail/leave", json!({ "conversationId": id })).await.unwrap();
    let catch_up = json!({ "from": 0, "includeSummary": true });
    let again = bob.call("mail/join", json!({ "conversationId": id, "catchUp": catch_up })).await;
    assert!(again.is_ok(), "{again:?}");
}

#[tokio::test]
async fn summary_contains_what_was_asked_for() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    let first = say(&mut ann, &id, "First on the main line.").await;
    let open = json!({ "conversationId": id, "rootTurnId": first });
    let thread = ann.call("mail/thread/create", open).await.unwrap()["thread"]["id"].clone();
    say_more(&mut ann, &id, "Said in the thread.", json!({ "threadId": thread })).await;
    let last = say(&mut ann, &id, "Last on the main line.").await;
    let mut summary = async |scope: Value| {
        let asked = json!({ "conversationId": id, "scope": scope });
        ann.call("mail/summary", asked).await.unwrap()["summary"].as_str().unwrap().to_owned()
    };
    let of_thread = summary(json!({ "threadId": thread, "toTurnId": last })).await;
    assert!(of_thread.contains("thread") && !of_thread.contains("main line"), "{of_thread}");
    let of_nothing = summary(json!({ "fromTurnId": last, "toTurnId": first })).await;
    assert!(!of_nothing.contains("main line"), "{of_nothing}");
}

#[tokio::test]
async fn absent_members_are_absent_in_events_and_null_counts_as_absent() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let mut watching = Client::connect(&office, "client").await;
    watching.call("map/subscribe", json!({ "filter": { "eventTypes": ["mail.*"] } })).await.unwrap();
    let id = conversation(&mut ann, json!({ "initialParticipants": [{ "id": "bob" }] })).await;
    bob.call("mail/leave", json!({ "conversationId": id })).await.unwrap();
    ann.call("mail/close", json!({ "conversationId": id })).await.unwrap();
    for kind in ["mail.participant.left", "mail.closed"] {
        let event = watching.next(|frame| frame["params"]["event"]["type"] == kind).await;
        let data = event["params"]["event"]["data"].as_object().unwrap();
        assert!(!data.contains_key("reason"), "{kind}: {data:?}");
    }
    for (method, params) in [
        ("mail/get", json!({ "conversationId": id, "include": null })),
        ("mail/get", json!({ "conversationId": id, "include": { "stats": null, "threads": null } })),
        ("mail/list", json!({ "filter": null })),
        ("mail/turns/list", json!({ "conversationId": id, "filter": null })),
        ("mail/turns/list", json!({ "conversationId": id, "filter": { "contentTypes": null } })),
        ("mail/summary", json!({ "conversationId": id, "scope": null, "regenerate": null, "include": null })),
        ("mail/replay", json!({ "conversationId": id, "contentTypes": null })),
    ] {
        let answer = ann.call(method, params.clone()).await;
        assert!(answer.is_ok(), "{method} {params}: {answer:?}");
    }
}

#[tokio::test]
async fn invited_agents_receive_the_invitation() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let id = conversation(&mut ann, json!({})).await;
    let invite =
        json!({ "conversationId": id, "participant": { "id": "bob" }, "message": "Please look at it." });
    ann.call("mail/invite", invite).await.unwrap();
    let message = bob.message().await;
    assert_eq!(message["payload"]["message"], "Please look at it.");
    assert_eq!(message["payload"]["conversationId"], id);
}

#[tokio::test]
async fn intercepted_messages_follow_the_rules_of_turns() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let mut shy = Client::stranger(&office).await;
    let mail = json!({ "mail": { "canJoin": false } });
    let hello = json!({ "protocolVersion": 1, "participantType": "agent", "capabilities": mail });
    shy.call("map/connect", hello).await.unwrap();
    shy.call("map/agents/register", json!({ "agentId": "shy" })).await.unwrap();
    let id = conversation(&mut ann, json!({ "initialParticipants": [{ "id": "shy" }] })).await;
    let send = |mail: Value| json!({ "to": { "agent": "bob" }, "payload": "x", "meta": { "mail": mail } });
    shy.call("map/send", send(json!({ "conversationId": id }))).await.unwrap();
    ann.call("map/send", send(json!({ "conversationId": id, "threadId": 5 }))).await.unwrap();
    ann.call("map/send", send(json!({ "conversationId": id, "inReplyTo": "turn-none" }))).await.unwrap();
    for _ in 0..3 {
        assert_eq!(bob.message().await["payload"], "x", "all of them arrive");
    }
    let turns = ann.call("mail/turns/list", json!({ "conversationId": id })).await.unwrap();
    assert_eq!(turns["turns"], json!([]), "and none of them is recorded");
}

#[tokio::test]
async fn agent_hears_its_private_turns_though_it_subscribed_before_it_registered() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::connect(&office, "agent").await;
    ann.call("map/subscribe", json!({ "filter": { "eventTypes": ["mail.turn.added"] } })).await.unwrap();
    ann.call("map/agents/register", json!({ "agentId": "ann" })).await.unwrap();
    let private =
        json!({ "contentType": "text", "content": { "text": "mine" }, "visibility": { "type": "private" } });
    conversation(&mut ann, json!({ "initialTurn": private })).await;
    let event = ann.next(|frame| frame["method"] == "map/event").await;
    assert_eq!(event["params"]["event"]["data"]["turn"]["content"]["text"], "mine");
}

#[tokio::test]
async fn turn_needs_content_which_may_be_null() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    let silent = json!({ "conversationId": id, "contentType": "data" });
    let first = json!({ "initialTurn": { "contentType": "data" } });
    for (method, params) in [("mail/turn", silent), ("mail/create", first)] {
        let why = ann.call(method, params).await.unwrap_err();
        assert_eq!(why["code"], -32602, "{method}");
        assert!(why["message"].as_str().unwrap().contains("content`"), "{why}");
    }
    for kind in ["data", "x-note"] {
        let null = json!({ "conversationId": id, "contentType": kind, "content": null });
        let turn = ann.call("mail/turn", null).await.unwrap()["turn"].take();
        assert_eq!(turn.get("content"), Some(&Value::Null), "{kind}");
        let null = json!({ "initialTurn": { "contentType": kind, "content": null } });
        let turn = ann.call("mail/create", null).await.unwrap()["initialTurn"].take();
        assert_eq!(turn.get("content"), Some(&Value::Null), "{kind}");
    }
}

#[tokio::test]
async fn moderators_are_appointed_by_participants_that_may_invite() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let (mut first, mut second) =
        (Client::agent(&office, "first").await, Client::agent(&office, "second").await);
    let mut own = Client::agent(&office, "own").await;
    let part = |name: &str| json!({ "id": name, "role": "moderator" });
    let id = conversation(&mut ann, json!({ "initialParticipants": [part("first")] })).await;
    let invite = |name: &str| json!({ "conversationId": id, "participant": part(name) });
    let invited = first.call("mail/invite", invite("second")).await.unwrap()["participant"].take();
    let may = &invited["permissions"];
    assert_eq!((&may["canInvite"], &may["canRemove"]), (&json!(true), &json!(true)));
    second.call("mail/invite", invite("third")).await.unwrap();
    let join = json!({ "conversationId": id, "role": "moderator" });
    let joined = own.call("mail/join", join).await.unwrap()["participant"].take();
    let may = &joined["permissions"];
    assert_eq!((&may["canInvite"], &may["canRemove"]), (&json!(false), &json!(false)));
    assert_eq!(refused(&mut own, "mail/invite", invite("fourth")).await, 10003);
}

#[tokio::test]
async fn events_show_no_past_without_history_permission() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    for access in ["none", "from-join"] {
        let name = format!("late-{access}");
        let mut late = Client::agent(&office, &name).await;
        let id = conversation(&mut ann, json!({ "subject": access })).await;
        say(&mut ann, &id, "before").await;
        let part = json!({ "id": name, "permissions": { "historyAccess": access } });
        ann.call("mail/invite", json!({ "conversationId": id, "participant": part })).await.unwrap();
        let mail = json!({ "eventTypes": ["mail.turn.added"], "mail": { "conversationId": id } });
        late.call("map/subscribe", json!({ "filter": mail, "replayFrom": 0 })).await.unwrap();
        say(&mut ann, &id, "after").await;
        let first = late.next(|frame| frame["method"] == "map/event").await;
        assert_eq!(first["params"]["event"]["data"]["turn"]["content"]["text"], "after", "{access}, live");
        let replay = late.call("map/replay", json!({ "filter": mail })).await.unwrap();
        let turns = replay["events"].as_array().unwrap().iter();
        let turns: Vec<_> =
            turns.map(|one| one["event"]["data"]["turn"]["content"]["text"].clone()).collect();
        assert!(!turns.contains(&json!("before")), "{access}: {replay}");
        let list = late.call("mail/turns/list", json!({ "conversationId": id })).await;
        let listed =
            list.map(|list| texts(&list["turns"]).iter().map(ToString::to_string).collect::<Vec<_>>());
        match access {
            "none" => assert!(listed.is_err_and(|why| why["code"] == 10003)),
            _ => assert_eq!(listed.unwrap(), ["after"]),
        }
    }
}

#[tokio::test]
async fn reads_see_earlier_writes_without_waiting_for_answers() {
    let office = Office::open(&["--no-auth"]).await;
    let mut anna = Client::agent(&office, "anna").await;
    let _bob = Client::agent(&office, "bob").await;
    let made = anna.call("mail/create", json!({ "subject": "hurry" })).await.unwrap();
    let talk = made["conversation"]["id"].as_str().unwrap().to_owned();
    for n in 1..=10 {
        // A turn and a message without waiting for the answer, one of each as a notification.
        let turn = json!({ "conversationId": talk, "contentType": "text", "content": { "text": "said" } });
        let send = json!({ "to": { "agent": "bob" }, "payload": "handed over" });
        for (id, method, params) in [(json!(1), "mail/turn", &turn), (json!(2), "map/send", &send)] {
            let mut call = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            anna.text(&call.to_string()).await;
            call["id"] = id;
            anna.text(&call.to_string()).await;
        }
        let turns =
            anna.call("mail/turns/list", json!({ "conversationId": talk, "limit": 100 })).await.unwrap();
        assert_eq!(turns["turns"].as_array().unwrap().len(), 2 * n);
        let asked = json!({ "filter": { "eventTypes": ["message_sent"] }, "limit": 1000 });
        let events = anna.call("map/replay", asked).await.unwrap();
        assert_eq!(events["events"].as_array().unwrap().len(), 2 * n);
    }
}

#[tokio::test]
async fn message_without_payload_is_recorded_as_a_null_turn() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut anna, mut bob) = (Client::agent(&office, "anna").await, Client::agent(&office, "bob").await);
    let made = anna.call("mail/create", json!({})).await.unwrap();
    let talk = made["conversation"]["id"].clone();
    let send = json!({ "to": { "agent": "bob" }, "meta": { "mail": { "conversationId": talk } } });
    anna.call("map/send", send).await.unwrap();
    bob.message().await;
    let turns = anna.call("mail/turns/list", json!({ "conversationId": talk })).await.unwrap();
    let turn = &turns["turns"][0];
    assert_eq!((&turn["contentType"], turn.get("content")), (&json!("data"), Some(&Value::Null)), "{turn}");
}

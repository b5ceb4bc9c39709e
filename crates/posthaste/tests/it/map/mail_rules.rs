//! MAP Mail's rules: permissions to read and join conversations, invalid params, and what events contain.

use serde_json::{Value, json};

use crate::map::client::{Client, Office, connect_raw};

async fn conversation(client: &mut Client, params: Value) -> Value {
    client.call("mail/create", params).await.unwrap()["conversation"]["id"].take()
}

async fn say(client: &mut Client, conversation: &Value, text: &str, visibility: Value) -> Value {
    let turn = json!({
        "conversationId": conversation, "contentType": "text", "content": { "text": text }, "visibility": visibility,
    });
    client.call("mail/turn", turn).await.unwrap()["turn"]["id"].take()
}

async fn refused(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

fn texts(turns: &Value) -> Vec<&str> {
    turns.as_array().unwrap().iter().map(|turn| turn["content"]["text"].as_str().unwrap()).collect()
}

/// Checks what an outsider may not do in a conversation, whatever its other rights.
async fn is_outside(client: &mut Client, id: &Value, root: &Value) {
    for (method, further) in [
        ("mail/turn", json!({ "contentType": "text", "content": {} })),
        ("mail/thread/create", json!({ "rootTurnId": root })),
        ("mail/invite", json!({ "participant": { "id": "friend" } })),
        ("mail/leave", json!({})),
        ("mail/close", json!({})),
        ("mail/reopen", json!({})),
    ] {
        let mut params = further;
        params["conversationId"] = id.clone();
        assert_eq!(refused(client, method, params).await, 10002, "{method}");
    }
}

#[tokio::test]
async fn mail_has_capabilities_of_its_own() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    let root = say(&mut ann, &id, "open", Value::Null).await;
    say(&mut ann, &id, "mine", json!({ "type": "private" })).await;
    let mut busy = Client::stranger(&office).await;
    let without = json!({ "observation": { "canObserve": false } });
    let hello = json!({ "protocolVersion": 1, "participantType": "agent", "capabilities": without });
    busy.call("map/connect", hello).await.unwrap();
    busy.call("map/agents/register", json!({ "agentId": "busy" })).await.unwrap();
    assert_eq!(refused(&mut busy, "map/subscribe", json!({})).await, 1003, "it observes nothing else");
    is_outside(&mut busy, &id, &root).await;
    let one = json!({ "conversationId": id });
    for method in ["mail/get", "mail/thread/list", "mail/presence", "mail/summary", "mail/replay"] {
        let answer = busy.call(method, one.clone()).await;
        assert!(answer.is_ok(), "{method}: {answer:?}");
    }
    let list = busy.call("mail/list", json!({})).await.unwrap();
    assert_eq!(list["conversations"][0]["id"], id);
    let turns = busy.call("mail/turns/list", one.clone()).await.unwrap();
    assert_eq!(texts(&turns["turns"]), ["open"]);
    let joined = busy.call("mail/join", json!({ "conversationId": id, "catchUp": {} })).await.unwrap();
    assert_eq!(texts(&joined["history"]), ["open"]);
    say(&mut busy, &id, "here", Value::Null).await;
    busy.call("mail/leave", one).await.unwrap();
}

#[tokio::test]
async fn administrators_are_not_participants_by_default() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    let root = say(&mut ann, &id, "open", Value::Null).await;
    let private = say(&mut ann, &id, "mine", json!({ "type": "private" })).await;
    let mut system = Client::connect(&office, "system").await;
    is_outside(&mut system, &id, &root).await;
    let one = json!({ "conversationId": id });
    for method in ["mail/turns/list", "mail/replay"] {
        let turns = system.call(method, one.clone()).await.unwrap();
        assert_eq!(texts(&turns["turns"]), ["open"], "{method}");
    }
    let recent = json!({ "conversationId": id, "include": { "recentTurns": 9 } });
    let recent = system.call("mail/get", recent).await.unwrap();
    assert_eq!(texts(&recent["recentTurns"]), ["open"]);
    let summary = system.call("mail/summary", one.clone()).await.unwrap();
    assert!(!summary["summary"].as_str().unwrap().contains("mine"), "{summary}");
    system.call("mail/join", one).await.unwrap();
    let answer = json!({ "conversationId": id, "contentType": "text", "content": {}, "inReplyTo": private });
    assert_eq!(refused(&mut system, "mail/turn", answer).await, 10006);
}

#[tokio::test]
async fn catching_up_from_an_invalid_time_is_refused_before_joining() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let id = conversation(&mut ann, json!({})).await;
    say(&mut ann, &id, "before", Value::Null).await;
    for from in [json!(1_700_000_000_000.5), json!(1e25), json!(u64::MAX), json!(true), json!({})] {
        let join = json!({ "conversationId": id, "catchUp": { "from": from } });
        assert_eq!(refused(&mut bob, "mail/join", join).await, -32602, "{from}");
    }
    let late = json!({ "conversationId": id, "catchUp": { "from": i64::MAX } });
    assert_eq!(bob.call("mail/join", late).await.unwrap()["history"], json!([]));
    for (method, params) in [
        ("mail/list", json!({ "filter": { "createdAfter": 0.5 } })),
        ("mail/list", json!({ "filter": { "createdBefore": 1e25 } })),
        ("mail/turns/list", json!({ "conversationId": id, "filter": { "afterTimestamp": 0.5 } })),
        ("mail/turns/list", json!({ "conversationId": id, "filter": { "beforeTimestamp": 1e25 } })),
        ("mail/replay", json!({ "conversationId": id, "fromTimestamp": 1e25 })),
        ("map/replay", json!({ "fromTimestamp": true })),
        ("map/replay", json!({ "toTimestamp": "later" })),
    ] {
        assert_eq!(refused(&mut bob, method, params.clone()).await, -32602, "{method} {params}");
    }
    // Elsewhere a time may have a fraction, and one that is far off is a bound like any other.
    let far = bob.call("map/replay", json!({ "fromTimestamp": 1e25 })).await.unwrap();
    assert_eq!(far["events"], json!([]));
}

#[tokio::test]
async fn list_filtered_by_an_invalid_id_is_empty() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    say(&mut ann, &id, "one", Value::Null).await;
    for name in [String::new(), "unknown".to_owned(), "x".repeat(5000), "a\u{0}b".to_owned()] {
        for field in ["participantId", "parentConversationId"] {
            let list = ann.call("mail/list", json!({ "filter": { field: name } })).await.unwrap();
            assert_eq!(list, json!({ "conversations": [], "hasMore": false }), "{field} {name:?}");
        }
        let turns = json!({ "conversationId": id, "filter": { "participantId": name } });
        let turns = ann.call("mail/turns/list", turns).await.unwrap();
        assert_eq!(turns, json!({ "turns": [], "hasMore": false }), "{name:?}");
        let nowhere = json!({ "conversationId": "conv-none", "filter": { "participantId": name } });
        assert_eq!(refused(&mut ann, "mail/turns/list", nowhere).await, 10000);
    }
}

#[tokio::test]
async fn turn_visibility_accepts_known_roles_only() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let id = conversation(&mut ann, json!({ "initialParticipants": [{ "id": "bob" }] })).await;
    let turn = |visibility: &Value| json!({ "contentType": "text", "content": { "text": "x" }, "visibility": visibility });
    for odd in [
        json!({ "type": "role", "roles": ["king"] }),
        json!({ "type": "role", "roles": ["worker", "king"] }),
        json!({ "type": "role" }),
        json!({ "type": "roles", "roles": ["worker"] }),
        json!({ "type": "secret" }),
    ] {
        let mut said = turn(&odd);
        said["conversationId"] = id.clone();
        assert_eq!(refused(&mut ann, "mail/turn", said).await, -32602, "{odd}");
        assert_eq!(
            refused(&mut ann, "mail/create", json!({ "initialTurn": turn(&odd) })).await,
            -32602,
            "{odd}"
        );
        let mail = json!({ "conversationId": id, "visibility": odd });
        let send = json!({ "to": { "agent": "bob" }, "payload": odd, "meta": { "mail": mail } });
        ann.call("map/send", send).await.unwrap();
        assert_eq!(bob.message().await["payload"], odd, "delivery does not depend on it");
    }
    let turns = ann.call("mail/turns/list", json!({ "conversationId": id })).await.unwrap();
    assert_eq!(turns["turns"], json!([]), "nothing was recorded");
    for (n, role) in ["initiator", "assistant", "worker", "observer", "moderator"].iter().enumerate() {
        say(&mut ann, &id, &n.to_string(), json!({ "type": "role", "roles": [role] })).await;
    }
    // Not of the protocol, but what canSeeInternal is about.
    say(&mut ann, &id, "5", json!({ "type": "internal" })).await;
    let turns = bob.call("mail/turns/list", json!({ "conversationId": id })).await.unwrap();
    assert_eq!(texts(&turns["turns"]), ["1"], "bob is an assistant and sees nothing internal");
}

#[tokio::test]
async fn draft_events_have_mail_members_on_the_event_too() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let greeting = json!({ "protocolVersion": "2025-01-01", "clientInfo": { "name": "d" }, "capabilities": { "streaming": true } });
    let (mut watcher, _) = connect_raw(&office, greeting).await;
    watcher.call("map/subscribe", json!({ "filter": { "eventTypes": ["mail.*"] } })).await.unwrap();
    let id = conversation(&mut ann, json!({ "type": "mixed", "subject": "s" })).await;
    let root = say(&mut ann, &id, "one", Value::Null).await;
    let thread = json!({ "conversationId": id, "rootTurnId": root });
    ann.call("mail/thread/create", thread).await.unwrap();
    ann.call("mail/summary", json!({ "conversationId": id })).await.unwrap();
    ann.call("mail/invite", json!({ "conversationId": id, "participant": { "id": "bob" } })).await.unwrap();
    ann.call("mail/leave", json!({ "conversationId": id, "reason": "done" })).await.unwrap();
    let kinds = [
        "mail.created",
        "mail.participant.joined",
        "mail.turn.added",
        "mail.thread.created",
        "mail.summary.generated",
        "mail.participant.joined",
        "mail.participant.left",
    ];
    let mut live = Vec::new();
    for kind in kinds {
        let event = watcher.next(|frame| frame["method"] == "map/event").await["params"]["event"].take();
        assert_eq!(event["type"], kind, "{event}");
        for (name, value) in event["data"].as_object().unwrap() {
            if name != "type" {
                assert_eq!(event.get(name), Some(value), "{kind}: {name}");
            }
        }
        assert_eq!(event["conversationId"], id);
        live.push(event);
    }
    assert_eq!(live[0]["data"]["type"], "mixed");
    assert_eq!(live[2]["turn"]["content"]["text"], "one");
    let replay = watcher.call("map/replay", json!({ "filter": { "eventTypes": ["mail.*"] } })).await.unwrap();
    let replayed: Vec<_> =
        replay["events"].as_array().unwrap().iter().map(|one| one["event"].clone()).collect();
    assert_eq!(replayed, live);
}

#[tokio::test]
async fn participant_filter_matches_events_that_name_it() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let id = conversation(&mut ann, json!({})).await;
    let one = json!({ "conversationId": id });
    bob.call("mail/join", one.clone()).await.unwrap();
    let root = say(&mut bob, &id, "one", Value::Null).await;
    say(&mut ann, &id, "not bob's", Value::Null).await;
    let thread = json!({ "conversationId": id, "rootTurnId": root });
    bob.call("mail/thread/create", thread).await.unwrap();
    bob.call("mail/close", one.clone()).await.unwrap();
    bob.call("mail/leave", one).await.unwrap();
    for (name, kinds) in [
        ("bob", &["mail.participant.joined", "mail.turn.added", "mail.closed", "mail.participant.left"][..]),
        ("ann", &["mail.created", "mail.participant.joined", "mail.turn.added"]),
    ] {
        let filter = json!({ "filter": { "mail": { "participantId": name } } });
        let replay = ann.call("map/replay", filter).await.unwrap();
        let events = replay["events"].as_array().unwrap().iter();
        let seen: Vec<_> = events.map(|one| one["event"]["type"].as_str().unwrap()).collect();
        assert_eq!(seen, kinds, "{name}: the agent that opened a thread is named only inside the thread");
    }
}

#[tokio::test]
async fn replay_without_history_access_contains_the_own_join() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    for access in ["none", "from-join"] {
        let name = format!("late-{access}");
        let mut late = Client::agent(&office, &name).await;
        let id = conversation(&mut ann, json!({})).await;
        let filter = json!({ "filter": { "mail": { "conversationId": id } } });
        late.call("map/subscribe", filter.clone()).await.unwrap();
        let part = json!({ "id": name, "permissions": { "historyAccess": access } });
        ann.call("mail/invite", json!({ "conversationId": id, "participant": part })).await.unwrap();
        let live = late.next(|frame| frame["method"] == "map/event").await["params"]["event"].take();
        assert_eq!(live["data"]["participant"]["id"], name, "{live}");
        let replay = late.call("map/replay", filter).await.unwrap();
        let replayed: Vec<_> = replay["events"].as_array().unwrap().iter().map(|one| &one["event"]).collect();
        assert_eq!(replayed, [&live], "{access}");
    }
}

#[tokio::test]
async fn unreadable_turn_is_unknown_as_a_starting_point() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut ann, mut bob) = (Client::agent(&office, "ann").await, Client::agent(&office, "bob").await);
    let id = conversation(&mut ann, json!({})).await;
    let before = say(&mut ann, &id, "before", Value::Null).await;
    let private = say(&mut ann, &id, "mine", json!({ "type": "private" })).await;
    let from = |turn: &Value| {
        let list = |bound: &str| json!({ "conversationId": id, "filter": { bound: turn } });
        [
            ("mail/turns/list", list("afterTurnId")),
            ("mail/turns/list", list("beforeTurnId")),
            ("mail/replay", json!({ "conversationId": id, "fromTurnId": turn })),
        ]
    };
    for (method, params) in from(&private) {
        ann.call(method, params.clone()).await.unwrap();
        assert_eq!(refused(&mut bob, method, params).await, 10006, "{method}, from outside");
    }
    for (method, params) in from(&before) {
        bob.call(method, params).await.unwrap();
    }
    let part = json!({ "id": "bob", "permissions": { "historyAccess": "from-join" } });
    ann.call("mail/invite", json!({ "conversationId": id, "participant": part })).await.unwrap();
    for (method, params) in from(&before) {
        assert_eq!(refused(&mut bob, method, params).await, 10006, "{method}, before it came");
    }
    // A returning participant is not refused because of its starting point.
    bob.call("mail/leave", json!({ "conversationId": id })).await.unwrap();
    let join = json!({ "conversationId": id, "catchUp": { "from": before } });
    assert_eq!(bob.call("mail/join", join).await.unwrap()["history"], json!([]));
}

#[tokio::test]
async fn unknown_thread_is_reported_before_unknown_turn() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = conversation(&mut ann, json!({})).await;
    for (method, params) in [
        ("mail/thread/create", json!({ "rootTurnId": "turn-none", "parentThreadId": "thread-none" })),
        (
            "mail/turn",
            json!({ "contentType": "text", "content": {}, "threadId": "thread-none", "inReplyTo": "turn-none" }),
        ),
        ("mail/turns/list", json!({ "filter": { "threadId": "thread-none", "afterTurnId": "turn-none" } })),
        ("mail/replay", json!({ "threadId": "thread-none", "fromTurnId": "turn-none" })),
        ("mail/summary", json!({ "scope": { "threadId": "thread-none", "toTurnId": "turn-none" } })),
    ] {
        let mut params = params;
        params["conversationId"] = id.clone();
        assert_eq!(refused(&mut ann, method, params).await, 10007, "{method}");
    }
}

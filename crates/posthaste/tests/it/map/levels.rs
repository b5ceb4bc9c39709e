//! Mail's levels of adoption: from an agent that knows nothing of it to a dashboard that only watches.

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

async fn turns(client: &mut Client, conversation: &Value) -> Vec<Value> {
    let listed = client.call("mail/turns/list", json!({ "conversationId": conversation })).await.unwrap();
    listed["turns"].as_array().unwrap().clone()
}

async fn conversation(client: &mut Client, with: &[&str]) -> Value {
    let others: Vec<Value> = with.iter().map(|id| json!({ "id": id, "role": "worker" })).collect();
    let made = client.call("mail/create", json!({ "initialParticipants": others })).await.unwrap();
    made["conversation"]["id"].clone()
}

#[tokio::test]
async fn level_0_unaware_agent_receives_messages() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut boss, mut worker) =
        (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    let id = conversation(&mut boss, &[]).await;
    let meta = json!({ "mail": { "conversationId": id } });
    boss.call("map/send", json!({ "to": { "agent": "worker" }, "payload": "do", "meta": meta }))
        .await
        .unwrap();
    assert_eq!(worker.message().await["payload"], "do");
    worker.call("map/send", json!({ "to": { "agent": "boss" }, "payload": "done" })).await.unwrap();
    assert_eq!(boss.message().await["payload"], "done");
    assert_eq!(turns(&mut boss, &id).await.len(), 1, "only what the orchestrator said is on record");
}

#[tokio::test]
async fn level_1_agent_that_passes_meta_on_is_recorded() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut boss, mut worker) =
        (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    let id = conversation(&mut boss, &["worker"]).await;
    let meta = json!({ "mail": { "conversationId": id } });
    boss.call("map/send", json!({ "to": { "agent": "worker" }, "payload": "do", "meta": meta }))
        .await
        .unwrap();
    let got = worker.message().await;
    let reply =
        json!({ "to": { "agent": "boss" }, "payload": "done", "meta": { "mail": got["meta"]["mail"] } });
    worker.call("map/send", reply).await.unwrap();
    let said = turns(&mut boss, &id).await;
    let by: Vec<&Value> = said.iter().map(|turn| &turn["participant"]).collect();
    assert_eq!(by, [&json!("boss"), &json!("worker")]);
    assert!(said.iter().all(|turn| turn["source"]["type"] == "intercepted"));
}

#[tokio::test]
async fn level_2_agent_records_its_own_turns() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut boss, mut worker) =
        (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    let id = conversation(&mut boss, &["worker"]).await;
    let turn = json!({ "conversationId": id, "contentType": "x-tool-call", "content": { "tool": "grep" } });
    let turn = worker.call("mail/turn", turn).await.unwrap();
    assert_eq!(turn["turn"]["source"]["type"], "explicit");
    assert_eq!(turns(&mut boss, &id).await[0]["content"]["tool"], "grep");
}

#[tokio::test]
async fn level_3_orchestrator_manages_conversations() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut boss, mut worker) =
        (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    let id = conversation(&mut boss, &[]).await;
    let invite = json!({ "conversationId": id, "participant": { "id": "worker", "role": "worker" } });
    boss.call("mail/invite", invite).await.unwrap();
    let say = json!({ "conversationId": id, "contentType": "text", "content": { "text": "Which plan do we choose?" } });
    let root = boss.call("mail/turn", say).await.unwrap()["turn"]["id"].clone();
    let open = json!({ "conversationId": id, "rootTurnId": root, "subject": "details" });
    let thread = boss.call("mail/thread/create", open).await.unwrap()["thread"]["id"].clone();
    let say = json!({ "conversationId": id, "threadId": thread, "contentType": "text", "content": { "text": "Plan B." } });
    worker.call("mail/turn", say).await.unwrap();
    let summary = json!({ "conversationId": id, "include": { "openQuestions": true } });
    assert!(boss.call("mail/summary", summary).await.unwrap()["summary"].is_string());
    let closed = boss.call("mail/close", json!({ "conversationId": id, "reason": "decided" })).await.unwrap();
    assert_eq!(closed["conversation"]["status"], "completed");
    let late = json!({ "conversationId": id, "contentType": "text", "content": { "text": "But" } });
    assert_eq!(worker.call("mail/turn", late).await.unwrap_err()["code"], 10001);
}

#[tokio::test]
async fn level_4_observer_reads_without_participating() {
    let office = Office::open(&["--no-auth"]).await;
    let mut boss = Client::agent(&office, "boss").await;
    let mut dashboard = Client::connect(&office, "client").await;
    dashboard.call("map/subscribe", json!({ "filter": { "eventTypes": ["mail.*"] } })).await.unwrap();
    let id = conversation(&mut boss, &[]).await;
    for (text, visibility) in [("open", "all"), ("secret", "private")] {
        let say = json!({
            "conversationId": id, "contentType": "text", "content": { "text": text },
            "visibility": { "type": visibility },
        });
        boss.call("mail/turn", say).await.unwrap();
    }
    boss.call("mail/close", json!({ "conversationId": id })).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let event = dashboard.next(|frame| frame["method"] == "map/event").await["params"]["event"].clone();
        let last = event["type"] == "mail.closed";
        seen.push(event);
        if last {
            break;
        }
    }
    let said: Vec<&Value> = seen.iter().filter(|event| event["type"] == "mail.turn.added").collect();
    assert_eq!(said.len(), 1, "what is private is for its author");
    assert_eq!(said[0]["data"]["turn"]["content"]["text"], "open");
    assert_eq!(turns(&mut dashboard, &id).await.len(), 1);
    let say = json!({ "conversationId": id, "contentType": "text", "content": {} });
    assert!(dashboard.call("mail/turn", say).await.is_err());
}

#[tokio::test]
async fn server_without_mail_says_so_and_delivers_messages() {
    let office = Office::open(&["--no-auth", "--no-mail"]).await;
    let (mut boss, mut worker) =
        (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    assert_eq!(boss.call("mail/create", json!({})).await.unwrap_err()["code"], 10010);
    let meta = json!({ "mail": { "conversationId": "conv-1" } });
    boss.call("map/send", json!({ "to": { "agent": "worker" }, "payload": "do", "meta": meta }))
        .await
        .unwrap();
    assert_eq!(worker.message().await["payload"], "do");
}

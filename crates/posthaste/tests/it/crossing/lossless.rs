//! Nothing is lost between doors: what one door cannot show comes back whole at another; mail waits for absent agents.

use serde_json::{Value, json};

use super::server::Everywhere;
use super::{Correspondent, Outgoing, find};
use crate::airc::Agent;

/// A payload and a meta with values that are easily lost.
fn odd() -> (Value, Value) {
    let payload = json!({
        "type": "com.example:odd", "subject": "odd \u{0} \u{2028} \"one\"", "nested": { "a": [1, null, { "b": [[], {}] }] },
        "numbers": [0, -1, 9_007_199_254_740_993_i64, 0.1, 1e300], "text": "caf\u{e9} \u{1f48c}\r\n\t\\",
    });
    let meta = json!({
        "priority": "low", "correlationId": "c-1", "x-custom": { "keep": ["me", 1.50, false] }, "\u{fc}": null,
        "_meta": { "files": { "read": true }, "map": 1 }, "delivery": "guaranteed",
    });
    (payload, meta)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payload_and_meta_survive_doors_that_cannot_show_them() {
    let all = Everywhere::open().await;
    let (mut map, mcp) = (all.at_map("map_s").await, all.at_mcp("mcp_s").await);
    let airc = Agent::new(all.office.url(), "airc_r").await;
    all.office.call("contact.ask", json!({ "agent": "map_s", "other": "airc_r" })).await.unwrap();
    all.office.call("contact.accept", json!({ "agent": "airc_r", "other": "map_s" })).await.unwrap();
    let mut mailbox = all.agent("files", "files_r").await;
    all.until_registered("files_r").await;
    let (payload, meta) = odd();
    for to in ["mcp_s", "airc_r", "files_r", "parrot"] {
        map.send_raw(to, payload.clone(), meta.clone()).await;
    }
    // Doors with text bodies show the payload as compact JSON, with its subject.
    let inbox = mcp.call("fetch_inbox", json!({ "include_bodies": true })).await;
    let said: Value = serde_json::from_str(inbox[0]["body_md"].as_str().unwrap()).unwrap();
    assert_eq!((&said, &inbox[0]["subject"]), (&payload, &payload["subject"]));
    let file = mailbox.receive("com.example:odd").await;
    let said: Value = serde_json::from_str(&file.body).unwrap();
    assert_eq!((&said, &file.raw["subject"]), (&payload, &payload["subject"]));
    assert_eq!((&file.raw["kind"], &file.raw["priority"]), (&json!("com.example:odd"), &json!("low")));
    // AIRC shows the payload itself, and what does not fit into it in `delivery`.
    let page = airc.inbox().await;
    assert_eq!(page[0]["payload"], payload);
    assert_eq!(page[0]["delivery"]["subject"], payload["subject"]);
    assert_eq!(
        (&page[0]["delivery"]["priority"], &page[0]["delivery"]["door"]),
        (&json!("low"), &json!("map"))
    );
    // A hosted agent gets the payload as text, and the original in `routing_info`.
    let turn = find("the turn", async || all.turns.lock().unwrap().last().cloned()).await;
    let mail = &turn["inbox"][0]["message"];
    assert_eq!(serde_json::from_str::<Value>(mail["body"].as_str().unwrap()).unwrap(), payload);
    assert_eq!(
        (&mail["routing_info"]["payload"], &mail["routing_info"]["meta"]["map"]["meta"]),
        (&payload, &meta)
    );

    // The file is marked as read; at MAP all messages are unchanged.
    mailbox.acknowledge(&file).await;
    let replayed = map.client.call("map/replay", json!({})).await.unwrap();
    let sent: Vec<&Value> = replayed["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["event"]["data"]["message"])
        .filter(|message| message["payload"]["type"] == "com.example:odd")
        .collect();
    assert!(sent.len() >= 4, "{replayed}");
    for message in sent {
        assert_eq!((&message["payload"], &message["meta"]), (&payload, &meta));
    }
    assert_eq!(all.office.close(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_agent_gets_messages_that_came_as_files() {
    let all = Everywhere::open().await;
    let token = all.token("agent", "map_s").await;
    drop(super::map::AtMap::connect(all.office.url(), &token, "map_s").await);
    let mut files = all.agent("files", "files_s").await;
    let message = Outgoing {
        to: "map_s".into(),
        subject: "while you were away".into(),
        body: "the first".into(),
        thread: "T".into(),
        priority: "normal",
        wants_ack: false,
    };
    files.send(&message).await;
    find("the message in the inbox", async || {
        let page = all.office.call("inbox", json!({ "agent": "map_s" })).await.unwrap();
        (page["messages"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    // The agent has a directory now. Messages of others are not written there (F14), and reach the connection all the same.
    // The bridge follows the event log, so it has passed the second message when the third is a file.
    all.office.call("send", json!({ "from": "map_s", "to": ["map_s"], "body": "the second" })).await.unwrap();
    all.until_registered("files_s").await;
    all.office
        .call("send", json!({ "from": "map_s", "to": ["files_s"], "body": "the third" }))
        .await
        .unwrap();
    files.receive("the third").await;
    assert_eq!(std::fs::read_dir(all.mail().join("map_s")).unwrap().count(), 1);
    let mut map = super::map::AtMap::connect(all.office.url(), &token, "map_s").await;
    map.receive("the first").await;
    map.receive("the second").await;
    assert_eq!(all.office.close(), Some(0));
}

// F18: an attachment reaches an AIRC identity, whose token is valid at AIRC only, and a hosted agent.
#[tokio::test]
async fn files_reach_airc_and_hosted_agents() {
    let all = Everywhere::open().await;
    let airc = Agent::new(all.office.url(), "airc_r").await;
    all.office.register("cli_s").await;
    all.office.call("contact.ask", json!({ "agent": "cli_s", "other": "airc_r" })).await.unwrap();
    all.office.call("contact.accept", json!({ "agent": "airc_r", "other": "cli_s" })).await.unwrap();
    let file = json!({ "name": "plan.txt", "data": "dGhlIHBsYW4=" });
    for to in ["airc_r", "parrot"] {
        let message =
            json!({ "from": "cli_s", "to": [to], "subject": "s", "body": "b", "attachments": [file] });
        all.office.call("send", message).await.unwrap();
    }
    let page = airc.inbox().await;
    let path = page[0]["delivery"]["attachments"][0]["url"].as_str().unwrap();
    assert_eq!(airc.get(path).await.text, "the plan");
    let parts: Vec<&str> = path.split('/').collect();
    let elsewhere = format!("/x-posthaste/attachments/{}/{}", parts[2], parts[4]);
    assert_eq!(airc.get(&elsewhere).await.status, 401, "an AIRC token is valid at AIRC only");
    let turn = find("the turn", async || all.turns.lock().unwrap().last().cloned()).await;
    let told = &turn["inbox"][0]["message"]["routing_info"]["attachments"][0];
    assert_eq!((&told["name"], &told["size"]), (&json!("plan.txt"), &json!(8)), "{turn}");
    assert_eq!(all.office.close(), Some(0));
}

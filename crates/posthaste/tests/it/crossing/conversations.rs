//! Conversations and tasks: created at one door, read and continued at the others.

use serde_json::{Value, json};

use super::server::{Everywhere, REALM};
use super::{Correspondent, Outgoing, find};
use crate::airc::soon;
use crate::harness::{Posthaste, Ran};
use crate::swarm::uuid;

impl Everywhere {
    /// Runs the command line against this server.
    pub(super) fn run(&self, args: &[&str]) -> Ran {
        let mut posthaste = Posthaste::new();
        posthaste.command.arg("--data").arg(self.dir.path().join("data"));
        posthaste.args(args.iter().copied()).run()
    }
}

fn texts(turns: &Value, member: &str) -> Vec<String> {
    let turns = turns["turns"].as_array().unwrap_or_else(|| panic!("no turns in {turns}")).iter();
    turns.map(|turn| turn[member].as_str().map_or_else(|| turn[member].to_string(), str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_the_same_at_every_door() {
    let all = Everywhere::open().await;
    let (mut map, mcp) = (all.at_map("map_s").await, all.at_mcp("mcp_r").await);
    let asked = json!({
        "subject": "Where to meet", "initialParticipants": [{ "id": "mcp_r" }],
        "initialTurn": { "contentType": "text", "content": { "text": "At the fountain?" } },
    });
    let made = map.client.call("mail/create", asked).await.unwrap();
    let id = made["conversation"]["id"].as_str().unwrap().to_owned();
    // Read and continued by MCP tools.
    let listed = mcp.call("list_conversations", json!({})).await;
    assert_eq!((&listed[0]["conversation_id"], &listed[0]["subject"]), (&json!(id), &json!("Where to meet")));
    mcp.call("add_turn", json!({ "conversation_id": id, "text": "Rather at the *gate*." })).await;
    // A message into the conversation is a turn, with its text.
    let meta = json!({ "mail": { "conversationId": id } });
    map.send_raw("mcp_r", json!({ "subject": "late", "body": "I am late." }), meta).await;
    let turns = mcp.call("list_turns", json!({ "conversation_id": id })).await;
    assert_eq!(texts(&turns, "text"), ["At the fountain?", "Rather at the *gate*.", "I am late."]);
    let turns = map.client.call("mail/turns/list", json!({ "conversationId": id })).await.unwrap();
    let who: Vec<&str> =
        turns["turns"].as_array().unwrap().iter().map(|turn| turn["participant"].as_str().unwrap()).collect();
    assert_eq!(who, ["map_s", "mcp_r", "map_s"]);
    assert_eq!(turns["turns"][1]["content"], json!({ "text": "Rather at the *gate*." }));
    assert_eq!(turns["turns"][2]["content"], json!({ "subject": "late", "body": "I am late." }));
    // Read on the command line.
    for agent in ["map_s", "mcp_r"] {
        let listed = all.run(&["conversations", "--json", "--agent", agent]).ok().json();
        assert_eq!(listed["conversations"][0]["id"], id.as_str(), "{agent}: {listed}");
        let thread = all.run(&["thread", &id, "--json", "--agent", agent]).ok().json();
        assert_eq!(thread["said"].as_array().unwrap().len(), 3, "{agent}: {thread}");
    }
    // Closed by one agent, closed for the other.
    mcp.call("close_conversation", json!({ "conversation_id": id })).await;
    let found = map.client.call("mail/get", json!({ "conversationId": id })).await.unwrap();
    assert_ne!(found["conversation"]["status"], "active", "{found}");
    assert_eq!(all.office.close(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_airc_thread_is_a_conversation() {
    let all = Everywhere::open().await;
    let mut airc = all.agent("airc", "airc_s").await;
    let mut map = all.at_map("map_r").await;
    let mut message = Outgoing {
        to: "map_r".into(),
        subject: "Handoff".into(),
        body: "Yours when CI is green.".into(),
        thread: "bd-123".into(),
        priority: "normal",
        wants_ack: false,
    };
    airc.send(&message).await;
    let arrived = map.receive("CI is green").await;
    map.reply(&arrived, "Taken.").await;
    let back = airc.receive("Taken.").await;
    assert_eq!(back.thread.as_deref(), Some("bd-123"));
    message.body = "Thanks.".into();
    airc.send(&message).await;
    map.receive("Thanks.").await;
    let found = map.client.call("mail/get", json!({ "conversationId": "bd-123" })).await.unwrap();
    assert_eq!(found["conversation"]["subject"], "Handoff");
    let turns = map.client.call("mail/turns/list", json!({ "conversationId": "bd-123" })).await.unwrap();
    let who: Vec<&str> =
        turns["turns"].as_array().unwrap().iter().map(|turn| turn["participant"].as_str().unwrap()).collect();
    assert_eq!(who, ["airc_s", "map_r", "airc_s"]);
    // Subject and status of the AIRC thread are the conversation's.
    let other = crate::airc::Agent::new(all.office.url(), "airc_t").await;
    let thread = |status: &str| json!({ "type": "context:thread", "thread_id": "bd-9", "subject": "Grammar", "status": status, "created_ts": soon(0) });
    assert_eq!(other.send("map_r", thread("open")).await.status, 201);
    let found = map.client.call("mail/get", json!({ "conversationId": "bd-9" })).await.unwrap();
    assert_eq!(
        (&found["conversation"]["subject"], &found["conversation"]["status"]),
        (&json!("Grammar"), &json!("active"))
    );
    assert_eq!(other.send("map_r", thread("closed")).await.status, 201);
    let found = map.client.call("mail/get", json!({ "conversationId": "bd-9" })).await.unwrap();
    assert_eq!(found["conversation"]["status"], "completed");
    assert_eq!(all.office.close(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_task_is_visible_to_the_agents_that_work_on_it() {
    let all = Everywhere::open().await;
    let mut boss = all.agent("swarm", "boss").await;
    let (mut map, mcp) = (all.at_map("map_r").await, all.at_mcp("mcp_r").await);
    let mut message = Outgoing {
        to: "map_r".into(),
        subject: "errand".into(),
        body: "fetch the post".into(),
        thread: uuid(900),
        priority: "normal",
        wants_ack: false,
    };
    boss.send(&message).await;
    let arrived = map.receive("fetch the post").await;
    let task = json!({ "taskId": message.thread });
    let found = map.client.call("map/tasks/get", task.clone()).await.unwrap();
    assert_eq!(
        (&found["task"]["status"], &found["task"]["owner"]),
        (&json!("in_progress"), &json!(format!("user:ann@{REALM}")))
    );
    map.reply(&arrived, "fetched").await;
    boss.receive("fetched").await;
    let found = find("the end of the task", async || {
        let found = map.client.call("map/tasks/get", task.clone()).await.unwrap();
        (found["task"]["status"] == "completed").then_some(found)
    })
    .await;
    assert_eq!(found["task"]["result"], "fetched");
    // By MCP tools: the conversation has the task's id and all turns.
    message = Outgoing { to: "mcp_r".into(), body: "post the fetch".into(), thread: uuid(901), ..message };
    boss.send(&message).await;
    find("the request", async || {
        let inbox = mcp.call("fetch_inbox", json!({ "include_bodies": true })).await;
        inbox.as_array().unwrap().iter().find(|one| one["body_md"] == "post the fetch").cloned()
    })
    .await;
    let listed = mcp.call("list_conversations", json!({})).await;
    assert_eq!(listed[0]["conversation_id"], message.thread.as_str());
    let given =
        json!({ "target": "boss", "subject": "Re: errand", "body": "posted", "task_id": message.thread });
    mcp.call("send_response", given).await;
    boss.receive("posted").await;
    let turns = mcp.call("list_turns", json!({ "conversation_id": message.thread })).await;
    let said = texts(&turns, "text");
    assert!(said[0].contains("send_request") && said[1..3] == ["post the fetch", "posted"], "{said:?}");
    assert_eq!(all.office.close(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_map_are_completed_by_mcp_and_the_reverse() {
    let all = Everywhere::open().await;
    let (mut map, mcp) = (all.at_map("map_s").await, all.at_mcp("mcp_r").await);
    let asked = json!({ "task": { "id": "t-1", "title": "Mend the gate", "assignee": "mcp_r" } });
    map.client.call("map/tasks/create", asked).await.unwrap();
    let listed = mcp.call("list_conversations", json!({})).await;
    assert_eq!(
        (&listed[0]["conversation_id"], &listed[0]["subject"]),
        (&json!("t-1"), &json!("Mend the gate"))
    );
    mcp.call("task_complete", json!({ "task_id": "t-1", "finish_message": "mended" })).await;
    let last = map.receive("mended").await;
    assert_eq!((last.from.as_str(), last.thread.as_deref()), ("mcp_r", Some("t-1")));
    let found = map.client.call("map/tasks/get", json!({ "taskId": "t-1" })).await.unwrap();
    assert_eq!(found["task"]["status"], "completed");
    assert_eq!(found["task"]["result"]["finish_message"], "mended");

    let given = json!({ "target": "map_s", "subject": "Paint the gate", "body": "green, please" });
    let opened = mcp.call("send_request", given).await;
    let request = map.receive("green, please").await;
    assert_eq!(request.thread.as_deref(), opened["task_id"].as_str());
    let id = opened["task_id"].clone();
    let found = map.client.call("map/tasks/get", json!({ "taskId": id })).await.unwrap();
    assert_eq!(
        (&found["task"]["title"], &found["task"]["assignee"]),
        (&json!("Paint the gate"), &json!("map_s"))
    );
    let done = json!({ "taskId": id, "status": "completed", "result": { "colour": "green" } });
    map.client.call("map/tasks/update", done).await.unwrap();
    let again = mcp.call("task_complete", json!({ "task_id": id, "finish_message": "x" })).await;
    assert_eq!(again["duplicate"], true, "{again}");
    assert_eq!(all.office.close(), Some(0));
}

//! Thread names opened by an attacker before others use them: the opener reads none of their messages, and the name stays
//! usable.

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

const HOME: &str = "main";

/// Sends by MCP, with a thread's name or as a reply. Returns the message's number and its thread.
async fn send(mcp: &Mcp, tool: &str, given: Value) -> (i64, Value) {
    let mut all = json!({ "project_key": HOME, "body_md": "walrus" });
    all.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    let payload = mcp.call(tool, all).await["deliveries"][0]["payload"].clone();
    (payload["id"].as_i64().unwrap(), payload["thread_id"].clone())
}

/// What an agent finds of the messages under these names.
async fn found(mcp: &Mcp, agent: &str, names: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        let turns = json!({ "project_key": HOME, "agent_name": agent, "conversation_id": name });
        all.push(mcp.result("list_turns", turns).await.to_string());
        let thread = json!({ "project_key": HOME, "agent_name": agent, "thread_id": name });
        all.push(mcp.result("summarize_thread", thread).await.to_string());
    }
    let search = json!({ "project_key": HOME, "agent_name": agent, "query": "walrus" });
    all.push(mcp.result("search_messages", search).await.to_string());
    all.into_iter().filter(|text| text.contains("walrus")).collect()
}

#[tokio::test]
async fn opener_of_a_thread_name_reads_nothing_of_others() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mut who = Vec::new();
    for name in ["mallory", "ann", "bob"] {
        let mcp = Mcp::bearer(&office, "agent", name).await;
        let given = json!({ "project_key": HOME, "program": "test", "model": "m", "name": name });
        mcp.call("register_agent", given).await;
        who.push(mcp);
    }
    let [mallory, ann, bob] = who.try_into().unwrap_or_else(|_| panic!("three"));
    // Names that others will use: with them as participants, and without.
    let mut names = vec!["bd-123".to_owned(), "bd-124".to_owned()];
    let open = async |name: &str| {
        let participants = if name == "bd-124" { json!([]) } else { json!(["ann", "bob"]) };
        let given = json!({
            "project_key": HOME, "agent_name": "mallory", "conversation_id": name, "participants": participants,
        });
        mallory.call("open_conversation", given).await;
    };
    for name in &names {
        open(name).await;
    }
    for name in &names[..2] {
        let given = json!({ "sender_name": "ann", "to": ["bob"], "subject": "s", "thread_id": name });
        let (number, thread) = send(&ann, "send_message", given).await;
        assert_eq!(thread, json!(name));
        let answer = json!({ "message_id": number, "sender_name": "bob" });
        assert_eq!(send(&bob, "reply_message", answer).await.1, json!(name), "the name is kept");
    }
    let given = json!({ "sender_name": "ann", "to": ["bob"], "subject": "s" });
    let (number, _) = send(&ann, "send_message", given).await;
    // The thread of a reply is named by the message's number, which can be guessed.
    open(&number.to_string()).await;
    let answer = json!({ "message_id": number, "sender_name": "bob" });
    assert_eq!(send(&bob, "reply_message", answer).await.1, json!(number.to_string()));
    names.push(number.to_string());
    // The control door accepts thread names too.
    let own = office.as_bearer(ann.token.as_deref().unwrap());
    for name in &names[..2] {
        own.call("send", json!({ "to": ["bob"], "body": "walrus", "conversation": name })).await.unwrap();
    }
    assert_eq!(found(&mallory, "mallory", &names).await, Vec::<String>::new());
    assert!(!found(&bob, "bob", &names).await.is_empty());
}

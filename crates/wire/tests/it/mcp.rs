//! MCP: bytes of the protocol's own messages and of the tools' answers, headers, and which revision a handshake ends with.

use posthaste_wire::mcp::answers;
use posthaste_wire::mcp::errors::{ResourceErrorData, ToolFailure, VersionErrorData};
use posthaste_wire::mcp::lifecycle::{
    CacheHints, Complete, CompleteResult, DiscoverResult, Empty, InitializeParams, InitializeResult,
    ResultType,
};
use posthaste_wire::mcp::meta::AnyParams;
use posthaste_wire::mcp::notifications::{
    AcknowledgedParams, CancelledParams, ListenParams, ProgressParams, UpdatedParams,
};
use posthaste_wire::mcp::prompts::{ListPromptsResult, PromptParams, PromptResult};
use posthaste_wire::mcp::resources::{ListResourcesResult, ListTemplatesResult, ReadResult, ResourceParams};
use posthaste_wire::mcp::tools::{CallParams, CallResult, ListToolsResult, Listed};
use posthaste_wire::mcp::{Revision, headers};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Reads a text and writes it again without a change.
#[track_caller]
fn golden<T: DeserializeOwned + Serialize>(text: &str) -> T {
    let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    read
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn the_protocols_own_messages_keep_their_bytes() {
    golden::<InitializeParams>(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}"#,
    );
    golden::<InitializeResult>(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{"subscribe":true},"tools":{}},"serverInfo":{"name":"posthaste","version":"1"},"instructions":"read"}"#,
    );
    golden::<DiscoverResult>(
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"prompts":{},"resources":{"subscribe":true},"tools":{}},"instructions":"read","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"posthaste","version":"1"}}}"#,
    );
    golden::<ListToolsResult>(
        r#"{"tools":[{"name":"whois","description":"One agent.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"openWorldHint":false}},{"name":"send","description":"Send.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":true}}]}"#,
    );
    golden::<CallParams>(r#"{"name":"whois","arguments":{"agent_name":"a"}}"#);
    golden::<ResourceParams>(r#"{"uri":"resource://projects"}"#);
    golden::<ListResourcesResult>(
        r#"{"resources":[{"uri":"resource://projects","name":"projects","description":"All","mimeType":"application/json"}]}"#,
    );
    golden::<ListTemplatesResult>(
        r#"{"resourceTemplates":[{"uriTemplate":"resource://inbox/{agent}","name":"inbox","description":"Mail","mimeType":"application/json"}]}"#,
    );
    golden::<ReadResult>(
        r#"{"contents":[{"uri":"resource://x","mimeType":"application/json","text":"[]"},{"uri":"resource://y","mimeType":"image/png","blob":"AAAA"}]}"#,
    );
    golden::<PromptParams>(r#"{"name":"check_mail","arguments":{"project_key":"a"}}"#);
    golden::<ListPromptsResult>(
        r#"{"prompts":[{"name":"p","description":"d","arguments":[{"name":"a","description":"m","required":true}]}]}"#,
    );
    golden::<PromptResult>(
        r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"Call x."}}]}"#,
    );
    golden::<CompleteResult>(r#"{"completion":{"values":[]}}"#);
    golden::<CancelledParams>(r#"{"requestId":"a"}"#);
    golden::<ProgressParams>(r#"{"progressToken":7,"progress":5.5,"total":60.0,"message":"no mail yet"}"#);
    golden::<UpdatedParams>(r#"{"uri":"resource://x"}"#);
    golden::<UpdatedParams>(
        r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"},"uri":"resource://x"}"#,
    );
    golden::<AcknowledgedParams>(
        r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":9},"notifications":{"resourceSubscriptions":["resource://x"]}}"#,
    );
    golden::<AcknowledgedParams>(
        r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":9},"notifications":{}}"#,
    );
    golden::<ListenParams>(r#"{"notifications":{}}"#);
    golden::<ResourceErrorData>(r#"{"uri":"resource://x"}"#);
    golden::<VersionErrorData>(r#"{"requested":"2030-01-01","supported":["2024-11-05"]}"#);
    golden::<ToolFailure>(r#"{"error":{"code":"AGENT_NOT_FOUND","message":"m","data":{"nearest":["a"]}}}"#);
    golden::<ToolFailure>(r#"{"error":{"code":"BUSY","message":"m"}}"#);
}

#[test]
fn results_of_calls_keep_their_bytes() {
    for text in [
        r#"{"content":[{"type":"text","text":"[]"},{"type":"resource","resource":{"uri":"posthaste://empty","mimeType":"text/plain","text":"The inbox is empty."}}],"structuredContent":{"result":[]},"isError":false}"#,
        r#"{"content":[{"type":"text","text":"Error"}],"structuredContent":{"error":{"code":"BUSY","message":"m"}},"isError":true}"#,
    ] {
        let read: CallResult<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let result = Complete { result_type: ResultType::Complete, cache: None, result: read };
        let written = serde_json::to_string(&result).unwrap();
        assert_eq!(written, format!(r#"{{"resultType":"complete",{}"#, &text[1..]));
    }
    let cache = Some(CacheHints::default());
    let cached = Complete { result_type: ResultType::Complete, cache, result: Listed { result: [1, 2] } };
    let text = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","result":[1,2]}"#;
    assert_eq!(serde_json::to_string(&cached).unwrap(), text);
    let empty = Complete { result_type: ResultType::Complete, cache: None, result: Empty {} };
    assert_eq!(serde_json::to_string(&empty).unwrap(), r#"{"resultType":"complete"}"#);
}

#[test]
fn answers_of_tools_keep_their_bytes() {
    const MESSAGE: &str = r#""id":6,"project_id":8,"sender_id":9,"thread_id":"7","topic":null,"subject":"hi","importance":"normal","ack_required":true,"created_ts":"t","attachments":[{"name":"a.txt"}],"from":"a""#;
    const PROFILE: &str = r#""id":1,"name":"a","program":"p","model":"m","task_description":"","inception_ts":"t","last_active_ts":"t","project_id":8,"attachments_policy":"auto""#;
    let sent = format!(r#"{{{MESSAGE},"body_md":"b","to":["x"],"cc":[],"bcc":[]}}"#);
    let members = &sent[1..sent.len() - 1];
    golden::<answers::SentMessage>(&sent);
    golden::<answers::InboxMessage>(&format!(r#"{{{MESSAGE},"kind":"to"}}"#));
    golden::<answers::InboxMessage>(&format!(
        r#"{{{MESSAGE},"body_md":"b","kind":"cc","read_at":"t","acknowledged_at":"t"}}"#
    ));
    golden::<answers::TrackedMessage>(&format!(
        r#"{{{members},"acknowledgements":[{{"agent":"x","acknowledged_at":"t","response":null}}]}}"#
    ));
    golden::<answers::SendReceipt>(&format!(
        r#"{{"deliveries":[{{"project":"/srv/app","payload":{sent}}}],"count":1,"attachments":[]}}"#
    ));
    golden::<answers::Reply>(&format!(
        r#"{{{members},"reply_to":6,"deliveries":[{{"project":"/srv/app","payload":{sent}}}],"count":1}}"#
    ));
    golden::<answers::RegisteredAgent>(&format!(
        r#"{{{PROFILE},"registration_token":"pha_x","shell":"export POSTHASTE_AGENT=a"}}"#
    ));
    golden::<answers::WhoisAnswer>(&format!(r#"{{{PROFILE},"contact_policy":"open","recent_commits":[]}}"#));
    golden::<answers::ListedAgent>(&format!(
        r#"{{{PROFILE},"door":"mcp","kind":"agent","role":null,"online":true,"contact_policy":"auto"}}"#
    ));
    golden::<answers::PlacedProject>(
        r#"{"id":8,"slug":"srv-app","human_key":"/srv/app","created_at":"t","realm":"srv-app","note":"n"}"#,
    );
    golden::<answers::Waited>(r#"{"count":0,"messages":[],"timed_out":true,"cursor":null}"#);
    golden::<answers::Reserved>(
        r#"{"granted":[{"id":1,"path_pattern":"src/**","exclusive":true,"reason":"","expires_ts":"t"}],"conflicts":[{"path":"src/a","holders":[{"agent":"b","path_pattern":"src","exclusive":false,"expires_ts":"t","file_reservation_id":3}]}]}"#,
    );
    golden::<answers::ReservationCycle>(
        r#"{"file_reservations":{"granted":[],"conflicts":[]},"released":null}"#,
    );
    golden::<answers::ConversationRow>(
        r#"{"conversation_id":"c","kind":"multi-agent","status":"active","subject":null,"created_by":"a","participants":2,"turns":0,"created_ts":"t","updated_ts":"t","place":5}"#,
    );
    golden::<answers::OpenedTask>(&format!(
        r#"{{"task_id":"t","message_id":6,"kind":"request","message":{sent},"opened":true}}"#
    ));
    golden::<answers::ThreadAnswer>(
        r#"{"thread_id":"7","summary":{"participants":[],"key_points":[],"action_items":[],"decisions":[],"open_questions":[],"total_messages":0,"open_actions":0,"done_actions":0,"mentions":[{"name":"x","count":1}]},"examples":[]}"#,
    );
}

#[test]
fn a_handshake_ends_with_a_revision_that_has_sessions() {
    for (asked, negotiated) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2030-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        assert_eq!(Revision::negotiate(asked).as_str(), negotiated, "{asked}");
    }
    assert!(Revision::is_sessionless("2026-07-28") && Revision::is_sessionless("2030-01-01"));
    assert!(!Revision::is_sessionless("2025-11-25") && !Revision::is_sessionless(""));
    for revision in Revision::KNOWN {
        assert_eq!(Revision::parse(revision.as_str()), Some(revision));
    }
}

#[test]
fn members_of_meta_of_the_wrong_type_count_as_missing() {
    let read = |text: &str| AnyParams::read(Some(&raw(text)));
    let meta = read(
        r#"{"_meta":{"progressToken":{"x":1},"io.modelcontextprotocol/protocolVersion":3,"io.modelcontextprotocol/clientCapabilities":[]}}"#,
    );
    assert!(meta.progress_token().is_none() && meta.revision().is_none());
    assert_eq!(
        meta.missing(),
        ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"]
    );
    let meta = read(
        r#"{"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#,
    );
    assert_eq!((meta.revision(), meta.missing().len()), (Some("2026-07-28"), 0));
    assert_eq!(meta.progress_token().and_then(|token| token.as_str()), Some("p"));
    for nothing in ["[]", "{}", r#"{"_meta":null}"#, r#"{"_meta":7}"#] {
        assert_eq!(read(nothing).missing().len(), 2, "{nothing}");
    }
}

#[test]
fn headers_carry_what_a_request_is_about() {
    let subject = |method: &str, params: &str| headers::subject(method, Some(&raw(params)));
    assert_eq!(subject("tools/call", r#"{"name":"whois"}"#).as_deref(), Some("whois"));
    assert_eq!(subject("resources/read", r#"{"uri":"resource://ä"}"#).as_deref(), Some("resource://ä"));
    assert_eq!(subject("tasks/get", r#"{"taskId":"t"}"#).as_deref(), Some("t"));
    assert_eq!(subject("tools/list", r#"{"name":"whois"}"#), None);
    assert_eq!(subject("tools/call", r#"{"name":5}"#), None);
    for (value, header) in [
        ("whois", "whois"),
        ("resource://ä", "=?base64?cmVzb3VyY2U6Ly/DpA==?="),
        (" x", "=?base64?IHg=?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
    ] {
        assert_eq!(headers::encode(value), header);
        assert_eq!(headers::decode(header).as_deref(), Some(value));
    }
    assert_eq!(headers::decode("=?base64?%%?="), None);
}

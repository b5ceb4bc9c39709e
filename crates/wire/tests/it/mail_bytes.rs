//! MAIL: the exact text of answers, events, turns and chat requests. Each is parsed and written again.

use posthaste_wire::mail::answers::{
    Card, ErrorAnswer, HealthAnswer, InterswarmAnswer, PeerAnswer, PeerCard, StatusAnswer, SwarmAnswer,
    SwarmCard, SwarmList, WhoAmI,
};
use posthaste_wire::mail::definition::SwarmDefinition;
use posthaste_wire::mail::driver::{NamedReply, TurnRequest, reply_id};
use posthaste_wire::mail::events::{ActionEnded, InterswarmReceived, MessageSent, Reason, ToolCalled};
use posthaste_wire::mail::tasks::{
    CancelAnswer, DirectAnswer, MessageAnswer, PeerDirectAnswer, Ping, StreamEnd, TaskList,
};
use posthaste_wire::mail::tools::FunctionCall;
use posthaste_wire::mail::{
    DirectRequest, InterswarmRequest, MailMessage, MailOrigin, MessageRequest, TaskRef,
};
use posthaste_wire::model::{ChatMessage, ChatRequest, Completion, Tool, ToolCall, ToolChoice};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Parses a text and checks that writing gives the same text.
#[track_caller]
fn round_trip<T: Serialize + DeserializeOwned>(text: &str) -> T {
    let value: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
    value
}

const REQUEST: &str = concat!(
    r#"{"id":"00000000-0000-4000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z","message":{"#,
    r#""task_id":"00000000-0000-4000-8000-000000000002","request_id":"00000000-0000-4000-8000-000000000003","#,
    r#""sender":{"address_type":"user","address":"ann"},"recipient":{"address_type":"agent","address":"boss"},"#,
    r#""subject":"s","body":"b","sender_swarm":"north","recipient_swarm":"south","routing_info":{"b":1,"a":2}},"#,
    r#""msg_type":"request"}"#
);
const BROADCAST: &str = concat!(
    r#"{"id":"00000000-0000-4000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z","message":{"#,
    r#""task_id":"00000000-0000-4000-8000-000000000002","broadcast_id":"00000000-0000-4000-8000-000000000003","#,
    r#""sender":{"address_type":"system","address":"north"},"recipients":[{"address_type":"agent","address":"all"}],"#,
    r#""subject":"::task_complete::","body":"b","recipient_swarms":["north"]},"msg_type":"broadcast_complete"}"#
);

#[test]
fn messages_keep_their_bytes() {
    round_trip::<MailMessage>(REQUEST);
    round_trip::<MailMessage>(BROADCAST);
    round_trip::<MailMessage>(
        &BROADCAST.replace("broadcast_id", "interrupt_id").replace("broadcast_complete", "interrupt"),
    );
    let refused = serde_json::from_str::<MailMessage>(&REQUEST.replace("\"boss\"", "5")).unwrap_err();
    assert_eq!(refused.to_string(), "field `message.recipient.address` must be a string");
}

#[test]
fn interswarm_messages_keep_their_bytes() {
    let text = concat!(
        r#"{"message":{"message_id":"m","source_swarm":"north","target_swarm":"south","timestamp":"2026-01-01T00:00:00Z","#,
        r#""payload":{"task_id":"00000000-0000-4000-8000-000000000002","request_id":"r","#,
        r#""sender":{"address_type":"agent","address":"a@north"},"recipient":{"address_type":"agent","address":"b@south"},"#,
        r#""subject":"s","body":"b"},"msg_type":"response","auth_token":"t","task_owner":"user:ann@north","#,
        r#""task_contributors":["user:ann@north","swarm:north@south"],"metadata":{}}}"#
    );
    round_trip::<InterswarmRequest>(text);
    for (body, error) in [
        ("{}", "field `message` is required"),
        (r#"{"message":5}"#, "field `message` must be a JSON object"),
        (r#"{"message":{"msg_type":5}}"#, "field `message.msg_type` must be a string"),
    ] {
        assert_eq!(serde_json::from_str::<InterswarmRequest>(body).unwrap_err().to_string(), error);
    }
    round_trip::<InterswarmAnswer>(
        r#"{"swarm":"south","task_id":"t","status":"success","local_runner":"swarm:north@south"}"#,
    );
    let answer = PeerAnswer::read(br#"{"local_runner":5,"detail":"not now"}"#);
    assert_eq!((answer.local_runner, answer.detail.as_str()), (None, "not now"));
    assert_eq!(PeerAnswer::read(b"<html>"), PeerAnswer::default());
}

#[test]
fn requests_of_clients_keep_their_bytes() {
    round_trip::<DirectRequest>(concat!(
        r#"{"user_token":"t","body":"b","targets":["a@south"],"subject":"s","msg_type":"request","routing_info":{},"#,
        r#""stream":false,"ignore_stream_pings":false,"task_id":"00000000-0000-4000-8000-000000000002"}"#
    ));
    for token in ["null", "\"\""] {
        let body = format!(r#"{{"user_token":{token}}}"#);
        let error = serde_json::from_str::<DirectRequest>(&body).unwrap_err();
        assert_eq!(error.to_string(), "field `user_token` is required");
    }
    round_trip::<MessageRequest>(concat!(
        r#"{"body":"b","task_id":"00000000-0000-4000-8000-000000000002","show_events":true,"stream":false,"#,
        r#""resume_from":"user_response","msg_type":"broadcast","kwargs":{"max_steps":3}}"#
    ));
    round_trip::<TaskRef>(r#"{"task_id":"t"}"#);
}

#[test]
fn answers_keep_their_bytes() {
    round_trip::<ErrorAnswer>(r#"{"detail":"why","error":{"code":"bad_request","message":"why"}}"#);
    round_trip::<HealthAnswer>(r#"{"status":"healthy","swarm_name":"north","timestamp":"now"}"#);
    round_trip::<HealthAnswer>(
        r#"{"status":"unhealthy","swarm_name":"north","timestamp":"now","version":"1","protocol":"AIRC","protocol_version":"0","safe_mode":true,"reason":"why"}"#,
    );
    round_trip::<WhoAmI>(r#"{"id":"ann","role":"user"}"#);
    round_trip::<StatusAnswer>(
        r#"{"swarm":{"name":"north","status":"ready"},"active_users":1,"user_mail_ready":true,"user_task_running":false}"#,
    );
    round_trip::<SwarmAnswer>(r#"{"status":"registered","swarm_name":"far"}"#);
    round_trip::<CancelAnswer>(r#"{"status":"cancelled","task_id":"t"}"#);
    round_trip::<MessageAnswer>(r#"{"response":"done"}"#);
    round_trip::<DirectAnswer>(&format!(r#"{{"response":{BROADCAST}}}"#));
    assert_eq!(
        serde_json::to_string(&Card::by_document("north", 1.5)).unwrap(),
        r#"{"name":"mail","version":"1.3","swarm":"north","status":"running","uptime":1.5}"#
    );
    let swarm = SwarmCard { name: "north".into(), version: "1".into(), public: true, ..SwarmCard::default() };
    let card = serde_json::to_string(&Card::described(swarm, 1.5)).unwrap();
    assert_eq!(
        card,
        r#"{"name":"mail","version":"1.3","protocol_version":"1.3","swarm":{"name":"north","version":"1","description":"","entrypoint":"","keywords":[],"public":true},"status":"running","uptime":1.5}"#
    );
    round_trip::<Card>(&card);
    let read = PeerCard::read(&serde_json::from_str(&card).unwrap());
    assert_eq!((read.version.as_str(), read.public), ("1.3", true));
    let lenient = json!({ "version": "2", "swarm": { "keywords": ["a", 5], "public": "yes" } });
    let read = PeerCard::read(&lenient);
    assert_eq!((read.version.as_str(), read.keywords.len(), read.public), ("2", 1, false));
}

/// The two kinds of entries have their members in another order.
#[test]
fn swarm_lists_keep_their_bytes() {
    let own = r#"{"swarm_name":"north","base_url":"http://a","version":"1.3","last_seen":"now","is_active":true,"swarm_description":"","keywords":[]}"#;
    let peer = r#"{"swarm_name":"south","base_url":"http://b","version":"1.3","is_active":false,"swarm_description":"","keywords":["near"],"last_seen":"then","metadata":{"a":1}}"#;
    let list: SwarmList = serde_json::from_str(&format!(r#"{{"swarms":[{peer}]}}"#)).unwrap();
    assert_eq!(serde_json::to_string(&list).unwrap(), format!(r#"{{"swarms":[{peer}]}}"#));
    let own: posthaste_wire::mail::answers::OwnSwarm = round_trip(own);
    assert!(own.is_active);
}

#[test]
fn task_records_and_events_keep_their_bytes() {
    let event = concat!(
        r#"{"event":"tool_call","data":{"timestamp":"now","description":"d","task_id":"t","extra_data":"#,
        r#"{"tool_name":"help","tool_args":{},"tool_call_id":"c"}},"id":"7.n.1.1","retry":null,"comment":null,"_sep":"\r\n"}"#
    );
    let task = format!(
        r#"{{"task_id":"t","title":null,"task_owner":"user:ann@north","task_contributors":["user:ann@north"],"start_time":"now","is_running":true,"completed":false,"paused":false,"remote_swarms":[],"task_message_queue":[],"events":[{event}]}}"#
    );
    let tasks: TaskList = round_trip(&format!(r#"{{"t":{task}}}"#));
    let details = tasks.0[0].events[0].data.extra_data.to_string();
    round_trip::<ToolCalled>(&details);
    round_trip::<TaskList>("{}");
    round_trip::<Reason>(r#"{"reason":null}"#);
    round_trip::<ActionEnded>(r#"{"tool_name":"a","tool_call_id":"c","result":"SUCCESS: x"}"#);
    round_trip::<InterswarmReceived>(r#"{"source_swarm":"south","message_id":"m"}"#);
    round_trip::<MessageSent>(&format!(r#"{{"full_message":{REQUEST}}}"#));
    round_trip::<MessageSent>(&format!(r#"{{"full_message":{REQUEST},"notice":false}}"#));
    round_trip::<StreamEnd>(r#"{"timestamp":"now","task_id":"t","response":"done"}"#);
    round_trip::<Ping>(r#"{"timestamp":"now","task_id":"t"}"#);
    round_trip::<FunctionCall>(
        r#"{"arguments":"{}","call_id":"c","name":"ask","type":"function_call","id":"fc_c","status":"completed"}"#,
    );
    round_trip::<MailOrigin>(
        r#"{"door":"map","message_id":"m","priority":2,"thread_id":"t","kind":"k","ack_required":true,"payload":{"z":1},"meta":{},"attachments":[]}"#,
    );
}

#[test]
fn peers_answers_are_unwrapped() {
    let body = format!(r#"{{"response":{{"response":{BROADCAST}}},"events":[1]}}"#);
    let answer = PeerDirectAnswer::read(body.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&answer.response).unwrap(), BROADCAST);
    assert_eq!(answer.events, Some(vec![json!(1)]));
    let answer = PeerDirectAnswer::read(br#"{"events":null}"#).unwrap();
    assert!(answer.response.is_null() && answer.events.is_none());
    assert!(PeerDirectAnswer::read(b"<html>").is_err());
}

#[test]
fn turns_keep_their_bytes_and_replies_are_read_in_every_form() {
    round_trip::<TurnRequest<'_>>(&format!(
        r#"{{"id":7,"agent":"hand","swarm":"north","boss":"boss","task_id":"t","can_complete_tasks":false,"comm_targets":["boss"],"tools":["help"],"actions":[],"inbox":[{REQUEST}],"tool_results":[{{"call_id":"c","content":"x"}}],"resumed":false,"must_complete":false}}"#
    ));
    for text in [
        r#"{"id":7,"calls":[{"call_id":"c","tool":"help","args":{}}]}"#,
        r#"{"id":7,"calls":[{"tool_call_id":"c","name":"help","arguments":{},"more":1}],"more":1}"#,
        r#"{"id":7,"calls":[{"tool_call_id":"c","tool_name":"help","tool_args":{}}],"text":null}"#,
    ] {
        let NamedReply { id, reply } = serde_json::from_str(text).unwrap();
        assert_eq!(
            (id, reply.calls[0].call_id.as_deref(), reply.calls[0].tool.as_str()),
            (7, Some("c"), "help")
        );
        assert_eq!((&reply.calls[0].args, &reply.text, &reply.error), (&json!({}), &None, &None));
    }
    let failed: NamedReply = serde_json::from_str(r#"{"id":7,"error":"why"}"#).unwrap();
    assert_eq!((failed.reply.error.as_deref(), failed.reply.calls.len()), (Some("why"), 0));
    assert_eq!((reply_id(br#"{"id":7,"calls":5}"#), reply_id(b"x")), (Some(7), None));
}

#[test]
fn chat_requests_keep_their_bytes() {
    let request = ChatRequest {
        model: "tiny".into(),
        messages: vec![
            ChatMessage::text("system", "Lead."),
            ChatMessage::calls(vec![ToolCall::new("c", "help", "{}".into())]),
            ChatMessage::result("c", "x"),
        ],
        tools: vec![Tool::function("help", "helps", json!({ "type": "object" }))],
        tool_choice: ToolChoice::function("help"),
        stream: true,
    };
    let text = concat!(
        r#"{"model":"tiny","messages":[{"role":"system","content":"Lead."},"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"help","arguments":"{}"}}]},"#,
        r#"{"role":"tool","content":"x","tool_call_id":"c"}],"#,
        r#""tools":[{"type":"function","function":{"name":"help","description":"helps","parameters":{"type":"object"}}}],"#,
        r#""tool_choice":{"type":"function","function":{"name":"help"}},"stream":true}"#
    );
    assert_eq!(serde_json::to_string(&request).unwrap(), text);
    assert_eq!(round_trip::<ChatRequest>(text), request);
    round_trip::<ChatRequest>(
        r#"{"model":"m","messages":[],"tools":[],"tool_choice":"auto","stream":false}"#,
    );
}

#[test]
fn chat_answers_are_read_leniently() {
    let read = |text: &str| Completion::read(text.as_bytes()).unwrap().into_first();
    let call = r#"{"index":1,"id":null,"function":{"name":"help","arguments":"{"}}"#;
    let piece =
        read(&format!(r#"{{"choices":[{{"delta":{{"content":null,"tool_calls":[{call}]}}}}],"x":1}}"#)).delta;
    assert_eq!((piece.content.as_str(), piece.tool_calls[0].index), ("", Some(1)));
    assert_eq!((piece.tool_calls[0].id.as_str(), piece.tool_calls[0].function.name.as_str()), ("", "help"));
    assert_eq!(
        read(r#"{"choices":[{"message":{"content":"words","tool_calls":null}}]}"#).message.content,
        "words"
    );
    for text in ["{}", "[]", "5", r#"{"choices":{}}"#, r#"{"choices":[{"message":[]}]}"#] {
        assert_eq!(read(text).message.content, "", "{text}");
    }
    let failed = Completion::read(br#"{"error":{"message":"no"}}"#).unwrap();
    assert_eq!(failed.error.unwrap().to_string(), r#"{"message":"no"}"#);
    assert!(Completion::read(b"<html>").is_err());
}

#[test]
fn swarm_files_are_written_as_they_are_read() {
    let text = include_str!("../../../../examples/swarm/builtin.json");
    let definition: SwarmDefinition = serde_json::from_str(text).unwrap();
    let written = serde_json::to_string(&definition).unwrap();
    assert_eq!(round_trip::<SwarmDefinition>(&written), definition);
}

//! MAP messages, conversations, turns, events and subscriptions: what is read is written again byte for byte.

use posthaste_wire::map::conversation::{
    Conversation, CreateResult, GetResult, Invitation, JoinResult, LeaveResult, Participant, PresenceResult,
};
use posthaste_wire::map::event::{
    AgentRegistered, DraftMembers, Event, EventParams, MessageData, OverflowData, SessionUpdate, TurnData,
};
use posthaste_wire::map::message::{
    Delivered, Delivery, ForeignMeta, InjectResult, Message, Receipt, RequestResult, SendParams, SendResult,
    TextPayload, To,
};
use posthaste_wire::map::subscription::{
    ReplayResult, SubscribeResult, SubscriptionParams, Success, UnsubscribeResult,
};
use posthaste_wire::map::turn::{
    MailReplayResult, SummaryResult, ThreadsResult, Turn, TurnResult, TurnVisibility, TurnsResult,
};
use posthaste_wire::rpc::Notification;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

fn same<'a, T: Deserialize<'a> + Serialize>(text: &'a str) -> T {
    let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    read
}

const MESSAGE: &str = r#"{"id":"m1","from":"a","to":{ "agent":"b" },"timestamp":5,"payload":{"n":1.0,"n":2},"meta":{"x": null}}"#;
const CONVERSATION: &str = r#"{"id":"c","type":"mixed","status":"active","participantCount":1,"createdAt":1,"updatedAt":2,"createdBy":"a","metadata":{},"subject":"s"}"#;
const PARTICIPANT: &str = r#"{"id":"a","conversationId":"c","type":"agent","role":"worker","joinedAt":1,"permissions":{"canSend":true,"canObserve":true,"canInvite":false,"canRemove":false,"canCreateThreads":true,"historyAccess":"full","canSeeInternal":false}}"#;
const TURN: &str = r#"{"id":"turn-1","conversationId":"c","participant":"a","timestamp":3,"contentType":"text","content":"x","source":{"type":"explicit","method":"mail/turn"},"visibility":{"type":"participants","ids":["a"]},"status":"complete"}"#;

#[test]
fn messages_keep_their_payload_and_meta() {
    let message: Message<'_> = same(MESSAGE);
    assert_eq!(message.payload.unwrap().get(), r#"{"n":1.0,"n":2}"#);
    let message: Message<'_> = same(r#"{"id":"m","from":"a","to":"b","timestamp":5,"payload":null}"#);
    assert_eq!(message.payload.unwrap().get(), "null", "null is a payload");
    same::<Notification<'_, Delivery<'_>>>(&format!(
        r#"{{"jsonrpc":"2.0","method":"map/message","params":{{"message":{MESSAGE},"recipient":"b"}}}}"#
    ));
    same::<SendParams<'_>>(r#"{"to":{"agent":"b"},"payload":null,"meta":{},"priority":2,"messageType":"k"}"#);
    same::<TextPayload<'_>>(r#"{"body":"b","subject":"s","type":"k"}"#);
    same::<ForeignMeta<'_>>(
        r#"{"priority":"high","correlationId":"c","requireAck":true,"mail":{"conversationId":"c"},"_meta":{"attachments":[]}}"#,
    );
}

#[test]
fn addresses_have_one_form_each() {
    for text in [
        r#"{"system":"s","agent":"a"}"#,
        r#"{"agent":"a"}"#,
        r#"{"agents":[]}"#,
        r#"{"scope":"s"}"#,
        r#"{"role":"r"}"#,
        r#"{"role":"r","within":"s"}"#,
        r#"{"parent":true}"#,
        r#"{"children":true,"depth":2}"#,
        r#"{"siblings":true}"#,
        r#"{"ancestors":true}"#,
        r#"{"descendants":true,"depth":1}"#,
        r#"{"participants":"clients"}"#,
        r#"{"broadcast":true}"#,
        r#"[{"agent":"a"},{"scope":"s"}]"#,
    ] {
        same::<To>(text);
    }
}

#[test]
fn results_of_sending() {
    let local = r#"{"agentId":"b","status":"queued","semantic":"queue","timestamp":1}"#;
    let federated =
        r#"{"agentId":"s:agent:b","status":"delivered","semantic":"queue","timestamp":1,"error":null}"#;
    assert_eq!(same::<Receipt<'_>>(local).error, None);
    assert_eq!(same::<Receipt<'_>>(federated).error, Some(None));
    let sent = format!(r#"{{"messageId":"m","delivered":["b"],"receipts":[{local},{federated}]}}"#);
    assert!(matches!(same::<SendResult<'_>>(&sent).delivered, Delivered::Agents(_)));
    let sent: SendResult<'_> = same(r#"{"messageId":"m","delivered":0,"receipts":[]}"#);
    assert_eq!(sent.delivered, Delivered::Count(0));
    same::<RequestResult<'_>>(&format!(r#"{{"messageId":"m","response":{MESSAGE},"payload":1}}"#));
    same::<InjectResult<'_>>(r#"{"injected":true,"delivery":"message","messageId":"m"}"#);
}

#[test]
fn conversations_and_participants() {
    same::<Conversation>(CONVERSATION);
    same::<Participant>(PARTICIPANT);
    same::<CreateResult<'_>>(&format!(
        r#"{{"conversation":{CONVERSATION},"participant":{PARTICIPANT},"initialTurn":{TURN}}}"#
    ));
    same::<GetResult<'_>>(&format!(
        r#"{{"conversation":{CONVERSATION},"participants":[{PARTICIPANT}],"threads":[],"recentTurns":[{TURN}],"stats":{{"totalTurns":1,"turnsByContentType":{{"text":1}},"activeParticipants":1,"threadCount":0}}}}"#
    ));
    same::<JoinResult<'_>>(&format!(
        r#"{{"conversation":{CONVERSATION},"participant":{PARTICIPANT},"history":[],"historyCursor":"turn-1","summary":"s"}}"#
    ));
    same::<LeaveResult>(r#"{"success":true,"leftAt":null}"#);
    same::<PresenceResult>(
        r#"{"conversationId":"c","participants":[{"participantId":"a","presence":"online"}]}"#,
    );
    same::<Invitation>(r#"{"type":"mail.invitation","conversationId":"c","message":"come"}"#);
}

#[test]
fn turns_threads_and_summaries() {
    let turn: Turn<'_> = same(TURN);
    assert!(matches!(turn.visibility, TurnVisibility::Participants { .. }));
    same::<TurnResult<'_>>(
        r#"{"turn":{"id":"turn-1","conversationId":"c","participant":"a","timestamp":3,"contentType":"data","content":null,"threadId":"thread-1","inReplyTo":"turn-0","source":{"type":"intercepted","messageId":"m"},"visibility":{"type":"all"},"status":"complete","metadata":{}}}"#,
    );
    same::<TurnsResult<'_>>(&format!(r#"{{"turns":[{TURN}],"hasMore":true,"nextCursor":"turn-1"}}"#));
    same::<MailReplayResult<'_>>(r#"{"turns":[],"hasMore":false,"missedCount":2}"#);
    same::<ThreadsResult>(
        r#"{"threads":[{"id":"thread-1","conversationId":"c","rootTurnId":"turn-1","turnCount":0,"participantCount":1,"createdAt":1,"updatedAt":1,"createdBy":"a","subject":"s"}],"hasMore":false}"#,
    );
    same::<SummaryResult>(r#"{"summary":"s","generated":false,"cachedAt":3,"keyPoints":[]}"#);
}

#[test]
fn events_in_both_dialects() {
    let sdk = r#"{"id":"01","type":"message_sent","timestamp":1,"source":"a","data":{"messageId":"m"},"causedBy":["00"]}"#;
    let params = format!(
        r#"{{"subscriptionId":"sub-1","sequenceNumber":1,"sequence":1,"eventId":"01","timestamp":1,"causedBy":["00"],"event":{sdk}}}"#
    );
    same::<EventParams<'_>>(&params);
    let event: EventParams<'_, Event<'_>> = serde_json::from_str(&params).unwrap();
    assert_eq!(event.event.data.get(), r#"{"messageId":"m"}"#);
    same::<SessionUpdate<'_, Box<RawValue>>>(&format!(
        r#"{{"sessionId":"s","update":{{"sessionUpdate":"_map/event","event":{params}}}}}"#
    ));
    same::<ReplayResult<Box<RawValue>>>(&format!(r#"{{"events":[{sdk}],"hasMore":false}}"#));

    let envelope: Message<'_> = serde_json::from_str(MESSAGE).unwrap();
    let draft = Event {
        id: "01".into(),
        kind: "message.sent".into(),
        timestamp: 1,
        source: "a".into(),
        members: Some(DraftMembers::Sent { envelope, receipts: Vec::new() }),
        data: RawValue::NULL,
        caused_by: None,
    };
    assert_eq!(
        serde_json::to_string(&draft).unwrap(),
        format!(
            r#"{{"id":"01","type":"message.sent","timestamp":1,"source":"a","envelope":{MESSAGE},"receipts":[],"data":null}}"#
        )
    );
}

#[test]
fn data_of_events() {
    same::<MessageData<'_>>(
        r#"{"messageId":"m","from":"a","deliveredTo":["b"],"agentId":"b","timestamp":1,"priority":"normal","correlationId":"c"}"#,
    );
    same::<MessageData<'_>>(&format!(
        r#"{{"messageId":"m","from":"a","to":{{"agent":"b"}},"timestamp":1,"priority":"low","payload":null,"message":{MESSAGE}}}"#
    ));
    same::<TurnData<'_>>(&format!(r#"{{"conversationId":"c","turn":{TURN}}}"#));
    same::<AgentRegistered<'_>>(
        r#"{"agentId":"a","ownerId":null,"agent":{"id":"a","ownerId":null,"state":"registered","role":"r"},"role":"r"}"#,
    );
    same::<OverflowData<'_>>(
        r#"{"eventsDropped":3,"oldestDropped":"01","newestDropped":"02","recommendation":"reduce_filter_scope"}"#,
    );
}

#[test]
fn subscriptions() {
    same::<SubscribeResult>(r#"{"subscriptionId":"sub-1"}"#);
    same::<UnsubscribeResult>(
        r#"{"subscription":{"id":"sub-1","closedAt":1},"unsubscribed":true,"success":true}"#,
    );
    same::<Success>(r#"{"success":true}"#);
    for name in ["upToSequence", "sequence", "sequenceNumber"] {
        let text = format!(r#"{{"subscriptionId":"sub-1","{name}":4}}"#);
        let params: SubscriptionParams = serde_json::from_str(&text).unwrap();
        assert_eq!(params.up_to_sequence, Some(4), "{name}");
    }
}

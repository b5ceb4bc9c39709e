//! Acknowledgement of a message, so that its sender is notified. Most senders see it in the event log; senders of a protocol
//! that has only an inbox get a message about it.

use posthaste_engine::nouns::{Address, Body, Caller, Delivery, Json, Message, MessageId};
use posthaste_engine::verbs::deliveries::Acknowledge;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::airc::AckPayload;
use posthaste_wire::time::to_rfc3339;

use crate::door_facts::DoorFacts;

/// Whether a message's sender is notified of an acknowledgement by a message only.
pub fn wants_message(message: &Message) -> bool {
    DoorFacts::of(&message.via).acknowledges_by_message
        && message.ack_required
        && message.correlation.is_some()
}

/// Acknowledges a message as its recipient. The acknowledgement and the message about it are one command.
pub async fn acknowledge(
    engine: &Engine,
    caller: &Caller,
    id: MessageId,
    response: Option<String>,
) -> Result<Delivery, EngineError> {
    let asking = caller.clone();
    let known = engine.read(move |view| view.message(&asking, id)).await;
    if let Ok(tracked) = known
        && wants_message(&tracked.message)
        && tracked
            .deliveries
            .iter()
            .any(|delivery| delivery.agent == caller.agent && delivery.acked_at.is_none())
    {
        let verb = ack_message(&tracked.message, response.clone());
        match engine.submit(caller, verb).await {
            Ok(done) => {
                if let Some(delivery) = done.acked {
                    return Ok(delivery);
                }
            }
            // A sender that refuses the message does not prevent the acknowledgement.
            Err(EngineError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    engine.submit(caller, Acknowledge { agent: caller.agent.clone(), message: id, response }).await
}

/// The message that reports the acknowledgement of another.
fn ack_message(acked: &Message, response: Option<String>) -> SendSigned {
    let name = acked.correlation.clone().unwrap_or_default();
    let payload = AckPayload {
        kind: AckPayload::KIND.into(),
        message_id: name.clone(),
        ack_ts: to_rfc3339(stamp::now()),
        response: response.clone(),
    };
    let send = SendMessage {
        kind: AckPayload::KIND.to_owned(),
        body: Body::Json(Json::from_checked(&serde_json::to_string(&payload).unwrap_or_default())),
        correlation: Some(name.clone()),
        in_reply_to: Some(acked.id),
        ..SendMessage::text(vec![Address::Agent(acked.from.clone())], String::new())
    };
    let side_effect =
        SideEffect::Acknowledge { label: format!("mail:{name}"), message: Some(acked.id), response };
    SendSigned { message: send, keys: Vec::new(), side_effect: Some(side_effect) }
}

//! Acknowledging a letter such that its sender hears of it. Most senders are told by the history; those of a protocol
//! that has nothing but an inbox get the acknowledgement there, as a letter.

use posthaste_engine::nouns::{Address, Body, Caller, Delivery, Json, Message, MessageId};
use posthaste_engine::verbs::deliveries::Acknowledge;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::airc::AckPayload;
use posthaste_wire::time::to_rfc3339;

use crate::door_facts::DoorFacts;

/// Whether a letter's sender learns of an acknowledgement by a letter only.
pub fn wants_letter(message: &Message) -> bool {
    DoorFacts::of(&message.via).acknowledges_by_message
        && message.ack_required
        && message.correlation.is_some()
}

/// Acknowledges a letter as its recipient. The acknowledgement and the letter about it are one command.
pub async fn acknowledge(
    engine: &Engine,
    caller: &Caller,
    id: MessageId,
    response: Option<String>,
) -> Result<Delivery, EngineError> {
    let asking = caller.clone();
    let known = engine.read(move |view| view.message(&asking, id)).await;
    if let Ok(letter) = known
        && wants_letter(&letter.message)
        && letter.deliveries.iter().any(|copy| copy.agent == caller.agent && copy.acked_at.is_none())
    {
        let verb = by_letter(&letter.message, response.clone());
        match engine.submit(caller, verb).await {
            Ok(done) => {
                if let Some(delivery) = done.acked {
                    return Ok(delivery);
                }
            }
            // Whoever does not take the letter is not in the way of the acknowledgement.
            Err(EngineError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    engine.submit(caller, Acknowledge { agent: caller.agent.clone(), message: id, response }).await
}

fn by_letter(letter: &Message, response: Option<String>) -> SendSigned {
    let name = letter.correlation.clone().unwrap_or_default();
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
        in_reply_to: Some(letter.id),
        ..SendMessage::text(vec![Address::Agent(letter.from.clone())], String::new())
    };
    let deed = SideEffect::Acknowledge { label: format!("mail:{name}"), message: Some(letter.id), response };
    SendSigned { message: send, keys: Vec::new(), side_effect: Some(deed) }
}

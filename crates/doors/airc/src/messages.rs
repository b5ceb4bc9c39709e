//! Sending: a signed envelope is checked here and taken by the engine, once.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use posthaste_engine::nouns::{AgentId, Millis, Reservation, ReservationStatus, Reserved};
use posthaste_engine::verbs::signed::SideEffect;
use posthaste_engine::{EngineError, Refusal, stamp};
use posthaste_wire::airc::{
    CLOCK_WINDOW_MS, Envelope, Payload, ReservationStatus as Said, STALE_AFTER_MS, Target,
};
use posthaste_wire::time::to_rfc3339;
use serde::Serialize;
use serde_json::{Value, json};

use super::context::{Actor, Context, Text, aim, find_name};
use super::errors::{Answer, Trouble};
use super::from_wire::Draft;
use posthaste_host::http::rate::Turn;

/// `POST /messages`
pub(super) async fn post(context: Context, Text(text): Text) -> Answer {
    let mut envelope = Envelope::parse(&text)?;
    let from =
        envelope.from.clone().ok_or_else(|| Trouble::new(400, "invalid_envelope", "from: is missing"))?;
    let (actor, recipient) = speaker(&context, Some(&from), &envelope.to).await?;
    let turn = take_turns(&context, &actor, &Target::parse(&envelope.to))?;
    if !envelope.is_signed() {
        return Err(Trouble::new(
            401,
            "signature_required",
            "messages are signed here; Safe Mode is below /api",
        ));
    }
    let key =
        actor.key().ok_or_else(|| Trouble::new(401, "invalid_signature", "this identity has no key"))?;
    context.shared.checks().check(envelope.claim(&key)?).await?;
    check_time(&envelope)?;
    check_audience(&context, &envelope)?;
    let draft = Draft {
        target: Target::parse(&envelope.to),
        recipient,
        raw_payload: envelope.take_payload(),
        id: envelope.id,
        nonce: envelope.nonce,
        thread_id: envelope.thread_id,
        body: envelope.body,
        payload: envelope.payload,
        envelope: Some(envelope.text),
        meta: None,
    };
    send(&context, &actor, draft, turn).await
}

/// Who speaks, and the agent that `to` means, looked up in one moment.
pub(super) async fn speaker(
    context: &Context,
    claimed: Option<&str>,
    to: &str,
) -> Answer<(Actor, Option<AgentId>)> {
    let target = Target::parse(to);
    // Mostly nothing has to be looked up: the speaker is known, and there is but one way to read the name.
    let recipient = match &target {
        Target::One(name) => aim(name),
        _ => None,
    };
    let settled = recipient.is_some() || !matches!(target, Target::One(_));
    if settled && let Some(actor) = context.recall(claimed) {
        return Ok((actor, recipient));
    }
    let look = move |view: &posthaste_engine::views::View<'_>, caller: &posthaste_engine::nouns::Caller| {
        Ok(match &target {
            Target::One(name) => aim(name).or_else(|| find_name(view, caller, name)),
            _ => None,
        })
    };
    context.actor_and(claimed, look).await
}

/// Takes a turn at sending, and one at sending to everyone.
pub(super) fn take_turns(context: &Context, actor: &Actor, target: &Target) -> Answer<Turn> {
    let rates = context.shared.rates();
    let turn = context.turn("messages", actor.handle(), rates.messages)?;
    if !target.is_broadcast() {
        return Ok(turn);
    }
    Ok(turn.or_tighter(context.turn("broadcasts", actor.handle(), rates.broadcasts)?))
}

/// A signed message must be recent, and have something that comes once.
fn check_time(envelope: &Envelope) -> Answer<()> {
    let at =
        envelope.timestamp.ok_or_else(|| Trouble::new(400, "invalid_envelope", "timestamp: is missing"))?;
    if envelope.id.is_none() && envelope.nonce.is_none() {
        return Err(Trouble::new(400, "invalid_envelope", "id or nonce: one of them is needed"));
    }
    check_recent(at)
}

pub(super) fn check_recent(at: Millis) -> Answer<()> {
    if (stamp::now() - at).abs() <= CLOCK_WINDOW_MS {
        return Ok(());
    }
    Err(Trouble::new(401, "invalid_timestamp", "the timestamp is more than 300 s away from now"))
}

/// A message for another registry is not for this one. Ours goes by the host that was called, and by the id that the
/// discovery document gives, whatever host was called.
fn check_audience(context: &Context, envelope: &Envelope) -> Answer<()> {
    let Some(audience) = envelope.get("aud").filter(|audience| !audience.is_null()) else { return Ok(()) };
    let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let id = context.engine.realm().as_str();
    let ours = [host.to_owned(), name.to_owned(), context.base(), id.to_owned()];
    match audience.as_str() {
        Some(audience) if ours.iter().any(|ours| ours.eq_ignore_ascii_case(audience)) => Ok(()),
        _ => Err(Trouble::new(
            403,
            "audience_mismatch",
            format!("this registry is {name}, and its registry_id is {id}"),
        )),
    }
}

/// What is answered to a message that was taken.
#[derive(Serialize)]
struct Accepted<'a> {
    success: bool,
    #[serde(rename = "messageId")]
    message_id: &'a str,
    id: &'a str,
    message: Message<'a>,
    seq: i64,
    delivered: usize,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reservation: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Value>>,
}

#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    from: &'a AgentId,
    to: &'a str,
    thread_id: Option<&'a str>,
    created_at: String,
}

/// Hands a message to the engine and says what came of it.
pub(super) async fn send(context: &Context, actor: &Actor, draft: Draft, turn: Turn) -> Answer {
    let now = stamp::now();
    let payload = draft.payload.clone();
    let (id, to, thread) = (draft.id.clone(), draft.target.clone(), draft.thread_id.clone());
    let mut verb = draft.into_verb(now)?;
    if let Some(SideEffect::Reserve(reserve)) = &mut verb.side_effect {
        reserve.scope = context.shared.scope_in(context.engine.realm(), &reserve.scope).await?;
    }
    let done = match context.engine.submit(&actor.caller, verb).await {
        Ok(done) => done,
        Err(error) => return Err(explain(context, actor, payload.as_ref(), error).await),
    };
    let message = &done.sent.message;
    let id = id.unwrap_or_else(|| message.id.to_string());
    let to = match to {
        Target::Contacts => "@contacts".to_owned(),
        Target::Public => "@public".to_owned(),
        Target::One(name) | Target::Unsupported(name) => name,
    };
    let mut body = Accepted {
        success: true,
        message_id: &id,
        id: &id,
        message: Message {
            id: &id,
            from: &message.from,
            to: &to,
            thread_id: thread.as_deref(),
            created_at: to_rfc3339(message.at),
        },
        seq: message.seq,
        delivered: done.sent.receipts.len(),
        status: "accepted",
        reservation: None,
        conflicts: None,
        warnings: None,
    };
    if let (Some(Payload::Reservation(said)), Some(reserved)) = (&payload, &done.reserved) {
        body.reservation = Some(lease(&reserved.reservation, now));
        body.conflicts = Some(conflicts(reserved));
        body.warnings = Some(warnings(&reserved.reservation, said, now));
    }
    let mut response = (StatusCode::CREATED, Json(body)).into_response();
    turn.write(response.headers_mut());
    Ok(response)
}

/// The lease as it stands.
fn lease(held: &Reservation, now: Millis) -> Value {
    json!({
        "reservation_id": held.key,
        "owner": held.owner,
        "scope": scope_of(held),
        "status": status_of(held, now),
        "expires_ts": to_rfc3339(held.expires_at),
    })
}

/// What deserves a warning.
fn warnings(held: &Reservation, said: &posthaste_wire::airc::Reservation, now: Millis) -> Vec<Value> {
    let mut warnings = Vec::new();
    if said.status == Said::Active && said.issued.is_some_and(|issued| now - issued > STALE_AFTER_MS) {
        warnings.push(json!({
            "code": "stale_reservation",
            "message": "issued more than 5 minutes ago; recipients may ignore it",
        }));
    }
    if said.status == Said::Active && held.expires_at <= now {
        warnings.push(
            json!({ "code": "expired_reservation", "message": "it is past its expires_ts and not active" }),
        );
    }
    if said.scope.as_ref().is_some_and(|scope| !scope.is_known()) {
        warnings.push(
            json!({ "code": "unknown_scope", "message": "recipients may not know this form of scope" }),
        );
    }
    warnings
}

fn scope_of(held: &Reservation) -> String {
    let meta = held.meta.as_ref().map(posthaste_engine::nouns::Json::value);
    let written = meta.as_ref().and_then(|meta| meta["scope"].as_str());
    written.map_or_else(|| held.scope.clone(), str::to_owned)
}

fn status_of(held: &Reservation, now: Millis) -> &'static str {
    match held.status {
        ReservationStatus::Active if held.expires_at > now => "active",
        ReservationStatus::Released => "released",
        ReservationStatus::Active | ReservationStatus::Expired => "expired",
    }
}

/// One entry for each reservation; only where both sides want the paths alone.
fn conflicts(reserved: &Reserved) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    if !reserved.reservation.exclusive {
        return found;
    }
    for conflict in reserved.conflicts.iter().filter(|conflict| conflict.exclusive) {
        let known = found.iter_mut().find(|one| one["seq"] == conflict.reservation);
        let one = match known {
            Some(one) => one,
            None => {
                found.push(json!({
                    "reservation_id": conflict.key,
                    "owner": conflict.holder,
                    "scope": scope_of(&reserved.reservation),
                    "paths": [],
                    "requested_paths": [],
                    "expires_ts": to_rfc3339(conflict.expires_at),
                    "reason": conflict.reason,
                    "seq": conflict.reservation,
                }));
                match found.last_mut() {
                    Some(one) => one,
                    None => continue,
                }
            }
        };
        for (list, path) in [("paths", &conflict.held_path), ("requested_paths", &conflict.path)] {
            if let Value::Array(paths) = &mut one[list]
                && !paths.iter().any(|known| known == path)
            {
                paths.push(json!(path));
            }
        }
    }
    found
}

/// Says more where the engine says only that there is no such reservation of the caller's.
async fn explain(context: &Context, actor: &Actor, payload: Option<&Payload>, error: EngineError) -> Trouble {
    let (Some(Refusal::NoSuchReservation), Some(Payload::Reservation(said))) = (error.refusal(), payload)
    else {
        return error.into();
    };
    let (caller, key) = (actor.caller.clone(), said.id.clone());
    let Ok(known) = context.engine.read(move |view| view.reservations_called(&caller, &key)).await else {
        return error.into();
    };
    if known.iter().any(|held| held.owner == actor.agent.id) {
        return Trouble::new(
            409,
            "reservation_released",
            "this reservation has been released; take a new one",
        );
    }
    // Who was told of it may know whose it is; to all others it does not exist.
    match known.first() {
        Some(held) => Trouble::new(403, "not_owner", format!("this reservation is {}'s", held.owner)),
        None => error.into(),
    }
}

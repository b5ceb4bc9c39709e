//! Sending: a signed envelope is checked here and accepted by the engine, once.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use posthaste_engine::nouns::{AgentId, Caller, Millis, Reservation, ReservationStatus, Reserved};
use posthaste_engine::verbs::signed::SideEffect;
use posthaste_engine::views::View;
use posthaste_engine::{EngineError, Refusal, stamp};
use posthaste_wire::airc::{
    Accepted, AcceptedMessage, CLOCK_WINDOW_MS, Envelope, Payload, ReservationConflict, ReservationState,
    ReservationStatus as Announced, STALE_AFTER_MS, Target, Warning,
};
use posthaste_wire::time::to_rfc3339;

use super::context::{Actor, Context, Text, exact_name, find_name};
use super::errors::{Answer, DoorError};
use super::from_wire::{Draft, ReservationMeta};
use posthaste_host::http::rate::Turn;

/// `POST /messages`
pub(super) async fn post(context: Context, Text(text): Text) -> Answer {
    let mut envelope = Envelope::parse(&text)?;
    let from =
        envelope.from.clone().ok_or_else(|| DoorError::new(400, "invalid_envelope", "from: is missing"))?;
    let (actor, recipient) = sender_and_recipient(&context, Some(&from), &envelope.to).await?;
    let turn = take_turns(&context, &actor, &Target::parse(&envelope.to))?;
    if !envelope.is_signed() {
        return Err(DoorError::new(
            401,
            "signature_required",
            "messages are signed here; Safe Mode is below /api",
        ));
    }
    let key =
        actor.key().ok_or_else(|| DoorError::new(401, "invalid_signature", "this identity has no key"))?;
    envelope.verify(&key)?;
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

/// The sender, and the agent that `to` names, read in one transaction.
pub(super) async fn sender_and_recipient(
    context: &Context,
    claimed: Option<&str>,
    to: &str,
) -> Answer<(Actor, Option<AgentId>)> {
    let target = Target::parse(to);
    // In most cases nothing has to be looked up: the sender is cached, and the name has only one spelling.
    let recipient = match &target {
        Target::One(name) => exact_name(name),
        _ => None,
    };
    let settled = recipient.is_some() || !matches!(target, Target::One(_));
    if settled && let Some(actor) = context.cached_actor(claimed) {
        return Ok((actor, recipient));
    }
    let look = move |view: &View<'_>, caller: &Caller| {
        Ok(match &target {
            Target::One(name) => exact_name(name).or_else(|| find_name(view, caller, name)),
            _ => None,
        })
    };
    context.actor_and(claimed, look).await
}

/// Counts one message against the sender's rate limits; a broadcast counts against its own, too.
pub(super) fn take_turns(context: &Context, actor: &Actor, target: &Target) -> Answer<Turn> {
    let rates = context.door.rates();
    let turn = context.turn("messages", actor.handle(), rates.messages)?;
    if !target.is_broadcast() {
        return Ok(turn);
    }
    Ok(turn.or_tighter(context.turn("broadcasts", actor.handle(), rates.broadcasts)?))
}

/// A signed message must be recent, and have a single-use key.
fn check_time(envelope: &Envelope) -> Answer<()> {
    let at =
        envelope.timestamp.ok_or_else(|| DoorError::new(400, "invalid_envelope", "timestamp: is missing"))?;
    if envelope.id.is_none() && envelope.nonce.is_none() {
        return Err(DoorError::new(400, "invalid_envelope", "id or nonce: one of them is needed"));
    }
    check_recent(at)
}

pub(super) fn check_recent(at: Millis) -> Answer<()> {
    if (stamp::now() - at).abs() <= CLOCK_WINDOW_MS {
        return Ok(());
    }
    Err(DoorError::new(401, "invalid_timestamp", "the timestamp is more than 300 s away from now"))
}

/// Refuses messages for another registry. This one is named by the host of the request, and by the id in the discovery
/// document.
fn check_audience(context: &Context, envelope: &Envelope) -> Answer<()> {
    let Some(audience) = envelope.get("aud").filter(|audience| !audience.is_null()) else { return Ok(()) };
    let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let id = context.engine.realm().as_str();
    let ours = [host.to_owned(), name.to_owned(), context.base(), id.to_owned()];
    match audience.as_str() {
        Some(audience) if ours.iter().any(|ours| ours.eq_ignore_ascii_case(audience)) => Ok(()),
        _ => Err(DoorError::new(
            403,
            "audience_mismatch",
            format!("this registry is {name}, and its registry_id is {id}"),
        )),
    }
}

/// Gives a message to the engine and builds the response.
pub(super) async fn send(context: &Context, actor: &Actor, draft: Draft, turn: Turn) -> Answer {
    let now = stamp::now();
    let payload = draft.payload.clone();
    let (id, to, thread) = (draft.id.clone(), draft.target.clone(), draft.thread_id.clone());
    let mut verb = draft.into_verb(now)?;
    if let Some(SideEffect::Reserve(reserve)) = &mut verb.side_effect {
        reserve.scope = context.door.scope_in(context.engine.realm(), &reserve.scope).await?;
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
        message_id: (&id).into(),
        id: (&id).into(),
        message: AcceptedMessage {
            id: (&id).into(),
            from: message.from.as_str().into(),
            to: (&to).into(),
            thread_id: thread.as_deref().map(Into::into),
            created_at: to_rfc3339(message.at),
        },
        seq: message.seq,
        delivered: done.sent.receipts.len(),
        status: "accepted".into(),
        reservation: None,
        conflicts: None,
        warnings: None,
    };
    if let (Some(Payload::Reservation(announced)), Some(reserved)) = (&payload, &done.reserved) {
        body.reservation = Some(state_of(&reserved.reservation, now));
        body.conflicts = Some(conflicts(reserved));
        body.warnings = Some(warnings(&reserved.reservation, announced, now));
    }
    let mut response = (StatusCode::CREATED, Json(body)).into_response();
    turn.write(response.headers_mut());
    Ok(response)
}

/// The reservation as it stands.
fn state_of(held: &Reservation, now: Millis) -> ReservationState {
    ReservationState {
        reservation_id: held.key.clone(),
        owner: held.owner.to_string(),
        scope: scope_of(held),
        status: status_of(held, now).into(),
        expires_ts: to_rfc3339(held.expires_at),
    }
}

/// What is odd about a reservation.
fn warnings(held: &Reservation, announced: &posthaste_wire::airc::Reservation, now: Millis) -> Vec<Warning> {
    let warning =
        |code: &'static str, message: &'static str| Warning { code: code.into(), message: message.into() };
    let mut warnings = Vec::new();
    if announced.status == Announced::Active
        && announced.issued.is_some_and(|issued| now - issued > STALE_AFTER_MS)
    {
        let message = "issued more than 5 minutes ago; recipients may ignore it";
        warnings.push(warning("stale_reservation", message));
    }
    if announced.status == Announced::Active && held.expires_at <= now {
        warnings.push(warning("expired_reservation", "it is past its expires_ts and not active"));
    }
    if announced.scope.as_ref().is_some_and(|scope| !scope.is_known()) {
        warnings.push(warning("unknown_scope", "recipients may not know this form of scope"));
    }
    warnings
}

/// The scope as its owner wrote it.
fn scope_of(held: &Reservation) -> String {
    let stored =
        held.meta.as_ref().and_then(|meta| serde_json::from_str::<ReservationMeta>(meta.as_str()).ok());
    stored.and_then(|meta| meta.scope).unwrap_or_else(|| held.scope.clone())
}

fn status_of(held: &Reservation, now: Millis) -> &'static str {
    match held.status {
        ReservationStatus::Active if held.expires_at > now => "active",
        ReservationStatus::Released => "released",
        ReservationStatus::Active | ReservationStatus::Expired => "expired",
    }
}

/// One entry for each reservation that overlaps, where both are exclusive.
fn conflicts(reserved: &Reserved) -> Vec<ReservationConflict> {
    let mut found: Vec<ReservationConflict> = Vec::new();
    if !reserved.reservation.exclusive {
        return found;
    }
    for conflict in reserved.conflicts.iter().filter(|conflict| conflict.exclusive) {
        let at = match found.iter().position(|known| known.seq == conflict.reservation) {
            Some(at) => at,
            None => {
                found.push(ReservationConflict {
                    reservation_id: conflict.key.clone(),
                    owner: conflict.holder.to_string(),
                    scope: scope_of(&reserved.reservation),
                    paths: Vec::new(),
                    requested_paths: Vec::new(),
                    expires_ts: to_rfc3339(conflict.expires_at),
                    reason: conflict.reason.clone(),
                    seq: conflict.reservation,
                });
                found.len() - 1
            }
        };
        let entry = &mut found[at];
        for (paths, path) in
            [(&mut entry.paths, &conflict.held_path), (&mut entry.requested_paths, &conflict.path)]
        {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
    }
    found
}

/// A more precise error where the engine reports that the caller has no such reservation.
async fn explain(
    context: &Context,
    actor: &Actor,
    payload: Option<&Payload>,
    error: EngineError,
) -> DoorError {
    let (Some(Refusal::NoSuchReservation), Some(Payload::Reservation(announced))) =
        (error.refusal(), payload)
    else {
        return error.into();
    };
    let (caller, key) = (actor.caller.clone(), announced.id.clone());
    let Ok(known) = context.engine.read(move |view| view.reservations_called(&caller, &key)).await else {
        return error.into();
    };
    if known.iter().any(|held| held.owner == actor.agent.id) {
        return DoorError::new(
            409,
            "reservation_released",
            "this reservation has been released; take a new one",
        );
    }
    // A recipient of the reservation may learn its owner; for all others it does not exist.
    match known.first() {
        Some(held) => DoorError::new(403, "not_owner", format!("this reservation is {}'s", held.owner)),
        None => error.into(),
    }
}

//! Key rotation and revocation of an identity, both proven with the recovery key.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Agent, AgentId, Millis};
use posthaste_engine::stamp;
use posthaste_engine::verbs::keys::ChangeKeys;
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_wire::airc::{RevokeAnswer, RevokeProof, RotateAnswer, RotateProof};
use posthaste_wire::signing::PublicKey;
use posthaste_wire::time::to_rfc3339;

use super::context::{Context, Form, normalized, visitor};
use super::errors::{Answer, DoorError};
use super::identity::{TOKEN_VALID_FOR, bad_proof, server_caller, session};
use super::messages::check_recent;
use super::stored_keys::Keys;
use super::{VIA, to_wire};
use posthaste_host::http::rate::Turn;
use posthaste_host::keys;

/// An identity changes its key at most this often.
const ROTATION_INTERVAL: Millis = 3_600_000;

/// `POST /identity/{handle}/rotate`
pub(super) async fn rotate(context: Context, Form(fields): Form) -> Answer {
    let agent = holder(&context, context.param("handle")).await?;
    if agent.state == Agent::REVOKED {
        return Err(DoorError::new(403, "identity_revoked", "this identity has been revoked"));
    }
    let new_text = fields.text(&["new_public_key", "newPublicKey", "new_key"])?;
    let new_text = new_text.ok_or_else(|| DoorError::new(400, "invalid_key", "new_public_key is missing"))?;
    let new_key: PublicKey = new_text
        .parse()
        .map_err(|error| DoorError::new(400, "invalid_key", format!("new_public_key: {error}")))?;
    let proof = fields.get(&["proof"]).ok_or_else(|| bad_proof("proof is missing"))?;
    let proof = RotateProof::read(new_text, proof).map_err(bad_proof)?;
    let present = Keys::of(&agent)?;
    check_rotation(&proof, &agent, &present)?;
    proof
        .verify(&present.guardian())
        .map_err(|_| bad_proof("the proof is not made with the recovery key"))?;
    if present.contains(&new_key) {
        return Err(DoorError::new(409, "key_reused", "this key is or was the identity's"));
    }
    let now = stamp::now();
    if let Some(last) = present.rotated_at()
        && now - last < ROTATION_INTERVAL
    {
        let wait =
            std::time::Duration::from_millis(u64::try_from(ROTATION_INTERVAL - (now - last)).unwrap_or(1));
        let turn = Turn { limit: 1, left: 0, full_in: wait, wait: Some(wait) };
        return Err(DoorError::too_often(turn, "key rotations"));
    }

    let token = keys::new_token();
    let until = now + TOKEN_VALID_FOR;
    let verb = ChangeKeys {
        agent: agent.id.clone(),
        before: agent.keys.clone(),
        keys: present.rotated(&new_key, now),
        proof_keys: vec![key_of_proof(&proof)?],
        token: Some(keys::hash(&token).to_vec()),
        token_door: Some(VIA.to_owned()),
        token_ends: Some(until),
        revoke: false,
    };
    let agent = context.engine.submit(&server_caller(), verb).await.map_err(replayed)?;
    let body = RotateAnswer {
        session: session(&context, &agent, &token, Some(until)),
        public_key: new_key.to_string(),
        key_rotated_at: to_rfc3339(now),
    };
    Ok(Json(body).into_response())
}

fn check_rotation(proof: &RotateProof, agent: &Agent, present: &Keys) -> Answer<()> {
    if proof.handle.as_ref().is_some_and(|handle| normalized(handle) != agent.id.as_str()) {
        return Err(bad_proof("the proof is for another handle"));
    }
    if let Some(old) = &proof.old_key
        && old.parse::<PublicKey>().ok() != Some(present.signing)
    {
        return Err(bad_proof("the proof is for another present key"));
    }
    proof.timestamp.map_or(Ok(()), check_recent)
}

/// `POST /identity/{handle}/revoke`, and `POST /api/identity/revoke` where the handle is in the body alone.
pub(super) async fn revoke(context: Context, Form(fields): Form) -> Answer {
    let proof = RevokeProof::read(&fields.members).map_err(DoorError::bad)?;
    let named = match context.param("handle") {
        "" => proof.handle.as_str(),
        named => named,
    };
    if normalized(named) != normalized(&proof.handle) {
        return Err(DoorError::bad("the proof is for another handle"));
    }
    let agent = holder(&context, named).await?;
    if agent.state == Agent::REVOKED {
        return Err(DoorError::new(409, "already_revoked", "this identity has been revoked before"));
    }
    check_recent(proof.timestamp)?;
    let present = Keys::of(&agent)?;
    proof
        .verify(&present.guardian())
        .map_err(|_| bad_proof("the proof is not made with the recovery key"))?;
    let now = stamp::now();
    let verb = ChangeKeys {
        agent: agent.id.clone(),
        before: agent.keys.clone(),
        keys: present.revoked(proof.reason.as_deref(), now),
        proof_keys: vec![SingleUseKey { label: format!("proof:{}", proof.nonce), until: None, digest: None }],
        token: None,
        token_door: None,
        token_ends: None,
        revoke: true,
    };
    let agent = context.engine.submit(&server_caller(), verb).await.map_err(replayed)?;
    context.engine.presences().leave(&agent.id);
    let body = RevokeAnswer {
        success: true,
        handle: agent.id.to_string(),
        status: "revoked".into(),
        revoked_at: to_rfc3339(now),
        identity: to_wire::identity(&agent, &context.base()),
    };
    Ok(Json(body).into_response())
}

/// The identity that a path names, revoked or not.
async fn holder(context: &Context, text: &str) -> Answer<Agent> {
    let name = normalized(text);
    let id = AgentId::new(&name).map_err(|_| DoorError::no_identity(&name))?;
    let found = context.engine.read(move |view| view.entry(&visitor(), &id)).await;
    let agent = found.map_err(|_| DoorError::no_identity(&name))?;
    if agent.is_active() || agent.state == Agent::REVOKED {
        Ok(agent)
    } else {
        Err(DoorError::no_identity(&name))
    }
}

/// The single-use key of a proof: its nonce, or its signature where it has no nonce.
fn key_of_proof(proof: &RotateProof) -> Answer<SingleUseKey> {
    let label = match &proof.nonce {
        Some(nonce) if (1..=256).contains(&nonce.len()) => format!("proof:{nonce}"),
        Some(_) => return Err(bad_proof("nonce: 1 to 256 bytes are expected")),
        None => {
            let bytes = proof.signature().map_err(|error| bad_proof(&error.to_string()))?.to_bytes();
            format!("proof:{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    };
    Ok(SingleUseKey { label, until: None, digest: None })
}

fn replayed(error: posthaste_engine::EngineError) -> DoorError {
    match error.refusal() {
        Some(Refusal::KeyReused { .. }) => DoorError::new(401, "replay_attack", "this proof was used before"),
        Some(Refusal::WrongState { .. }) => {
            DoorError::new(409, "conflict", "the keys were changed meanwhile")
        }
        _ => error.into(),
    }
}

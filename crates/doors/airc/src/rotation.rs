//! New keys for old, and the end of an identity, both proven with the recovery key.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Agent, AgentId, Json as Kept, Millis};
use posthaste_engine::stamp;
use posthaste_engine::verbs::keys::ChangeKeys;
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_wire::airc::{CLOCK_WINDOW_MS, RevokeProof, RotateProof};
use posthaste_wire::signing::PublicKey;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::context::{Context, Fields, key_of, spelled, visitor};
use super::errors::{Answer, Trouble};
use super::identity::{TOKEN_LASTS, bad_proof, done, office, session};
use super::{VIA, to_wire};
use posthaste_host::http::rate::Turn;
use posthaste_host::keys;

/// An identity changes its key at most this often.
const BETWEEN_ROTATIONS: Millis = 3_600_000;
/// Former keys that are remembered, so that what was signed with them can still be checked.
const FORMER_KEYS: usize = 100;

/// `POST /identity/{handle}/rotate`
pub(super) async fn rotate(context: Context, fields: Fields) -> Answer {
    let agent = holder(&context, context.param("handle")).await?;
    if agent.state == Agent::REVOKED {
        return Err(Trouble::new(403, "identity_revoked", "this identity has been revoked"));
    }
    let new_text = fields.text(&["new_public_key", "newPublicKey", "new_key"])?;
    let new_text = new_text.ok_or_else(|| Trouble::new(400, "invalid_key", "new_public_key is missing"))?;
    let new_key: PublicKey = new_text
        .parse()
        .map_err(|error| Trouble::new(400, "invalid_key", format!("new_public_key: {error}")))?;
    let proof = fields.get(&["proof"]).ok_or_else(|| bad_proof("proof is missing"))?;
    let proof = RotateProof::read(new_text, proof).map_err(bad_proof)?;
    let present = Keys::of(&agent)?;
    check_rotation(&proof, &agent, &present)?;
    proof
        .verify(&present.guardian())
        .map_err(|_| bad_proof("the proof is not made with the recovery key"))?;
    if present.is_known(&new_key) {
        return Err(Trouble::new(409, "key_reused", "this key is or was the identity's"));
    }
    let now = stamp::now();
    if let Some(last) = present.rotated_at()
        && now - last < BETWEEN_ROTATIONS
    {
        let wait =
            std::time::Duration::from_millis(u64::try_from(BETWEEN_ROTATIONS - (now - last)).unwrap_or(1));
        let turn = Turn { limit: 1, left: 0, full_in: wait, wait: Some(wait) };
        return Err(Trouble::too_often(turn, "key rotations"));
    }

    let token = keys::new_token();
    let until = now + TOKEN_LASTS;
    let verb = ChangeKeys {
        agent: agent.id.clone(),
        before: agent.keys.clone(),
        keys: present.rotated(&new_key, now),
        proof_keys: vec![used(&proof)?],
        token: Some(keys::hash(&token).to_vec()),
        token_door: Some(VIA.to_owned()),
        token_ends: Some(until),
        revoke: false,
    };
    let agent = context.engine.submit(&office(), verb).await.map_err(replayed)?;
    let mut body = session(&context, &agent, &token, Some(until));
    body["public_key"] = json!(new_key.to_string());
    body["key_rotated_at"] = json!(to_rfc3339(now));
    Ok(done(body))
}

fn check_rotation(proof: &RotateProof, agent: &Agent, present: &Keys) -> Answer<()> {
    if proof.handle.as_ref().is_some_and(|handle| spelled(handle) != agent.id.as_str()) {
        return Err(bad_proof("the proof is for another handle"));
    }
    if let Some(old) = &proof.old_key
        && old.parse::<PublicKey>().ok() != Some(present.signing)
    {
        return Err(bad_proof("the proof is for another present key"));
    }
    proof.timestamp.map_or(Ok(()), check_time)
}

/// `POST /identity/{handle}/revoke`, and `POST /api/identity/revoke` where the handle is in the body alone.
pub(super) async fn revoke(context: Context, fields: Fields) -> Answer {
    let proof = RevokeProof::read(&fields.members).map_err(Trouble::bad)?;
    let named = match context.param("handle") {
        "" => proof.handle.as_str(),
        named => named,
    };
    if spelled(named) != spelled(&proof.handle) {
        return Err(Trouble::bad("the proof is for another handle"));
    }
    let agent = holder(&context, named).await?;
    if agent.state == Agent::REVOKED {
        return Err(Trouble::new(409, "already_revoked", "this identity has been revoked before"));
    }
    check_time(proof.timestamp)?;
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
    let agent = context.engine.submit(&office(), verb).await.map_err(replayed)?;
    context.engine.presences().leave(&agent.id);
    let body = json!({
        "success": true,
        "handle": agent.id,
        "status": "revoked",
        "revoked_at": to_rfc3339(now),
        "identity": to_wire::identity(&agent, &context.base()),
    });
    Ok(Json(body).into_response())
}

/// The identity that a path names, revoked or not.
async fn holder(context: &Context, text: &str) -> Answer<Agent> {
    let name = spelled(text);
    let id = AgentId::new(&name).map_err(|_| Trouble::nobody(&name))?;
    let found = context.engine.read(move |view| view.entry(&visitor(), &id)).await;
    let agent = found.map_err(|_| Trouble::nobody(&name))?;
    if agent.is_active() || agent.state == Agent::REVOKED { Ok(agent) } else { Err(Trouble::nobody(&name)) }
}

/// A proof counts once. One that has neither time nor nonce is remembered by its signature.
fn used(proof: &RotateProof) -> Answer<SingleUseKey> {
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

fn replayed(error: posthaste_engine::EngineError) -> Trouble {
    match error.refusal() {
        Some(Refusal::KeyReused { .. }) => Trouble::new(401, "replay_attack", "this proof was used before"),
        Some(Refusal::WrongState { .. }) => Trouble::new(409, "conflict", "the keys were changed meanwhile"),
        _ => error.into(),
    }
}

fn check_time(at: Millis) -> Answer<()> {
    if (stamp::now() - at).abs() <= CLOCK_WINDOW_MS {
        return Ok(());
    }
    Err(Trouble::new(401, "invalid_timestamp", "the timestamp is more than 300 s away from now"))
}

/// An identity's keys as the books have them.
struct Keys {
    kept: Value,
    signing: PublicKey,
}

impl Keys {
    fn of(agent: &Agent) -> Answer<Self> {
        let signing = key_of(agent).ok_or_else(|| bad_proof("this identity has no key"))?;
        Ok(Self { kept: agent.keys.as_ref().map_or(Value::Null, Kept::value), signing })
    }

    /// The key that may change the others: the recovery key, or the signing key where there is none.
    fn guardian(&self) -> PublicKey {
        let recovery = self.kept["recovery_key"].as_str().and_then(|text| text.parse().ok());
        recovery.unwrap_or(self.signing)
    }

    fn rotated_at(&self) -> Option<Millis> {
        self.kept["rotated_at"].as_i64()
    }

    fn former(&self) -> Vec<Value> {
        self.kept["former"].as_array().cloned().unwrap_or_default()
    }

    fn is_known(&self, key: &PublicKey) -> bool {
        let text = key.to_string();
        *key == self.signing || self.former().iter().any(|one| one["public_key"] == text)
    }

    fn rotated(&self, new: &PublicKey, now: Millis) -> Kept {
        let mut former = self.former();
        former.push(json!({ "public_key": self.signing.to_string(), "until": now }));
        let over = former.len().saturating_sub(FORMER_KEYS);
        former.drain(..over);
        let mut keys = self.kept.clone();
        keys["public_key"] = json!(new.to_string());
        keys["rotated_at"] = json!(now);
        keys["former"] = json!(former);
        Kept::from_value(&keys)
    }

    fn revoked(&self, reason: Option<&str>, now: Millis) -> Kept {
        let mut keys = self.kept.clone();
        keys["revoked_at"] = json!(now);
        keys["reason"] = json!(reason);
        Kept::from_value(&keys)
    }
}

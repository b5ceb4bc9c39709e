//! Identities: registration with a proof, lookup, and tokens.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{
    Agent, AgentId, Caller, ContactPolicy, Json as Kept, Millis, Privacy, TokenRole,
};
use posthaste_engine::verbs::agents::{Bearer, Register};
use posthaste_engine::verbs::tokens::{CreateToken, RenewToken};
use posthaste_engine::{EngineError, Refusal, stamp};
use posthaste_wire::airc::{
    CapabilitiesAnswer, ChallengeAnswer, Fields, Handle, IdentityAnswer, RefreshAnswer, Session,
    verify_challenge,
};
use posthaste_wire::signing::{PublicKey, Signature};
use posthaste_wire::time::to_rfc3339;
use serde_json::Value;

use super::challenges::ChallengeError;
use super::context::{Actor, Context, Form, Text, is_identity, key_of, normalized, visitor};
use super::errors::{Answer, DoorError};
use super::stored_keys::StoredKeys;
use super::{VIA, to_wire};
use posthaste_host::caller::bearer;
use posthaste_host::keys;
use posthaste_host::no_oauth;

/// How long a token is valid.
pub(super) const TOKEN_VALID_FOR: Millis = 30 * 24 * 3_600_000;
/// The longest display name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// An identity that is about to be registered.
pub(super) struct Newcomer {
    pub(super) handle: Handle,
    pub(super) name: Option<String>,
    pub(super) key: Option<PublicKey>,
    pub(super) recovery: Option<PublicKey>,
    pub(super) capabilities: Option<Value>,
    pub(super) privacy: Privacy,
}

/// `POST /identity`: the proof is a signature over the handle.
pub(super) async fn create(context: Context, Form(fields): Form) -> Answer {
    let (raw, newcomer) = newcomer(&fields)?;
    let key = newcomer.key.ok_or_else(|| bad_key("public_key is missing"))?;
    let proof = fields.text(&["proof"])?.unwrap_or_default();
    let signature: Signature = proof.parse().map_err(|_| bad_proof("proof: a signature is expected"))?;
    let challenge = fields.text(&["challenge"])?;
    let signed = match challenge {
        Some(challenge) => {
            check_challenge(&context, &newcomer.handle, challenge)?;
            vec![format!("{challenge}{raw}"), format!("{challenge}{}", newcomer.handle)]
        }
        None => vec![raw.clone(), newcomer.handle.to_string()],
    };
    if !signed.iter().any(|text| key.verify(text.as_bytes(), &signature).is_ok()) {
        return Err(bad_proof("the proof is not a signature of this handle by this key"));
    }
    if let Some(challenge) = challenge {
        use_up_challenge(&context, &newcomer.handle, challenge)?;
    }
    create_and_answer(&context, newcomer).await
}

/// `POST /register/challenge`
pub(super) async fn challenge(context: Context, Form(fields): Form) -> Answer {
    let handle = Handle::parse_new(fields.text(&["handle", "username"])?.unwrap_or_default())?;
    context.turn_of_address("registrations", context.door.rates().registrations)?;
    let (challenge, until) =
        context.door.challenges().issue(context.engine.realm().as_str(), handle.as_str());
    let until = to_rfc3339(until);
    let body = ChallengeAnswer {
        success: true,
        challenge,
        handle: handle.to_string(),
        expires_at_camel: until.clone(),
        expires_at: until,
    };
    Ok(Json(body).into_response())
}

/// `POST /register`: the proof is a signature over a challenge. OAuth clients come here, too, and are told that they need a token.
pub(super) async fn register(context: Context, Form(fields): Form) -> Answer {
    if no_oauth::is_registration(&fields.members) {
        return Ok(no_oauth::no_registration());
    }
    let (_, newcomer) = newcomer(&fields)?;
    let key = newcomer.key.ok_or_else(|| bad_key("publicKey is missing"))?;
    use_signed_challenge(&context, &fields, &newcomer.handle, &key)?;
    create_and_answer(&context, newcomer).await
}

/// Checks a signed challenge. Only a valid signature uses it up, so that a failed attempt by another caller does not take it
/// from the caller that it was issued to.
fn use_signed_challenge(context: &Context, fields: &Fields, handle: &Handle, key: &PublicKey) -> Answer<()> {
    let invalid = |why: &str| DoorError::new(401, "challenge_invalid", why);
    let challenge = fields.text(&["challenge"])?.ok_or_else(|| invalid("challenge is missing"))?;
    let signature = fields.text(&["challengeSignature", "challenge_signature", "signature", "proof"])?;
    let signature = signature.ok_or_else(|| invalid("challengeSignature is missing"))?;
    check_challenge(context, handle, challenge)?;
    verify_challenge(challenge, signature, key)
        .map_err(|_| DoorError::new(401, "invalid_signature", "the challenge is not signed by this key"))?;
    use_up_challenge(context, handle, challenge)
}

fn check_challenge(context: &Context, handle: &Handle, challenge: &str) -> Answer<()> {
    let realm = context.engine.realm().as_str();
    context.door.challenges().check(realm, handle.as_str(), challenge).map_err(challenge_error)
}

fn use_up_challenge(context: &Context, handle: &Handle, challenge: &str) -> Answer<()> {
    let realm = context.engine.realm().as_str();
    context.door.challenges().take(realm, handle.as_str(), challenge).map_err(challenge_error)
}

fn challenge_error(why: ChallengeError) -> DoorError {
    match why {
        ChallengeError::Unknown => {
            DoorError::new(401, "challenge_invalid", "this challenge was not given for this handle")
        }
        ChallengeError::Expired => DoorError::new(401, "challenge_expired", "this challenge has expired"),
    }
}

/// Reads what all forms of registration have in common. Also returns the handle as written.
fn newcomer(fields: &Fields) -> Answer<(String, Newcomer)> {
    let raw = fields.text(&["handle", "username", "name"])?.unwrap_or_default();
    let handle = Handle::parse_new(raw)?;
    let key = |names: &[&str]| -> Answer<Option<PublicKey>> {
        let Some(text) = fields.text(names)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| bad_key(&format!("{}: {error}", names[0])))
    };
    let name = fields.text(&["display_name", "displayName"])?.map(str::to_owned);
    if name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME_CHARS) {
        return Err(DoorError::bad("display_name: at most 128 characters"));
    }
    let capabilities = fields.get(&["capabilities"]).cloned();
    if capabilities.as_ref().is_some_and(|it| !it.is_array() && !it.is_object()) {
        return Err(DoorError::bad("capabilities: a list or an object is expected"));
    }
    let newcomer = Newcomer {
        key: key(&["public_key", "publicKey"])?,
        recovery: key(&["recovery_key", "recoveryKey"])?,
        handle,
        name,
        capabilities,
        privacy: Privacy::Contacts,
    };
    Ok((raw.to_owned(), newcomer))
}

/// The same for Safe Mode, where newcomers need no key and are public.
pub(super) fn safe_newcomer(fields: &Fields) -> Answer<Newcomer> {
    newcomer(fields).map(|(_, newcomer)| Newcomer { privacy: Privacy::Public, ..newcomer })
}

/// Registers a newcomer and answers with its token.
async fn create_and_answer(context: &Context, newcomer: Newcomer) -> Answer {
    let agent = create_agent(context, newcomer).await?;
    let (token, until) = issue(context, &agent.id, None).await?;
    Ok((StatusCode::CREATED, Json(session(context, &agent, &token, Some(until)))).into_response())
}

/// Registers a newcomer.
pub(super) async fn create_agent(context: &Context, newcomer: Newcomer) -> Answer<Agent> {
    let bearer = check_open(context).await?;
    context.turn_of_address("registrations", context.door.rates().registrations)?;
    let name = newcomer.handle.to_string();
    let id = AgentId::new(&name).map_err(|error| DoorError::new(400, "invalid_handle", error.to_string()))?;
    let keys = newcomer.key.map(|key| StoredKeys::new(&key, newcomer.recovery.as_ref()).to_json());
    let verb = Register {
        id: Some(id.clone()),
        name: newcomer.name,
        contact_policy: Some(ContactPolicy::Contacts),
        privacy: Some(newcomer.privacy),
        keys,
        capabilities: newcomer.capabilities.as_ref().map(Kept::from_value),
        // The bearer of a token may register the token's name, and no other token's. A new name belongs to it from now on.
        bearer: bearer.filter(|bearer| bearer.name == id),
        ..Register::default()
    };
    Ok(context.engine.submit(&Caller::member(id, VIA), verb).await?.agent)
}

/// Whether the caller may register: with a token always, without one where the settings allow it. Returns the token's
/// bearer, if there is one.
async fn check_open(context: &Context) -> Answer<Option<Bearer>> {
    let known = match bearer(&context.headers) {
        token @ Some(_) => context.door.identify(&context.engine, token, VIA).await.ok(),
        None => None,
    };
    match known {
        Some(identity) => Ok(Some(identity.bearer())),
        None if context.door.open_registration().holds(context.local) => Ok(None),
        None => Err(DoorError::new(
            403,
            "registration_closed",
            "registration without a token is off for this request; send a token (`posthaste token create` \
             makes one), or start the server with --registration on",
        )),
    }
}

/// Makes a token for an identity, valid at this door and no longer than `end`.
pub(super) async fn issue(context: &Context, id: &AgentId, end: Option<Millis>) -> Answer<(String, Millis)> {
    let default = stamp::now() + TOKEN_VALID_FOR;
    let (token, until) = (keys::new_token(), end.map_or(default, |end| end.min(default)));
    let hash = keys::hash(&token).to_vec();
    let name = id.to_string();
    let verb = CreateToken {
        hash,
        role: TokenRole::Agent,
        name,
        door: Some(VIA.to_owned()),
        observe: false,
        expires_at: Some(until),
    };
    context.engine.submit(&server_caller(), verb).await?;
    Ok((token, until))
}

/// Exchanges a token for another with the same role, door and rights, and the same expiry unless this door issued it.
pub(super) async fn renew(context: &Context, old: [u8; 32]) -> Answer<(String, Option<Millis>)> {
    let token = keys::new_token();
    let verb = RenewToken {
        old: old.to_vec(),
        hash: keys::hash(&token).to_vec(),
        expires_at: Some(stamp::now() + TOKEN_VALID_FOR),
    };
    let renewed = context.engine.submit(&server_caller(), verb).await.map_err(not_renewed)?;
    Ok((token, renewed.expires_at))
}

fn not_renewed(error: EngineError) -> DoorError {
    match error.refusal() {
        Some(Refusal::NoSuchToken) => {
            DoorError::new(401, "token_expired", "this token is unknown, expired or revoked")
        }
        Some(Refusal::BadValue { field: "token", why }) => DoorError::bad(*why),
        _ => error.into(),
    }
}

/// The server, acting on a proof that this door has checked.
pub(super) fn server_caller() -> Caller {
    Caller { via: VIA.to_owned(), ..Caller::office() }
}

/// The answer that gives an identity its token.
pub(super) fn session(context: &Context, agent: &Agent, token: &str, until: Option<Millis>) -> Session {
    let until = until.map(to_rfc3339);
    Session {
        success: true,
        handle: agent.id.to_string(),
        username: agent.id.to_string(),
        registry: context.base(),
        session_token: token.to_owned(),
        token: token.to_owned(),
        session_id: keys::hash(token)[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
        expires_at: until.clone(),
        expires_at_camel: until,
        identity: to_wire::identity(agent, &context.base()),
    }
}

/// `GET /identity/{handle}`: public for identities of this door; agents of other doors are shown to callers with a token.
pub(super) async fn show(context: Context) -> Answer {
    let agent = look_up(&context).await?;
    let identity = to_wire::identity(&agent, &context.base());
    Ok(Json(IdentityAnswer { identity, success: true }).into_response())
}

/// `GET /api/identity/{handle}/capabilities`
pub(super) async fn capabilities(context: Context) -> Answer {
    let agent = look_up(&context).await?;
    let capabilities = to_wire::capabilities(&agent);
    Ok(Json(CapabilitiesAnswer { success: true, handle: agent.id.to_string(), capabilities }).into_response())
}

async fn look_up(context: &Context) -> Answer<Agent> {
    let actor = context.optional_actor().await?;
    find(context, actor, context.param("handle")).await
}

/// The agent of this name, if this caller may see it.
pub(super) async fn find(context: &Context, actor: Option<Actor>, text: &str) -> Answer<Agent> {
    let known = actor.is_some();
    let caller = actor.map_or_else(visitor, |actor| actor.caller);
    let text = text.to_owned();
    let missing = DoorError::no_identity(&text);
    let found = context.engine.read(move |view| {
        let exact = text.trim_start_matches('@').to_owned();
        for name in [exact, normalized(&text)] {
            if let Ok(id) = AgentId::new(&name)
                && let Ok(agent) = view.entry(&caller, &id)
            {
                return Ok(Some(agent));
            }
        }
        Ok(None)
    });
    let shown = |agent: &Agent| {
        let ours = is_identity(agent);
        (agent.is_active() && (known || ours)) || (ours && agent.state == Agent::REVOKED)
    };
    found.await?.filter(shown).ok_or(missing)
}

/// `POST /auth/refresh`: a new token for the bearer of a valid one, or for a caller that signs a challenge with the
/// identity's key.
pub(super) async fn refresh(context: Context, Text(text): Text) -> Answer {
    let fields = Fields::parse(if text.trim().is_empty() { "{}".to_owned() } else { text })?;
    let (agent, (token, until)) = match fields.get(&["challenge"]) {
        Some(_) => {
            let raw = fields.text(&["handle", "username"])?.unwrap_or_default();
            let handle = Handle::parse(raw)?;
            let id = AgentId::new(handle.as_str()).map_err(|_| DoorError::no_identity(raw))?;
            let agent = context.engine.read(move |view| view.agent(&visitor(), &id)).await?;
            let key = key_of(&agent).ok_or_else(|| DoorError::unauthorized("this identity has no key"))?;
            use_signed_challenge(&context, &fields, &handle, &key)?;
            let (token, until) = issue(&context, &agent.id, None).await?;
            (agent, (token, Some(until)))
        }
        None => {
            let actor = context.actor(None).await?;
            (Agent::clone(&actor.agent), renew(&context, context.token_hash()?).await?)
        }
    };
    let session = session(&context, &agent, &token, until);
    Ok(Json(RefreshAnswer { session, access_token: token.clone(), refresh_token: token }).into_response())
}

fn bad_key(why: &str) -> DoorError {
    DoorError::new(400, "invalid_key", why)
}

pub(super) fn bad_proof(why: &str) -> DoorError {
    DoorError::new(401, "invalid_proof", why)
}

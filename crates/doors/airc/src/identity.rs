//! Identities: registering with a proof, looking up, changing keys and giving up.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{
    Agent, AgentId, Caller, ContactPolicy, Json as Kept, Millis, Privacy, TokenRole,
};
use posthaste_engine::verbs::agents::{Bearer, Register};
use posthaste_engine::verbs::tokens::{CreateToken, RenewToken};
use posthaste_engine::{EngineError, Refusal, stamp};
use posthaste_wire::airc::{Handle, verify_challenge};
use posthaste_wire::signing::{PublicKey, Signature};
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::challenges::Stale;
use super::context::{Actor, Context, Fields, Text, is_identity, key_of, spelled, visitor};
use super::errors::{Answer, Trouble};
use super::{VIA, to_wire};
use posthaste_host::caller::bearer;
use posthaste_host::keys;
use posthaste_host::no_oauth;

/// How long a token is good for.
pub(super) const TOKEN_LASTS: Millis = 30 * 24 * 3_600_000;
/// The longest display name, in characters.
const LONGEST_NAME: usize = 128;

/// Someone who wants to be an identity.
pub(super) struct Newcomer {
    pub(super) handle: Handle,
    pub(super) name: Option<String>,
    pub(super) key: Option<PublicKey>,
    pub(super) recovery: Option<PublicKey>,
    pub(super) capabilities: Option<Value>,
    pub(super) privacy: Privacy,
}

/// `POST /identity`: the proof is a signature over the handle.
pub(super) async fn create(context: Context, fields: Fields) -> Answer {
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
        use_up(&context, &newcomer.handle, challenge)?;
    }
    welcome(&context, newcomer).await
}

/// `POST /register/challenge`
pub(super) async fn challenge(context: Context, fields: Fields) -> Answer {
    let handle = Handle::parse_new(fields.text(&["handle", "username"])?.unwrap_or_default())?;
    context.turn_of_address("registrations", context.shared.rates().registrations)?;
    let (challenge, until) =
        context.shared.challenges().give(context.engine.realm().as_str(), handle.as_str());
    let until = to_rfc3339(until);
    let body = json!({
        "success": true, "challenge": challenge, "handle": handle.as_str(), "expiresAt": until, "expires_at": until,
    });
    Ok(Json(body).into_response())
}

/// `POST /register`: the proof is a signature over a challenge. OAuth clients come here, too, and are told that they need a token.
pub(super) async fn register(context: Context, fields: Fields) -> Answer {
    if no_oauth::is_registration(&fields.members) {
        return Ok(no_oauth::no_registration());
    }
    let (_, newcomer) = newcomer(&fields)?;
    let key = newcomer.key.ok_or_else(|| bad_key("publicKey is missing"))?;
    proven(&context, &fields, &newcomer.handle, &key)?;
    welcome(&context, newcomer).await
}

/// Checks a signed challenge. Only a good signature uses it up, so that a wrong try by another caller does not take it
/// away from the one it was given to.
fn proven(context: &Context, fields: &Fields, handle: &Handle, key: &PublicKey) -> Answer<()> {
    let invalid = |why: &str| Trouble::new(401, "challenge_invalid", why);
    let challenge = fields.text(&["challenge"])?.ok_or_else(|| invalid("challenge is missing"))?;
    let signature = fields.text(&["challengeSignature", "challenge_signature", "signature", "proof"])?;
    let signature = signature.ok_or_else(|| invalid("challengeSignature is missing"))?;
    check_challenge(context, handle, challenge)?;
    verify_challenge(challenge, signature, key)
        .map_err(|_| Trouble::new(401, "invalid_signature", "the challenge is not signed by this key"))?;
    use_up(context, handle, challenge)
}

fn check_challenge(context: &Context, handle: &Handle, challenge: &str) -> Answer<()> {
    let realm = context.engine.realm().as_str();
    context.shared.challenges().check(realm, handle.as_str(), challenge).map_err(stale)
}

fn use_up(context: &Context, handle: &Handle, challenge: &str) -> Answer<()> {
    let realm = context.engine.realm().as_str();
    context.shared.challenges().take(realm, handle.as_str(), challenge).map_err(stale)
}

fn stale(why: Stale) -> Trouble {
    match why {
        Stale::Unknown => {
            Trouble::new(401, "challenge_invalid", "this challenge was not given for this handle")
        }
        Stale::Expired => Trouble::new(401, "challenge_expired", "this challenge has expired"),
    }
}

/// Reads what the forms of registration have in common. The handle comes as written, too.
fn newcomer(fields: &Fields) -> Answer<(String, Newcomer)> {
    let raw = fields.text(&["handle", "username", "name"])?.unwrap_or_default();
    let handle = Handle::parse_new(raw)?;
    let key = |names: &[&str]| -> Answer<Option<PublicKey>> {
        let Some(text) = fields.text(names)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| bad_key(&format!("{}: {error}", names[0])))
    };
    let name = fields.text(&["display_name", "displayName"])?.map(str::to_owned);
    if name.as_ref().is_some_and(|name| name.chars().count() > LONGEST_NAME) {
        return Err(Trouble::bad("display_name: at most 128 characters"));
    }
    let capabilities = fields.get(&["capabilities"]).cloned();
    if capabilities.as_ref().is_some_and(|it| !it.is_array() && !it.is_object()) {
        return Err(Trouble::bad("capabilities: a list or an object is expected"));
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

/// The same for Safe Mode, whose newcomers need no key and show themselves to everyone.
pub(super) fn safe_newcomer(fields: &Fields) -> Answer<Newcomer> {
    newcomer(fields).map(|(_, newcomer)| Newcomer { privacy: Privacy::Public, ..newcomer })
}

/// Enters a newcomer and answers with its token.
async fn welcome(context: &Context, newcomer: Newcomer) -> Answer {
    let agent = enter(context, newcomer).await?;
    let (token, until) = issue(context, &agent.id, None).await?;
    Ok((StatusCode::CREATED, Json(session(context, &agent, &token, Some(until)))).into_response())
}

/// Enters a newcomer into the address book.
pub(super) async fn enter(context: &Context, newcomer: Newcomer) -> Answer<Agent> {
    let bearer = check_open(context).await?;
    context.turn_of_address("registrations", context.shared.rates().registrations)?;
    let name = newcomer.handle.to_string();
    let id = AgentId::new(&name).map_err(|error| Trouble::new(400, "invalid_handle", error.to_string()))?;
    let keys = newcomer.key.map(|key| {
        Kept::from_value(&json!({
            "public_key": key.to_string(),
            "recovery_key": newcomer.recovery.map(|key| key.to_string()),
        }))
    });
    let verb = Register {
        id: Some(id.clone()),
        name: newcomer.name,
        contact_policy: Some(ContactPolicy::Contacts),
        privacy: Some(newcomer.privacy),
        keys,
        capabilities: newcomer.capabilities.as_ref().map(Kept::from_value),
        // The bearer of a token may have its own name here, and no other token's. A name that is new is its own from now on.
        bearer: bearer.filter(|bearer| bearer.name == id),
        ..Register::default()
    };
    Ok(context.engine.submit(&Caller::member(id, VIA), verb).await?.agent)
}

/// Without a token, identities are made only by callers to whom the settings offer it. With one, by any caller. Gives the
/// token's bearer, if there is one.
async fn check_open(context: &Context) -> Answer<Option<Bearer>> {
    let known = match bearer(&context.headers) {
        token @ Some(_) => context.shared.identify(&context.engine, token, VIA).await.ok(),
        None => None,
    };
    match known {
        Some(identity) => Ok(Some(identity.bearer())),
        None if context.shared.takes_newcomers().holds(context.local) => Ok(None),
        None => Err(Trouble::new(
            403,
            "registration_closed",
            "registration without a token is off for this request; send a token (`posthaste token create` \
             makes one), or start the server with --registration on",
        )),
    }
}

/// Makes a token for an identity, good for this door and no longer than `end`.
pub(super) async fn issue(context: &Context, id: &AgentId, end: Option<Millis>) -> Answer<(String, Millis)> {
    let usual = stamp::now() + TOKEN_LASTS;
    let (token, until) = (keys::new_token(), end.map_or(usual, |end| end.min(usual)));
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
    context.engine.submit(&office(), verb).await?;
    Ok((token, until))
}

/// Exchanges a token for another. Its role, door and rights stay, and its end unless this door issued it.
pub(super) async fn renew(context: &Context, old: [u8; 32]) -> Answer<(String, Option<Millis>)> {
    let token = keys::new_token();
    let verb = RenewToken {
        old: old.to_vec(),
        hash: keys::hash(&token).to_vec(),
        expires_at: Some(stamp::now() + TOKEN_LASTS),
    };
    let renewed = context.engine.submit(&office(), verb).await.map_err(not_renewed)?;
    Ok((token, renewed.expires_at))
}

fn not_renewed(error: EngineError) -> Trouble {
    match error.refusal() {
        Some(Refusal::NoSuchToken) => {
            Trouble::new(401, "token_expired", "this token is unknown, expired or revoked")
        }
        Some(Refusal::BadValue { field: "token", why }) => Trouble::bad(*why),
        _ => error.into(),
    }
}

/// The office, vouching for a proof that this door has checked.
pub(super) fn office() -> Caller {
    Caller { via: VIA.to_owned(), ..Caller::office() }
}

/// What an identity gets when it is let in.
pub(super) fn session(context: &Context, agent: &Agent, token: &str, until: Option<Millis>) -> Value {
    let until = until.map(to_rfc3339);
    json!({
        "success": true,
        "handle": agent.id,
        "username": agent.id,
        "registry": context.base(),
        "session_token": token,
        "token": token,
        "sessionId": keys::hash(token)[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "expires_at": until,
        "expiresAt": until,
        "identity": to_wire::identity(agent, &context.base()),
    })
}

/// `GET /identity/{handle}`: public for identities of this door; agents of other doors are shown to those with a token.
pub(super) async fn show(context: Context) -> Answer {
    let agent = look_up(&context).await?;
    let mut body = to_wire::identity(&agent, &context.base());
    body["success"] = json!(true);
    Ok(Json(body).into_response())
}

/// `GET /api/identity/{handle}/capabilities`
pub(super) async fn capabilities(context: Context) -> Answer {
    let agent = look_up(&context).await?;
    let capabilities = agent.capabilities.as_ref().map_or_else(|| json!([]), Kept::value);
    let body = json!({ "success": true, "handle": agent.id, "capabilities": capabilities });
    Ok(Json(body).into_response())
}

async fn look_up(context: &Context) -> Answer<Agent> {
    let actor = context.looker().await?;
    find(context, actor, context.param("handle")).await
}

/// The agent of this name, as far as this caller may know of it.
pub(super) async fn find(context: &Context, actor: Option<Actor>, text: &str) -> Answer<Agent> {
    let known = actor.is_some();
    let caller = actor.map_or_else(visitor, |actor| actor.caller);
    let text = text.to_owned();
    let nobody = Trouble::nobody(&text);
    let found = context.engine.read(move |view| {
        let exact = text.trim_start_matches('@').to_owned();
        for name in [exact, spelled(&text)] {
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
    found.await?.filter(shown).ok_or(nobody)
}

/// `POST /auth/refresh`: a new token for the bearer of one, or for whoever signs a challenge with the identity's key.
pub(super) async fn refresh(context: Context, Text(text): Text) -> Answer {
    let fields = Fields::read(if text.trim().is_empty() { "{}".to_owned() } else { text })?;
    let (agent, (token, until)) = match fields.get(&["challenge"]) {
        Some(_) => {
            let raw = fields.text(&["handle", "username"])?.unwrap_or_default();
            let handle = Handle::parse(raw)?;
            let id = AgentId::new(handle.as_str()).map_err(|_| Trouble::nobody(raw))?;
            let agent = context.engine.read(move |view| view.agent(&visitor(), &id)).await?;
            let key = key_of(&agent).ok_or_else(|| Trouble::unauthorized("this identity has no key"))?;
            proven(&context, &fields, &handle, &key)?;
            let (token, until) = issue(&context, &agent.id, None).await?;
            (agent, (token, Some(until)))
        }
        None => {
            let actor = context.actor(None).await?;
            (Agent::clone(&actor.agent), renew(&context, context.token_hash()?).await?)
        }
    };
    let mut body = session(&context, &agent, &token, until);
    body["accessToken"] = json!(token);
    body["refreshToken"] = json!(token);
    Ok(Json(body).into_response())
}

fn bad_key(why: &str) -> Trouble {
    Trouble::new(400, "invalid_key", why)
}

pub(super) fn bad_proof(why: &str) -> Trouble {
    Trouble::new(401, "invalid_proof", why)
}

/// A short answer without particulars.
pub(super) fn done(body: Value) -> Response {
    Json(body).into_response()
}

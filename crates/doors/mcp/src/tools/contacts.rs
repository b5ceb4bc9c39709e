//! Consent. Inside a project the first letter simply arrives; who wants it stricter says so.

use posthaste_engine::nouns::{
    AgentId, AgentSet, Body, Bounds, Caller, Contact, ContactPolicy, ContactState, Json, Millis,
};
use posthaste_engine::verbs::agents::Update;
use posthaste_engine::verbs::contacts::{Answer as Answered, Ask, EndContact};
use posthaste_engine::{Refusal, stamp};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::attachments::Given;
use super::super::call::{Call, VIA};
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::{identity, mail};
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        request_contact,
        full,
        ADDS reaches_agents,
        "Ask an agent to take your mail (only needed if its policy is contacts_only).",
        "project_key! from_agent! to_agent! to_project reason ttl_seconds:int=604800 register_if_missing:flag=true program model task_description registration_token"
    ),
    tool!(
        respond_contact,
        full,
        SETS,
        "Approve or deny a contact request.",
        "project_key! to_agent! from_agent! accept!:flag ttl_seconds:int=2592000 from_project registration_token"
    ),
    tool!(
        list_contacts,
        full,
        READS,
        "An agent's contacts and the requests waiting for it.",
        "project_key! agent_name! registration_token"
    ),
    tool!(
        set_contact_policy,
        full,
        SETS,
        "Whose mail an agent takes: open and auto (anyone's), contacts_only, block_all.",
        "project_key! agent_name! policy!:open|auto|contacts_only|block_all registration_token"
    ),
];

/// The longest consent, in seconds.
const LONGEST: i64 = 10 * 365 * 24 * 3600;

/// A contact that is wished for.
pub(in super::super) struct Wish<'a> {
    pub(in super::super) to: &'a str,
    pub(in super::super) to_project: Option<&'a str>,
    pub(in super::super) reason: Option<&'a str>,
    pub(in super::super) ttl: i64,
}

async fn request_contact(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    if args.flag("register_if_missing") && args.text("program").is_some() {
        register_if_missing(call, &project, args.need("from_agent"), &args).await?;
    }
    let caller = call.act(&project, args.need("from_agent"), &args).await?;
    let wish = Wish {
        to: args.need("to_agent"),
        to_project: args.text("to_project"),
        reason: args.text("reason"),
        ttl: args.within("ttl_seconds", 1, LONGEST)?.unwrap_or(604_800),
    };
    request(call, &project, &caller, wish).await.map(Answer::from)
}

/// Enters an agent that is not there, under the name asked for.
pub(in super::super) async fn register_if_missing(
    call: &Call,
    project: &Project,
    name: &str,
    args: &Args,
) -> Result<(), DoorError> {
    let Ok(id) = AgentId::new(name) else { return Ok(()) };
    let there = project.engine.read(move |view| view.agent(&Caller::office(), &id)).await;
    if there.is_err() {
        identity::register(call, project, Some(name), args).await?;
    }
    Ok(())
}

pub(in super::super) async fn request(
    call: &Call,
    project: &Project,
    caller: &Caller,
    wish: Wish<'_>,
) -> Result<Value, DoorError> {
    let to = AgentId::new(wish.to).map_err(Refusal::from)?;
    let expires_at = stamp::now().saturating_add(wish.ttl.saturating_mul(1000));
    let reason = wish.reason.map(str::to_owned);
    let other = match wish.to_project {
        Some(key) => Some(call.project(key).await?).filter(|other| other.realm() != project.realm()),
        None => None,
    };
    let mut asked_at = 0;
    let (status, expires, target) = match &other {
        // Consent is given where the letter arrives; between projects the letter itself asks.
        Some(other) => {
            // As a stranger to that realm, who is shown what it shows to everyone.
            let guest =
                AgentId::new(format!("{}@{}", caller.agent, project.realm())).map_err(Refusal::from)?;
            let (agent, _) = identity::seen(call, other, &Caller::member(guest, VIA), to.clone()).await?;
            let open = agent.contact_policy == ContactPolicy::Open;
            (if open { "approved" } else { "pending" }, Some(expires_at), other)
        }
        None => {
            let verb = Ask { to: to.clone(), reason: reason.clone(), expires_at: Some(expires_at) };
            let contact = call.ask(project, caller, verb).await?;
            asked_at = contact.updated_at;
            (status_of(&contact), contact.expires_at, project)
        }
    };
    let body = format!("{} asks to be your contact. {}", caller.agent, wish.reason.unwrap_or_default());
    let about = format!("Contact request from {}", caller.agent);
    let mut intro = mail::note(&to, &about, body.trim(), true);
    // The request is there once, however often it is repeated, and so is the message that tells of it.
    intro.key = other.is_none().then(|| format!("contact:{}:{to}:{asked_at}", caller.agent));
    if let Some(other) = &other {
        let realm = other.realm().clone();
        intro.to = vec![posthaste_engine::nouns::Address::Remote { agent: to.to_string(), realm }];
    }
    if status == "pending" {
        match mail::post(call, project, caller, intro.clone(), None, &Given::default()).await {
            Err(problem) if problem.code != "KEY_REUSED" && other.is_none() => {
                // An agent that takes no messages from strangers still hears of the request. The server says so in its own
                // words: the reason that was given is shown with the request, as the requester's.
                intro.body = Body::Text(format!(
                    "{} asks to be your contact. list_contacts shows the request and its reason, respond_contact answers it.",
                    caller.agent
                ));
                mail::post(call, project, &Caller::office(), intro, None, &Given::default()).await?;
            }
            _ => {}
        }
    }
    Ok(json!({
        "from": caller.agent,
        "from_project": project.human_key,
        "to": to,
        "to_project": target.human_key,
        "status": status,
        "expires_ts": expires.map(to_wire::time),
    }))
}

async fn respond_contact(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("to_agent"), &args).await?;
    let ttl = args.within("ttl_seconds", 1, LONGEST)?.unwrap_or(2_592_000);
    respond(call, &project, &caller, args.need("from_agent"), args.flag("accept"), ttl)
        .await
        .map(Answer::from)
}

pub(in super::super) async fn respond(
    call: &Call,
    project: &Project,
    caller: &Caller,
    from: &str,
    accept: bool,
    ttl: i64,
) -> Result<Value, DoorError> {
    let from = AgentId::new(from).map_err(Refusal::from)?;
    let expires_at: Option<Millis> = accept.then(|| stamp::now().saturating_add(ttl.saturating_mul(1000)));
    let (asking, other) = (caller.clone(), from.clone());
    let before = call.look(project, caller, move |view| view.contact(&asking, &other, &asking.agent)).await?;
    if accept && before.as_ref().is_some_and(|before| before.state == ContactState::Blocked) {
        // Whoever was denied before had asked; the block is lifted and the request stands again.
        call.ask(project, caller, EndContact { with: from.clone() }).await?;
        let ask = Ask { to: caller.agent.clone(), reason: None, expires_at: None };
        call.ask(project, &Caller::member(from.clone(), VIA), ask).await?;
    }
    let state = if accept { ContactState::Accepted } else { ContactState::Blocked };
    let contact = call.ask(project, caller, Answered { from: from.clone(), state, expires_at }).await?;
    Ok(json!({
        "from": from,
        "to": caller.agent,
        "approved": accept,
        "expires_ts": contact.expires_at.map(to_wire::time),
        "updated": 1,
    }))
}

async fn list_contacts(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let asking = caller.clone();
    let contacts = call.look(&project, &caller, move |view| view.contacts(&asking, &asking.agent)).await?;
    let now = stamp::now();
    let rows = contacts.iter().filter_map(|contact| {
        let outgoing = contact.from == caller.agent;
        // What was agreed shows up once, from this agent's side; requests to it are to be answered.
        if !outgoing && contact.state == ContactState::Accepted {
            return None;
        }
        let expired = contact.expires_at.is_some_and(|end| end <= now);
        let allows = contact.state == ContactState::Accepted && !expired;
        Some(json!({
            "to": if outgoing { &contact.to } else { &contact.from },
            "to_project": project.human_key,
            "direction": if outgoing { "outgoing" } else { "incoming" },
            "status": status_of(contact),
            "is_expired": expired,
            "allows_messaging": allows,
            "reason": contact.reason.as_deref().unwrap_or_default(),
            "updated_ts": to_wire::time(contact.updated_at),
            "expires_ts": contact.expires_at.map(to_wire::time),
        }))
    });
    Ok(Answer::list(&rows.collect::<Vec<_>>(), "No contacts and no requests."))
}

fn status_of(contact: &Contact) -> &'static str {
    match contact.state {
        ContactState::Pending => "pending",
        ContactState::Accepted => "approved",
        ContactState::Blocked => "blocked",
    }
}

async fn set_contact_policy(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("agent_name"), &args).await?;
    let word = args.need("policy");
    let (policy, circle) = match word {
        "contacts_only" => (ContactPolicy::Contacts, AgentSet::All),
        // Closed lets contacts pass; to block all is to block them too.
        "block_all" => (ContactPolicy::Closed, AgentSet::Empty),
        _ => (ContactPolicy::Open, AgentSet::All),
    };
    let bounds = Bounds {
        takes_from_agents: Some(circle.clone()),
        takes_from_clients: Some(circle.clone()),
        takes_from_systems: Some(circle),
        ..Bounds::default()
    };
    let verb = Update {
        contact_policy: Some(policy),
        bounds: Some(bounds),
        meta: Some(Json::from_value(&json!({ "contact_policy": word }))),
        merge_meta: true,
        ..Update::of(caller.agent.clone())
    };
    let agent = call.ask(&project, &caller, verb).await?;
    Ok(json!({ "agent": agent.id, "policy": word }).into())
}

//! Contacts. Inside a project the first message simply arrives; an agent that wants it stricter sets its policy.

use posthaste_engine::nouns::{
    AgentId, AgentSet, Body, Bounds, Caller, Contact, ContactPolicy, ContactState, Millis,
};
use posthaste_engine::verbs::agents::Update;
use posthaste_engine::verbs::contacts::{Answer as Answered, Ask, EndContact};
use posthaste_engine::{Refusal, stamp};
use posthaste_wire::mcp::answers::{ContactAnswer, ContactPolicyAnswer, ContactRequest, ContactRow};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::arguments::{int, within, yes};
use super::super::attachments::Given;
use super::super::call::{Call, VIA};
use super::super::errors::DoorError;
use super::super::meta::{self, PolicyMeta};
use super::super::table::{Line, tool};
use super::super::to_wire;
use super::identity::{self, Registration};
use super::mail;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(request_contact(RequestContactArgs), full, ADDS reaches_agents),
    tool!(respond_contact(RespondContactArgs), full, SETS),
    tool!(list_contacts(ListContactsArgs), full, READS),
    tool!(set_contact_policy(SetContactPolicyArgs), full, SETS),
];

/// Ask an agent to take your mail (only needed if its policy is contacts_only).
#[derive(Debug, Deserialize, JsonSchema)]
struct RequestContactArgs {
    /// absolute path or slug
    project_key: String,
    from_agent: String,
    to_agent: String,
    /// project of to_agent, if another
    to_project: Option<String>,
    reason: Option<String>,
    #[serde(default = "int::<604_800>")]
    ttl_seconds: i64,
    #[serde(default = "yes")]
    register_if_missing: bool,
    /// the client, such as claude-code
    program: Option<String>,
    model: Option<String>,
    task_description: Option<String>,
    registration_token: Option<String>,
}

/// Approve or deny a contact request.
#[derive(Debug, Deserialize, JsonSchema)]
struct RespondContactArgs {
    /// absolute path or slug
    project_key: String,
    to_agent: String,
    from_agent: String,
    /// false denies and blocks
    accept: bool,
    #[serde(default = "int::<2_592_000>")]
    ttl_seconds: i64,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    from_project: Option<String>,
    registration_token: Option<String>,
}

/// An agent's contacts and the requests waiting for it.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListContactsArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    registration_token: Option<String>,
}

/// Whose mail an agent takes: open and auto (anyone's), contacts_only, block_all.
#[derive(Debug, Deserialize, JsonSchema)]
struct SetContactPolicyArgs {
    /// absolute path or slug
    project_key: String,
    agent_name: String,
    /// whose messages are accepted
    policy: Policy,
    registration_token: Option<String>,
}

/// Whose messages an agent accepts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Open,
    Auto,
    ContactsOnly,
    BlockAll,
}

impl Policy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Auto => "auto",
            Self::ContactsOnly => "contacts_only",
            Self::BlockAll => "block_all",
        }
    }
}

/// The longest time for which contact is granted, in seconds.
pub(super) const MAX_CONTACT_SECONDS: i64 = 10 * 365 * 24 * 3600;

/// A contact that an agent asks for.
pub(super) struct Wish<'a> {
    pub(super) to: &'a str,
    pub(super) to_project: Option<&'a str>,
    pub(super) reason: Option<&'a str>,
    pub(super) ttl: i64,
}

async fn request_contact(call: &Call, args: RequestContactArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    if args.register_if_missing
        && let Some(program) = &args.program
    {
        let registration = Registration {
            program,
            model: args.model.as_deref().unwrap_or_default(),
            task_description: args.task_description.as_deref(),
            directory: Some(&args.project_key),
            secret: args.registration_token.as_deref(),
            ..Registration::default()
        };
        register_if_missing(call, &project, &args.from_agent, &registration).await?;
    }
    let caller = call.act(&project, &args.from_agent, args.registration_token.as_deref()).await?;
    let wish = Wish {
        to: &args.to_agent,
        to_project: args.to_project.as_deref(),
        reason: args.reason.as_deref(),
        ttl: within("ttl_seconds", args.ttl_seconds, 1, MAX_CONTACT_SECONDS)?,
    };
    Ok(Answer::one(&request(call, &project, &caller, wish).await?))
}

/// Registers an agent that is not there, under the name asked for.
pub(super) async fn register_if_missing(
    call: &Call,
    project: &Project,
    name: &str,
    registration: &Registration<'_>,
) -> Result<(), DoorError> {
    let Ok(id) = AgentId::new(name) else { return Ok(()) };
    let there = project.engine.read(move |view| view.agent(&Caller::office(), &id)).await;
    if there.is_err() {
        identity::register(call, project, Some(name), registration).await?;
    }
    Ok(())
}

pub(super) async fn request(
    call: &Call,
    project: &Project,
    caller: &Caller,
    wish: Wish<'_>,
) -> Result<ContactRequest, DoorError> {
    let to = AgentId::new(wish.to).map_err(Refusal::from)?;
    let expires_at = stamp::now().saturating_add(wish.ttl.saturating_mul(1000));
    let reason = wish.reason.map(str::to_owned);
    let other = match wish.to_project {
        Some(key) => Some(call.project(key).await?).filter(|other| other.realm() != project.realm()),
        None => None,
    };
    let mut asked_at = 0;
    let (status, expires, target) = match &other {
        // Contact is granted where the message arrives; between projects the message itself asks.
        Some(other) => {
            // As a caller from outside that realm, which is shown what every caller is.
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
    // The request is there once, however often it is repeated, and so is the message that announces it.
    intro.key = other.is_none().then(|| format!("contact:{}:{to}:{asked_at}", caller.agent));
    if let Some(other) = &other {
        let realm = other.realm().clone();
        intro.to = vec![posthaste_engine::nouns::Address::Remote { agent: to.to_string(), realm }];
    }
    if status == "pending" {
        match mail::post(call, project, caller, intro.clone(), None, &Given::default()).await {
            Err(problem) if problem.code != "KEY_REUSED" && other.is_none() => {
                // An agent that takes messages from contacts only still hears of the request. The server says so in its own
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
    Ok(ContactRequest {
        from: caller.agent.to_string(),
        from_project: project.human_key.clone(),
        to: to.to_string(),
        to_project: target.human_key.clone(),
        status: status.to_owned(),
        expires_ts: expires.map(to_wire::time),
    })
}

async fn respond_contact(call: &Call, args: RespondContactArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.to_agent, args.registration_token.as_deref()).await?;
    let ttl = within("ttl_seconds", args.ttl_seconds, 1, MAX_CONTACT_SECONDS)?;
    let answer = respond(call, &project, &caller, &args.from_agent, args.accept, ttl).await?;
    Ok(Answer::one(&answer))
}

pub(super) async fn respond(
    call: &Call,
    project: &Project,
    caller: &Caller,
    from: &str,
    accept: bool,
    ttl: i64,
) -> Result<ContactAnswer, DoorError> {
    let from = AgentId::new(from).map_err(Refusal::from)?;
    let expires_at: Option<Millis> = accept.then(|| stamp::now().saturating_add(ttl.saturating_mul(1000)));
    let (asking, other) = (caller.clone(), from.clone());
    let before = call.look(project, caller, move |view| view.contact(&asking, &other, &asking.agent)).await?;
    if accept && before.as_ref().is_some_and(|before| before.state == ContactState::Blocked) {
        // An agent that was denied before had asked; the block is lifted and the request stands again.
        call.ask(project, caller, EndContact { with: from.clone() }).await?;
        let ask = Ask { to: caller.agent.clone(), reason: None, expires_at: None };
        call.ask(project, &Caller::member(from.clone(), VIA), ask).await?;
    }
    let state = if accept { ContactState::Accepted } else { ContactState::Blocked };
    let contact = call.ask(project, caller, Answered { from: from.clone(), state, expires_at }).await?;
    Ok(ContactAnswer {
        from: from.to_string(),
        to: caller.agent.to_string(),
        approved: accept,
        expires_ts: contact.expires_at.map(to_wire::time),
        updated: 1,
    })
}

async fn list_contacts(call: &Call, args: ListContactsArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
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
        Some(ContactRow {
            to: if outgoing { &contact.to } else { &contact.from }.to_string(),
            to_project: project.human_key.clone(),
            direction: if outgoing { "outgoing" } else { "incoming" }.to_owned(),
            status: status_of(contact).to_owned(),
            is_expired: expired,
            allows_messaging: allows,
            reason: contact.reason.clone().unwrap_or_default(),
            updated_ts: to_wire::time(contact.updated_at),
            expires_ts: contact.expires_at.map(to_wire::time),
        })
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

async fn set_contact_policy(call: &Call, args: SetContactPolicyArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.agent_name, args.registration_token.as_deref()).await?;
    let (policy, senders) = match args.policy {
        Policy::ContactsOnly => (ContactPolicy::Contacts, AgentSet::All),
        // Closed lets contacts pass; to block all is to block them too.
        Policy::BlockAll => (ContactPolicy::Closed, AgentSet::Empty),
        Policy::Open | Policy::Auto => (ContactPolicy::Open, AgentSet::All),
    };
    let bounds = Bounds {
        takes_from_agents: Some(senders.clone()),
        takes_from_clients: Some(senders.clone()),
        takes_from_systems: Some(senders),
        ..Bounds::default()
    };
    let verb = Update {
        contact_policy: Some(policy),
        bounds: Some(bounds),
        meta: Some(meta::json(&PolicyMeta { contact_policy: args.policy.as_str() })),
        merge_meta: true,
        ..Update::of(caller.agent.clone())
    };
    let agent = call.ask(&project, &caller, verb).await?;
    let policy = args.policy.as_str().to_owned();
    Ok(Answer::one(&ContactPolicyAnswer { agent: agent.id.to_string(), policy }))
}

//! Sending a message and replying to one.

use posthaste_engine::nouns::{Address, Caller, ConversationId, MessageId, Priority, RecipientKind};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage, SendReceipt};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mcp::answers::{self, Delivery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::answer::Answer;
use super::super::attachments::{self, Given, SentFile};
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::meta::{self, MessageMeta};
use super::super::table::{Line, tool};
use super::super::{markdown, to_wire};
use posthaste_host::address;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(send_message(SendMessageArgs), core, ADDS reaches_agents),
    tool!(reply_message(ReplyMessageArgs), core, ADDS reaches_agents),
];

/// Send Markdown mail to agents by name (name@project for another project). thread_id groups messages. Durable once it answers.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendMessageArgs {
    /// absolute path or slug
    project_key: String,
    sender_name: String,
    to: Vec<String>,
    subject: String,
    body_md: String,
    #[serde(default)]
    cc: Vec<String>,
    #[serde(default)]
    bcc: Vec<String>,
    #[serde(default)]
    #[schemars(with = "Vec<SentFile>")]
    attachments: Vec<Map<String, Value>>,
    /// files below the project's path
    #[serde(default)]
    attachment_paths: Vec<String>,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    convert_images: Option<bool>,
    #[serde(default)]
    importance: Importance,
    /// ask for acknowledge_message
    #[serde(default)]
    ack_required: bool,
    thread_id: Option<String>,
    /// to every agent of the project
    #[serde(default)]
    broadcast: bool,
    /// a label, such as ci
    topic: Option<String>,
    /// ignored
    #[expect(dead_code, reason = "taken for clients that give it")]
    auto_contact_if_blocked: Option<bool>,
    /// the sender's registration_token
    sender_token: Option<String>,
}

/// Answer a message by id: same thread, importance and ack_required; to its sender unless said otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReplyMessageArgs {
    /// absolute path or slug
    project_key: String,
    message_id: i64,
    sender_name: String,
    body_md: String,
    /// default: the sender
    #[serde(default)]
    to: Vec<String>,
    #[serde(default)]
    cc: Vec<String>,
    #[serde(default)]
    bcc: Vec<String>,
    #[serde(default)]
    #[schemars(with = "Vec<SentFile>")]
    attachments: Vec<Map<String, Value>>,
    #[serde(default = "reply_prefix")]
    subject_prefix: String,
    /// the sender's registration_token
    sender_token: Option<String>,
}

fn reply_prefix() -> String {
    "Re:".to_owned()
}

// How pressing a message is. Not a doc comment, which would be published.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum Importance {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

impl From<Importance> for Priority {
    fn from(importance: Importance) -> Self {
        match importance {
            Importance::Low => Self::LOW,
            Importance::Normal => Self::NORMAL,
            Importance::High => Self::HIGH,
            Importance::Urgent => Self::URGENT,
        }
    }
}

/// The longest subject, in characters; the rest is cut off.
const MAX_SUBJECT_CHARS: usize = 200;
/// The kind of conversations that are opened by a thread's name.
pub(in super::super) const THREAD: &str = "thread";

async fn send_message(call: &Call, args: SendMessageArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.sender_name, args.sender_token.as_deref()).await?;
    let mut send = SendMessage::text(Vec::new(), args.body_md.as_str());
    address_to(&mut send, [&args.to, &args.cc, &args.bcc])?;
    if args.broadcast {
        send.to = vec![Address::All];
        send.allow_no_recipients = true;
    }
    send.subject = Some(subject(&args.subject));
    send.priority = args.importance.into();
    send.ack_required = args.ack_required;
    send.within = args.thread_id.as_deref().map(in_thread).transpose()?;
    let topic = args.topic.as_deref().map(check_topic).transpose()?;
    let files = Given { paths: args.attachment_paths, sent: args.attachments };
    let sent = post(call, &project, &caller, send, topic, &files).await?;
    let payload = to_wire::sent(&project, &sent);
    Ok(Answer::one(&answers::SendReceipt {
        attachments: payload.message.attachments.clone(),
        deliveries: [Delivery { project: project.human_key, payload }],
        count: 1,
        verified_sender: args.sender_token.map(|_| true),
    }))
}

async fn reply_message(call: &Call, args: ReplyMessageArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let caller = call.act(&project, &args.sender_name, args.sender_token.as_deref()).await?;
    let number = args.message_id;
    let asking = caller.clone();
    let original = call.look(&project, &caller, move |view| view.message_at(&asking, number)).await?;
    let message = &original.message;
    let mut send = SendMessage::text(Vec::new(), args.body_md.as_str());
    address_to(&mut send, [&args.to, &args.cc, &args.bcc])?;
    if args.to.is_empty() {
        // A reply to a message of one's own goes to its recipients.
        send.to = if message.from == caller.agent {
            let parties = original.deliveries.iter().filter(|delivery| delivery.copy == RecipientKind::To);
            parties
                .map(|delivery| address::parse(delivery.agent.as_str()))
                .collect::<Result<_, _>>()
                .map_err(Refusal::from)?
        } else {
            vec![address::parse(message.from.as_str()).map_err(Refusal::from)?]
        };
    }
    let (prefix, about) = (&args.subject_prefix, to_wire::subject(message));
    let again = !prefix.is_empty() && about.to_lowercase().starts_with(&prefix.to_lowercase());
    let about = if again || prefix.is_empty() { about } else { format!("{prefix} {about}") };
    send.subject = Some(subject(&about));
    (send.priority, send.ack_required) = (message.priority, message.ack_required);
    send.in_reply_to = Some(message.id);
    // A number can be guessed and taken by another agent before the reply; the reply still reaches its parties only.
    let thread = message.conversation.as_ref().map_or_else(|| message.seq.to_string(), ToString::to_string);
    send.within = Some(in_thread(&thread)?);
    let (topic, _) = to_wire::extras(message);
    let files = Given { paths: Vec::new(), sent: args.attachments };
    let sent = post(call, &project, &caller, send, topic.as_deref(), &files).await?;
    let message = to_wire::sent(&project, &sent);
    Ok(Answer::one(&answers::Reply {
        deliveries: [Delivery { project: project.human_key, payload: message.clone() }],
        message,
        reply_to: number,
        count: 1,
    }))
}

/// Sends a message with what this door keeps in its meta.
pub(in super::super) async fn post(
    call: &Call,
    project: &Project,
    caller: &Caller,
    mut send: SendMessage,
    topic: Option<&str>,
    files: &Given,
) -> Result<SendReceipt, DoorError> {
    markdown::check(send.body.as_str())?;
    let attachments = attachments::keep(call, project, files).await?;
    if topic.is_some() || !attachments.is_empty() {
        send.meta = Some(meta::json(&MessageMeta { topic, attachments }));
    }
    resolve_projects(call, project, &mut send).await?;
    match project.engine.submit(caller, send).await {
        Ok(sent) => Ok(sent),
        // Which of the two is unknown decides what the agent has to do.
        Err(EngineError::Refused(Refusal::NoSuchAgent { agent, near })) if near.is_empty() => {
            let error = Refusal::NoSuchAgent { agent: agent.clone(), near };
            let mut problem = call.explain(project, caller, error.into()).await;
            if agent != caller.agent.as_str() {
                problem.message = format!("recipient: {}", problem.message);
            }
            Err(problem)
        }
        Err(error) => Err(error.into()),
    }
}

/// A message to `name@project` names the project as its agents do; the engine wants the realm.
async fn resolve_projects(call: &Call, project: &Project, send: &mut SendMessage) -> Result<(), DoorError> {
    for address in send.to.iter_mut().chain(&mut send.cc).chain(&mut send.bcc) {
        let Address::Remote { realm, .. } = address else { continue };
        if realm == project.realm() {
            continue;
        }
        if let Ok(other) = call.project(realm.as_str()).await {
            *realm = other.realm().clone();
        }
    }
    Ok(())
}

fn address_to(send: &mut SendMessage, [to, cc, bcc]: [&[String]; 3]) -> Result<(), DoorError> {
    let lists = [(&mut send.to, "to", to), (&mut send.cc, "cc", cc), (&mut send.bcc, "bcc", bcc)];
    for (list, name, words) in lists {
        for word in words {
            let address = address::parse(word.trim())
                .map_err(|why| DoorError::new("INVALID_NAME", format!("'{word}' in '{name}': {why}")))?;
            list.push(address);
        }
    }
    Ok(())
}

pub(in super::super) fn subject(text: &str) -> String {
    text.chars().take(MAX_SUBJECT_CHARS).collect()
}

/// A reference to the thread of that name, which every agent may use.
pub(in super::super) fn in_thread(name: &str) -> Result<ConversationRef, DoorError> {
    let conversation = ConversationId::new(name)
        .map_err(|why| DoorError::new("INVALID_THREAD_ID", format!("thread_id '{name}': {why}")))?;
    let join = JoinMode::NameOnly { kind: THREAD.to_owned() };
    Ok(ConversationRef { conversation, thread: None, reply_to: None, visibility: None, join })
}

fn check_topic(topic: &str) -> Result<&str, DoorError> {
    let plain = topic.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if plain && topic.len() <= 64 {
        return Ok(topic);
    }
    Err(DoorError::new(
        "INVALID_TOPIC",
        format!("topic '{topic}': 1 to 64 alphanumeric characters, '_' or '-'"),
    ))
}

/// A plain note from one agent to another, as the macros and contacts send it.
pub(in super::super) fn note(
    to: &posthaste_engine::nouns::AgentId,
    about: &str,
    body: &str,
    ack: bool,
) -> SendMessage {
    let mut send = SendMessage::text(vec![Address::Agent(to.clone())], body);
    send.subject = Some(subject(about));
    send.ack_required = ack;
    send.priority = Priority::NORMAL;
    send
}

/// The id of the message with that number in an agent's mail.
pub(in super::super) async fn id_of(
    call: &Call,
    project: &Project,
    caller: &Caller,
    number: i64,
) -> Result<MessageId, DoorError> {
    let asking = caller.clone();
    call.look(project, caller, move |view| Ok(view.message_at(&asking, number)?.message.id)).await
}

//! Writing: a message, and an answer to one.

use posthaste_engine::nouns::{Address, Caller, ConversationId, Json, MessageId, Priority, RecipientKind};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage, SendReceipt};
use posthaste_engine::{EngineError, Refusal};
use serde_json::{Map, Value, json};

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::attachments::{self, Given};
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};
use super::super::{markdown, to_wire};
use posthaste_host::address;
use posthaste_host::projects::Project;

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        send_message,
        core,
        ADDS reaches_agents,
        "Send Markdown mail to agents by name (name@project for another project). thread_id groups messages. Durable once it answers.",
        "project_key! sender_name! to!:texts subject! body_md! cc:texts bcc:texts attachments:files attachment_paths:texts convert_images:flag importance:low|normal|high|urgent=normal ack_required:flag=false thread_id broadcast:flag=false topic auto_contact_if_blocked:flag sender_token"
    ),
    tool!(
        reply_message,
        core,
        ADDS reaches_agents,
        "Answer a message by id: same thread, importance and ack_required; to its sender unless said otherwise.",
        "project_key! message_id!:int sender_name! body_md! to:texts cc:texts bcc:texts attachments:files subject_prefix=Re: sender_token"
    ),
];

/// The longest subject, in characters; the rest is cut off.
const LONGEST_SUBJECT: usize = 200;
/// What conversations opened by a thread's name are for.
pub(in super::super) const THREAD: &str = "thread";

async fn send_message(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("sender_name"), &args).await?;
    let mut send = SendMessage::text(Vec::new(), args.need("body_md"));
    address_to(&mut send, &args)?;
    if args.flag("broadcast") {
        send.to = vec![Address::All];
        send.allow_no_recipients = true;
    }
    send.subject = Some(subject(args.need("subject")));
    send.priority = to_wire::priority(args.need("importance"));
    send.ack_required = args.flag("ack_required");
    send.within = args.text("thread_id").map(in_thread).transpose()?;
    let topic = args.text("topic").map(check_topic).transpose()?;
    let sent = post(call, &project, &caller, send, topic, &Given::of(&args)).await?;
    let payload = to_wire::sent(&project, &sent);
    let attachments = payload["attachments"].clone();
    let mut answer = json!({
        "deliveries": [{ "project": project.human_key, "payload": payload }],
        "count": 1,
        "attachments": attachments,
    });
    if args.token().is_some() {
        answer["verified_sender"] = true.into();
    }
    Ok(answer.into())
}

async fn reply_message(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let caller = call.act(&project, args.need("sender_name"), &args).await?;
    let number = args.whole("message_id").unwrap_or_default();
    let asking = caller.clone();
    let original = call.look(&project, &caller, move |view| view.message_at(&asking, number)).await?;
    let message = &original.message;
    let mut send = SendMessage::text(Vec::new(), args.need("body_md"));
    address_to(&mut send, &args)?;
    if !args.has("to") {
        // Whoever answers its own message means those it was for.
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
    let (prefix, about) = (args.need("subject_prefix"), to_wire::subject(message));
    let again = !prefix.is_empty() && about.to_lowercase().starts_with(&prefix.to_lowercase());
    let about = if again || prefix.is_empty() { about.to_owned() } else { format!("{prefix} {about}") };
    send.subject = Some(subject(&about));
    (send.priority, send.ack_required) = (message.priority, message.ack_required);
    send.in_reply_to = Some(message.id);
    // A number can be guessed and taken by another agent before the reply; what is said under it is for its parties all the same.
    let thread = message.conversation.as_ref().map_or_else(|| message.seq.to_string(), ToString::to_string);
    send.within = Some(in_thread(&thread)?);
    let (topic, _) = to_wire::extras(message);
    let sent = post(call, &project, &caller, send, topic.as_str(), &Given::of(&args)).await?;
    let payload = to_wire::sent(&project, &sent);
    let mut answer = payload.as_object().cloned().unwrap_or_default();
    answer.insert("reply_to".to_owned(), number.into());
    answer.insert("deliveries".to_owned(), json!([{ "project": project.human_key, "payload": payload }]));
    answer.insert("count".to_owned(), 1.into());
    Ok(Value::Object(answer).into())
}

/// Sends a letter with what this door keeps in its meta.
pub(in super::super) async fn post(
    call: &Call,
    project: &Project,
    caller: &Caller,
    mut send: SendMessage,
    topic: Option<&str>,
    files: &Given,
) -> Result<SendReceipt, DoorError> {
    markdown::check(send.body.as_str())?;
    let kept = attachments::keep(call, project, files).await?;
    let mut meta = Map::new();
    if let Some(topic) = topic {
        meta.insert("topic".to_owned(), topic.into());
    }
    if !kept.is_empty() {
        meta.insert("attachments".to_owned(), Value::Array(kept));
    }
    if !meta.is_empty() {
        send.meta = Some(Json::from_value(&Value::Object(meta)));
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

/// A letter to `name@project` names the project as its agents do; the engine wants the realm.
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

fn address_to(send: &mut SendMessage, args: &Args) -> Result<(), DoorError> {
    for (list, name) in [(&mut send.to, "to"), (&mut send.cc, "cc"), (&mut send.bcc, "bcc")] {
        for word in args.texts(name) {
            let address = address::parse(word.trim())
                .map_err(|why| DoorError::new("INVALID_NAME", format!("'{word}' in '{name}': {why}")))?;
            list.push(address);
        }
    }
    Ok(())
}

pub(in super::super) fn subject(text: &str) -> String {
    text.chars().take(LONGEST_SUBJECT).collect()
}

/// A place in the thread of that name, which anybody may use.
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
    Err(DoorError::new("INVALID_TOPIC", format!("topic '{topic}': 1 to 64 letters, digits, '_' or '-'")))
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

/// The lasting id of the message with that number in an agent's mail.
pub(in super::super) async fn id_of(
    call: &Call,
    project: &Project,
    caller: &Caller,
    number: i64,
) -> Result<MessageId, DoorError> {
    let asking = caller.clone();
    call.look(project, caller, move |view| Ok(view.message_at(&asking, number)?.message.id)).await
}

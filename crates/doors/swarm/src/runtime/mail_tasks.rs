//! Messages of other doors to agents of the hosted swarm: each opens a task owned by its sender, or continues one, and the
//! result of the task is the answer to the message.

use std::sync::atomic::Ordering;

use posthaste_engine::nouns::{
    Address, AgentId, Body, Caller, ConversationId, DeliveryState, Message, MessageId, Seq,
};
use posthaste_engine::stamp::Stamp;
use posthaste_engine::verbs::deliveries::{MarkFailed, MarkRead};
use posthaste_engine::verbs::runs::RunMessage;
use posthaste_engine::views::{InboxOrder, InboxQuery};
use posthaste_wire::mail::{MailOrigin, MsgType, Owner, OwnerRole, subjects};
use serde::{Deserialize, Serialize};

use super::run_state::RunState;
use super::{Runtime, TaskError, TaskRequest, VIA};
use posthaste_host::acks;
use posthaste_host::plain_text;

/// Messages of one agent per read of the database.
const INBOX_PAGE: usize = 200;

/// The message of another door that a task is to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceMessage {
    pub(crate) message: MessageId,
    from: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation: Option<String>,
    subject: String,
}

impl Runtime {
    /// Opens or continues a task for a message to hosted agents that is not part of one of their tasks.
    pub(super) async fn take_message(&self, message: &Message) {
        let hosted = self.inner.hosted.load_full();
        let is_here = |name: &str| hosted.agents.contains_key(name) && !hosted.is_connected(name);
        let named = message.to.iter().filter_map(|to| match to {
            Address::Agent(id) if is_here(id.as_str()) => Some(id.clone()),
            _ => None,
        });
        let to: Vec<AgentId> = named.collect();
        if to.is_empty() || message.from.is_office() || is_here(message.from.as_str()) {
            return;
        }
        let owner =
            Owner { role: OwnerRole::User, id: message.from.to_string(), swarm: hosted.swarm.name.clone() };
        let ask = TaskRequest {
            task_id: Some(self.name_of(message, &owner).await),
            owner,
            kind: MsgType::Request,
            to: to.iter().map(ToString::to_string).collect(),
            subject: plain_text::heading(message),
            body: plain_text::text(message),
            routing_info: Some(origin(message).into_routing_info()),
            resume: None,
            results: Vec::new(),
            max_steps: None,
            timeout: None,
            direct: true,
            source: Some(SourceMessage {
                message: message.id,
                from: message.from.clone(),
                conversation: message.conversation.clone(),
                correlation: message.correlation.clone(),
                subject: plain_text::heading(message),
            }),
        };
        let begun = self.open_task(ask).await;
        if let Err(TaskError::TooMany { .. }) = &begun {
            // It stays in the mailbox until earlier tasks of its sender have ended.
            self.inner.deferred.store(true, Ordering::Relaxed);
            return;
        }
        for agent in to {
            let engine = &self.inner.engine;
            let caller = Caller::member(agent.clone(), VIA);
            let noted = match &begun {
                // The agent's driver has no way to acknowledge it.
                Ok(_) if message.ack_required => {
                    acks::acknowledge(engine, &caller, message.id, None).await.map(drop)
                }
                Ok(_) => {
                    let verb = MarkRead { agent, message: message.id, unread: false };
                    engine.submit(&caller, verb).await.map(drop)
                }
                Err(why) => {
                    let verb = MarkFailed { agent, message: message.id, reason: why.to_string() };
                    engine.submit(&Caller::office(), verb).await.map(drop)
                }
            };
            if let Err(error) = noted {
                tracing::warn!(message = %message.id, %error, "the state of a message could not be written");
            }
        }
    }

    /// The task's id: the run of the message's conversation if it is the sender's, else the conversation, else the message.
    async fn name_of(&self, message: &Message, owner: &Owner) -> String {
        let Some(conversation) = &message.conversation else { return message.id.to_string() };
        match self.run_of_task(conversation).await {
            Some((key, whose)) if whose == owner.to_string() => key.name.to_string(),
            _ => conversation.to_string(),
        }
    }

    /// Handles messages that were written while there was no subscription.
    pub(super) async fn take_waiting_messages(&self, most_pages: usize) {
        let hosted = self.inner.hosted.load_full();
        for name in hosted.agents.keys().filter(|name| !hosted.is_connected(name)) {
            let Ok(agent) = AgentId::new(name) else { continue };
            let mut after: Seq = 0;
            for _ in 0..most_pages {
                let query = InboxQuery {
                    unread: true,
                    after: Some(after),
                    order: InboxOrder::Oldest,
                    limit: INBOX_PAGE,
                    ..InboxQuery::default()
                };
                let who = agent.clone();
                let page =
                    self.inner.engine.read(move |view| view.inbox(&Caller::office(), &who, &query)).await;
                let Ok(page) = page else { break };
                for message in page.items {
                    if message.message.via != VIA && message.delivery.state == DeliveryState::Queued {
                        self.take_message(&message.message).await;
                    }
                }
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
        }
    }
}

/// Fields of a message of another door that MAIL has no member for.
fn origin(message: &Message) -> MailOrigin {
    let files = posthaste_host::attachments::shown(message);
    MailOrigin {
        door: message.via.to_string(),
        message_id: message.id.to_string(),
        priority: message.priority.tier(),
        thread_id: message.conversation.as_ref().map(ToString::to_string),
        kind: (!message.kind.is_empty()).then(|| message.kind.clone()),
        ack_required: message.ack_required.then_some(true),
        payload: match &message.body {
            Body::Json(json) => Some(json.value()),
            _ => None,
        },
        meta: message.meta.as_ref().map(|meta| meta.value()),
        attachments: (!files.is_empty()).then_some(files),
    }
}

impl RunState {
    /// Adds the answer to the source message if these messages end the task.
    pub(super) fn answer_source(&mut self, messages: &mut Vec<RunMessage>) -> Option<SourceMessage> {
        let asked = self.state.source.clone()?;
        let to_asker = Address::Agent(asked.from.clone());
        let end = messages.iter_mut().rev().find(|message| {
            message.kind == MsgType::BroadcastComplete.as_str()
                || message.kind == MsgType::Response.as_str() && message.addressed.contains(&to_asker)
        })?;
        self.state.source = None;
        let mut answer = end.clone();
        answer.id = MessageId(Stamp::new().id);
        (answer.addressed, answer.to) = (vec![to_asker], vec![asked.from.clone()]);
        (answer.in_reply_to, answer.elsewhere) = (Some(asked.message), asked.conversation.clone());
        (answer.correlation, answer.key) = (asked.correlation.clone(), None);
        answer.kind = MsgType::Response.as_str().to_owned();
        answer.meta = None;
        if answer.subject == subjects::TASK_COMPLETE {
            answer.subject = format!("Re: {}", asked.subject);
        }
        if answer.elsewhere.is_none() {
            // The source message had no conversation, so the message that ends the task is also the answer.
            end.to.push(asked.from.clone());
            end.in_reply_to = Some(asked.message);
            end.subject.clone_from(&answer.subject);
            return Some(asked);
        }
        // In front, because the message that ends the task is the last.
        messages.insert(0, answer);
        Some(asked)
    }
}

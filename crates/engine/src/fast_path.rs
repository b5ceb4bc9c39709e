//! The fast path: a message whose recipients are all connected is delivered before it is stored.
//!
//! It is for messages that promise nothing beyond this moment: no acknowledgement, no expiry, no conversation, no key.
//! Recipients are resolved on a snapshot by the verb's own rules. The command that is queued afterwards names the agents that
//! have the message, so that applying it depends on nothing but itself and the database.

use std::sync::Arc;

use crate::engine::{Engine, Pending};
use crate::error::{EngineError, Fault};
use crate::hub::FastPath;
use crate::log::Record;
use crate::nouns::{AgentId, Caller, Delivery, DeliveryState, Message, MessageId, RecipientKind};
use crate::stamp::Stamp;
use crate::verbs::Verb;
use crate::verbs::mail::{Receipt, RecordDelivered, SendMessage, SendReceipt};
use crate::views::InboxMessage;

/// The result of [`Engine::dispatch`].
#[derive(Debug)]
pub enum Dispatch {
    /// All recipients have it; it is stored afterwards.
    Delivered(Box<SendReceipt>),
    /// It is queued like any other command.
    Queued(Pending<SendMessage>),
}

impl Engine {
    /// Sends a message: by the fast path if it promises nothing beyond this moment and all recipients are connected,
    /// otherwise through the queue.
    ///
    /// # Errors
    /// As for [`Engine::enqueue`].
    pub async fn dispatch(&self, caller: &Caller, mut verb: SendMessage) -> Result<Dispatch, EngineError> {
        if verb.is_ephemeral() {
            match self.deliver_now(caller, verb).await? {
                Ok(sent) => return Ok(Dispatch::Delivered(Box::new(sent))),
                Err(undelivered) => verb = undelivered,
            }
        }
        self.enqueue(caller, verb).await.map(Dispatch::Queued)
    }

    /// Delivers a message to all recipients, or returns it.
    async fn deliver_now(
        &self,
        caller: &Caller,
        verb: SendMessage,
    ) -> Result<Result<SendReceipt, SendMessage>, EngineError> {
        let fast_path = self.hub().fast_path();
        if self.poisoned().is_some() || !fast_path.is_clear(&caller.agent) {
            return Ok(Err(verb));
        }
        let recipients = match self.recipients_now(caller, &verb).await? {
            Some(recipients) if !recipients.is_empty() => recipients,
            _ => return Ok(Err(verb)),
        };
        let bytes = verb.body.as_str().len() + verb.meta.as_ref().map_or(0, |meta| meta.as_str().len());
        let stamp = Stamp::new();
        let message = Arc::new(verb.draft(caller, first_id(&stamp), stamp.now));
        // Room in the queue first: a message that could not be stored must not be delivered.
        let slot = self.reserve(caller, bytes).await?;
        if !self.hub().deliver_to_all(&recipients, |agent| inbox_message(&message, agent)) {
            return Ok(Err(verb));
        }
        let record = RecordDelivered::new(verb, recipients.to_vec());
        if !slot.put(Record::stamped(stamp, caller.clone(), record.into_command())) {
            return Err(Fault::Closing.into());
        }
        let receipts = recipients
            .iter()
            .map(|agent| Receipt {
                agent: agent.clone(),
                copy: RecipientKind::To,
                state: DeliveryState::Delivered,
            })
            .collect();
        let refused = Vec::new();
        Ok(Ok(SendReceipt { message, receipts, refused, turn: None, unrecorded: None, repeated: false }))
    }

    /// The recipients of a message at this moment. None if it would be refused (the queued command says why) or if anything
    /// else would have to be written.
    async fn recipients_now(
        &self,
        caller: &Caller,
        verb: &SendMessage,
    ) -> Result<Option<Arc<[AgentId]>>, EngineError> {
        let fast_path = self.hub().fast_path();
        let key = FastPath::key(caller, &verb.to);
        let version = fast_path.directory_version();
        if let Some(known) = fast_path.recipients().get(version, &key) {
            return Ok(Some(known));
        }
        let (asking, asked, realm) = (caller.clone(), verb.clone(), self.realm().clone());
        let found = self.read(move |view| Ok(asked.preview(view, &realm, &asking))).await?;
        let Some(found) = found else { return Ok(None) };
        let found: Arc<[AgentId]> = found.into();
        fast_path.recipients().put(version, key, found.clone());
        Ok(Some(found))
    }
}

fn inbox_message(message: &Arc<Message>, agent: &AgentId) -> InboxMessage {
    InboxMessage {
        message: message.clone(),
        delivery: Delivery {
            message: message.seq,
            agent: agent.clone(),
            copy: RecipientKind::To,
            state: DeliveryState::Delivered,
            delivered_at: Some(message.at),
            read_at: None,
            acked_at: None,
            note: None,
        },
    }
}

/// The seq of a message that is not stored yet.
pub(crate) const NO_SEQ: i64 = 0;

/// The id that the verb gives its message when it is applied: the first that its stamp derives.
fn first_id(stamp: &Stamp) -> MessageId {
    MessageId(crate::stamp::derived(stamp.id, 0))
}

//! The fast lane: a letter whose recipients are all connected is in their hands before it is in the books.
//!
//! It is for letters that promise nothing beyond this moment: no acknowledgement, no expiry, no conversation, no key.
//! Who is reached is found out on a snapshot by the rule that the verb itself goes by; the command that is written
//! behind names those who have the letter, so that applying it depends on nothing but itself and the books.

use std::sync::Arc;

use crate::engine::{Engine, Pending};
use crate::error::EngineError;
use crate::hub::FastPath;
use crate::log::Record;
use crate::nouns::{AgentId, Caller, Delivery, DeliveryState, Message, MessageId, RecipientKind};
use crate::stamp::Stamp;
use crate::verbs::mail::{Receipt, SendMessage, SendReceipt};
use crate::views::InboxMessage;

/// How a letter went.
#[derive(Debug)]
pub enum Dispatch {
    /// Everyone it is for has it; the books follow.
    Delivered(Box<SendReceipt>),
    /// It takes the slow road.
    Queued(Pending<SendMessage>),
}

impl Engine {
    /// Sends a letter as fast as it may go: at once if it promises nothing beyond this moment and everyone it is for
    /// is connected, else like any other.
    ///
    /// # Errors
    /// As for [`Engine::post`].
    pub async fn dispatch(&self, caller: &Caller, mut verb: SendMessage) -> Result<Dispatch, EngineError> {
        if verb.is_ephemeral() {
            match self.hand_round(caller, verb).await? {
                Ok(sent) => return Ok(Dispatch::Delivered(Box::new(sent))),
                Err(not_handed) => verb = not_handed,
            }
        }
        self.enqueue(caller, verb).await.map(Dispatch::Queued)
    }

    /// Hands a letter round, or gives it back.
    async fn hand_round(
        &self,
        caller: &Caller,
        mut verb: SendMessage,
    ) -> Result<Result<SendReceipt, SendMessage>, EngineError> {
        let fast_path = self.hub().fast_path();
        if self.poisoned().is_some() || !fast_path.is_clear(&caller.agent) {
            return Ok(Err(verb));
        }
        let recipients = match self.reached_now(caller, &verb).await? {
            Some(recipients) if !recipients.is_empty() => recipients,
            _ => return Ok(Err(verb)),
        };
        let bytes = verb.body.as_str().len() + verb.meta.as_ref().map_or(0, |meta| meta.as_str().len());
        let stamp = Stamp::new();
        let message = Arc::new(verb.letter(caller, first_id(&stamp), stamp.now));
        // A place in the queue first: what cannot be written behind is not handed round either.
        let place = self.reserve(caller, bytes).await?;
        if !self.hub().deliver_to_all(&recipients, |agent| letter(&message, agent)) {
            return Ok(Err(verb));
        }
        verb.handed = recipients.to_vec();
        if !place.put(Record::stamped(stamp, caller.clone(), crate::verbs::Verb::into_command(verb))) {
            return Err(crate::error::Fault::Closing.into());
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

    /// Whom a letter reaches at this moment; nothing if that cannot be told without writing, or not at all. The slow
    /// road then says why.
    async fn reached_now(
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

fn letter(message: &Arc<Message>, agent: &AgentId) -> InboxMessage {
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

/// The place that a letter has which is not in the books yet.
pub(crate) const NO_SEQ: i64 = 0;

/// The name that the verb gives its letter when it is applied: the first that its stamp gives out.
fn first_id(stamp: &Stamp) -> MessageId {
    MessageId(crate::stamp::derived(stamp.id, 0))
}

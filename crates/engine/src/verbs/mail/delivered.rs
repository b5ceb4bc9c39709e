//! Recording messages that the fast path has delivered already.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Post, SendMessage, SendReceipt};
use crate::nouns::{AgentId, DeliveryState, Fact, RecipientKind};
use crate::verbs::recipients::Recipient;
use crate::verbs::{Decide, Decided, Write, deliveries};

/// Records a message that its recipients have received. Only the engine's fast path makes this command: recipients, consent
/// and visibility are not checked here, because they were checked before the message was delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordDelivered {
    message: SendMessage,
    recipients: Vec<AgentId>,
}

impl RecordDelivered {
    /// Records that these agents have the message.
    pub(crate) fn new(message: SendMessage, recipients: Vec<AgentId>) -> Self {
        Self { message, recipients }
    }

    /// The message.
    pub(crate) fn message(&self) -> &SendMessage {
        &self.message
    }

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<SendReceipt> + use<'v>> {
        to.require_member()?;
        Ok(move |to: &mut Write<'_>| self.write(to))
    }

    fn write(&self, to: &mut Write<'_>) -> rusqlite::Result<SendReceipt> {
        let recipient =
            |agent: &AgentId| Recipient { agent: agent.clone(), copy: RecipientKind::To, peer: None };
        let recipients: Vec<Recipient> = self.recipients.iter().map(recipient).collect();
        let post = Post {
            recipients: &recipients,
            refused: &[],
            state: DeliveryState::Delivered,
            conversation: None,
            thread: None,
        };
        let (message, receipts) = self.message.post(to, &post)?;
        for receipt in &receipts {
            let fact = Fact::MessageDelivered { agent: receipt.agent.clone() };
            deliveries::emit_openly(to, fact, Arc::clone(&message))?;
        }
        Ok(SendReceipt {
            message,
            receipts,
            refused: Vec::new(),
            turn: None,
            unrecorded: None,
            repeated: false,
        })
    }
}

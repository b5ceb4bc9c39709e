//! The first message of an agent: the agent is registered and its message sent, or neither.

use serde::{Deserialize, Serialize};

use super::agents::Register;
use super::mail::{Send, Sent};
use super::{Applied, Apply};
use crate::store::rows;

/// Sends a message as the caller's agent, which is registered first if it is not in the address book. A message that is
/// refused registers no agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Introduce {
    /// How the agent is entered; its id is the caller's, whatever is said here.
    pub agent: Register,
    /// The message.
    pub letter: Send,
}

impl Introduce {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Sent> {
        to.require_member()?;
        if rows::active_agent(to.books, &to.caller.agent)?.is_none() {
            let agent = Register { id: Some(to.caller.agent.clone()), ..self.agent.clone() };
            agent.apply(to)?;
        }
        // A refusal from here on takes the registration back with it: see `writer.rs`.
        self.letter.apply(to)
    }
}

//! Mail between realms of one office: out of one history, into the other, once.

use tracing::{debug, warn};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::nouns::{Address, AgentId, Caller, Message, PeerKind, RealmName};
use crate::office::Office;
use crate::verbs::deliveries::Dispatched;
use crate::verbs::mail::SendMessage;
use crate::verbs::peers::PutPeer;
use crate::views::Outbound;

/// Letters carried at a time, from each realm.
const ARMFUL: usize = 100;

impl Office {
    /// Carries the letters that wait in open realms for agents of other realms of this office. To be called often.
    pub async fn carry(&self) {
        for name in self.open_names() {
            let Some(engine) = self.if_open(&name) else { continue };
            let waiting = engine.read(|view| view.outbound(&Caller::office(), ARMFUL)).await;
            match waiting {
                Ok(waiting) => {
                    for outbound in waiting {
                        self.carry_one(&engine, outbound).await;
                    }
                }
                Err(error) => warn!(realm = %engine.realm(), %error, "outgoing mail cannot be read"),
            }
        }
    }

    async fn carry_one(&self, from: &Engine, outbound: Outbound) {
        let Outbound { peer, agent, message, due } = outbound;
        let failure = match due {
            false => None,
            // Mail for other offices is carried by whoever speaks their protocol.
            true if !self.has_realm(&peer) => return,
            true => match self.hand_in(from.realm(), &peer, &agent, &message).await {
                Ok(()) => None,
                Err(EngineError::Refused(refusal)) if refusal != crate::Refusal::Busy => {
                    Some(refusal.to_string())
                }
                // Ours to mend: the letter waits.
                Err(error) => return debug!(%peer, %error, "a letter waits"),
            },
        };
        let settled = Dispatched { peer, agent, message: message.id, failure };
        if let Err(error) = from.submit(&Caller::office(), settled).await {
            // It is carried again, and taken once: the key below sees to it.
            debug!(realm = %from.realm(), %error, "a letter that was carried is not marked");
        }
    }

    /// Hands a letter in at the other realm, as its sender, who is called by its full name there.
    async fn hand_in(
        &self,
        from: &RealmName,
        to: &RealmName,
        agent: &AgentId,
        message: &Message,
    ) -> Result<(), EngineError> {
        let engine = self.realm(to).await?;
        meet(&engine, from).await?;
        let name = agent.as_str().rsplit_once('@').map_or(agent.as_str(), |(name, _)| name);
        let recipient = AgentId::new(name).map_err(crate::Refusal::from)?;
        let sender = AgentId::new(format!("{}@{from}", message.from)).map_err(crate::Refusal::from)?;
        let letter = SendMessage {
            kind: message.kind.clone(),
            subject: message.subject.clone(),
            body: message.body.clone(),
            priority: message.priority,
            ack_required: message.ack_required,
            expires_at: message.expires_at,
            correlation: message.correlation.clone(),
            key: Some(format!("{from}/{}", message.id)),
            envelope: message.envelope.clone(),
            meta: message.meta.clone(),
            ..SendMessage::text(vec![Address::Agent(recipient)], "")
        };
        engine.submit(&Caller::admin(sender, &message.via), letter).await.map(drop)
    }

    /// Lets a realm know another one of this office, if that is there. From then on names that end in `@other` are the
    /// other realm's.
    ///
    /// # Errors
    /// When the realm's database cannot be read or written.
    pub async fn introduce(&self, engine: &Engine, other: &RealmName) -> Result<(), EngineError> {
        if self.has_realm(other) { meet(engine, other).await } else { Ok(()) }
    }
}

/// Makes sure that a realm knows its neighbour.
async fn meet(engine: &Engine, neighbour: &RealmName) -> Result<(), EngineError> {
    let name = neighbour.clone();
    if engine.read(move |view| view.peer(&Caller::office(), &name)).await?.is_some() {
        return Ok(());
    }
    let peer = PutPeer {
        name: neighbour.clone(),
        kind: PeerKind::Realm,
        url: None,
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    engine.submit(&Caller::office(), peer).await.map(drop)
}

//! Mail between realms of one office: read from the outbound queue of one realm, sent in the other exactly once.

use tracing::{debug, warn};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::nouns::{Address, AgentId, Caller, Message, PeerKind, RealmName};
use crate::office::Office;
use crate::verbs::deliveries::Dispatched;
use crate::verbs::mail::SendMessage;
use crate::verbs::peers::PutPeer;
use crate::views::Outbound;

/// Messages relayed per round from each realm.
const RELAY_BATCH: usize = 100;

impl Office {
    /// Relays the messages that wait in open realms for agents of other realms of this office. To be called often.
    pub async fn carry(&self) {
        for name in self.open_names() {
            let Some(engine) = self.if_open(&name) else { continue };
            let waiting = engine.read(|view| view.outbound(&Caller::office(), RELAY_BATCH)).await;
            match waiting {
                Ok(waiting) => {
                    for outbound in waiting {
                        self.relay_one(&engine, outbound).await;
                    }
                }
                Err(error) => warn!(realm = %engine.realm(), %error, "outgoing mail cannot be read"),
            }
        }
    }

    async fn relay_one(&self, from: &Engine, outbound: Outbound) {
        let Outbound { peer, agent, message, due } = outbound;
        let failure = match due {
            false => None,
            // Mail for other servers is sent by the door that speaks their protocol.
            true if !self.has_realm(&peer) => return,
            true => match self.send_in(from.realm(), &peer, &agent, &message).await {
                Ok(()) => None,
                Err(EngineError::Refused(refusal)) if refusal != crate::Refusal::Busy => {
                    Some(refusal.to_string())
                }
                // A fault, or a full queue, may pass: the message waits.
                Err(error) => return debug!(%peer, %error, "a message waits"),
            },
        };
        let settled = Dispatched { peer, agent, message: message.id, failure };
        if let Err(error) = from.submit(&Caller::office(), settled).await {
            // It is relayed again and accepted once, because it has an idempotency key.
            debug!(realm = %from.realm(), %error, "a message that was relayed is not marked as dispatched");
        }
    }

    /// Sends a message in the other realm, as its sender, whose name there is `sender@realm`.
    async fn send_in(
        &self,
        from: &RealmName,
        to: &RealmName,
        agent: &AgentId,
        message: &Message,
    ) -> Result<(), EngineError> {
        let engine = self.realm(to).await?;
        ensure_peer(&engine, from).await?;
        let name = agent.as_str().rsplit_once('@').map_or(agent.as_str(), |(name, _)| name);
        let recipient = AgentId::new(name).map_err(crate::Refusal::from)?;
        let sender = AgentId::new(format!("{}@{from}", message.from)).map_err(crate::Refusal::from)?;
        let copy = SendMessage {
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
        engine.submit(&Caller::admin(sender, &message.via), copy).await.map(drop)
    }

    /// Registers another realm of this office as a peer of a realm, if it exists. From then on names that end in
    /// `@other` belong to the other realm.
    ///
    /// # Errors
    /// When the realm's database cannot be read or written.
    pub async fn introduce(&self, engine: &Engine, other: &RealmName) -> Result<(), EngineError> {
        if self.has_realm(other) { ensure_peer(engine, other).await } else { Ok(()) }
    }
}

/// Registers a realm as a peer of another, if it is not one already.
async fn ensure_peer(engine: &Engine, other: &RealmName) -> Result<(), EngineError> {
    let name = other.clone();
    if engine.read(move |view| view.peer(&Caller::office(), &name)).await?.is_some() {
        return Ok(());
    }
    let peer = PutPeer {
        name: other.clone(),
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

//! From a message of this door to the engine's letter, and to what the letter does besides being read.

use posthaste_engine::nouns::{
    Address, AgentId, Audience, Body, ConversationId, ConversationStatus, Json as Kept, MessageId, Millis,
    Priority, RealmName,
};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::reservations::{Renew, Reserve, Which};
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_wire::airc::{
    MAX_MESSAGE_BYTES, Payload, Reservation, ReservationStatus, Target, ThreadStatus,
};
use posthaste_wire::canonical::canonicalize_value;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::errors::{Answer, Trouble};

/// How long a nonce is remembered: longer than a timestamp is believed, before and after.
const NONCE_LASTS: Millis = 15 * 60_000;

/// A message that has been read and whose sender is known.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) target: Target,
    /// The agent that the target means, if it means one that the sender may know of.
    pub(super) recipient: Option<AgentId>,
    pub(super) id: Option<String>,
    pub(super) nonce: Option<String>,
    pub(super) thread_id: Option<String>,
    pub(super) body: Option<String>,
    pub(super) payload: Option<Payload>,
    pub(super) raw_payload: Option<Value>,
    /// The signed envelope, verbatim.
    pub(super) envelope: Option<String>,
    /// What an unsigned message said beyond the letter.
    pub(super) meta: Option<Value>,
}

impl Draft {
    /// The verb that sends it.
    pub(super) fn into_verb(self, now: Millis) -> Answer<SendSigned> {
        self.check()?;
        let address = self.address()?;
        let mut keys = Vec::new();
        if let Some(id) = &self.id {
            keys.push(SingleUseKey { label: format!("id:{id}"), until: None, digest: None });
        }
        if let Some(nonce) = &self.nonce {
            keys.push(SingleUseKey {
                label: format!("nonce:{nonce}"),
                until: Some(now + NONCE_LASTS),
                digest: None,
            });
        }
        keys.extend(self.named()?);
        let deed = self.deed()?;
        let letter = self.letter(address);
        Ok(SendSigned { message: letter, keys, side_effect: deed })
    }

    fn check(&self) -> Answer<()> {
        if self.body.is_none() && self.payload.is_none() {
            return Err(Trouble::new(400, "invalid_envelope", "a message needs a body or a payload"));
        }
        // What came in a text that is short enough need not be measured.
        if self.envelope.as_ref().is_some_and(|text| text.len() <= MAX_MESSAGE_BYTES) {
            return Ok(());
        }
        let sizes = [
            self.body.as_ref().map_or(0, String::len),
            self.raw_payload.as_ref().map_or(0, |payload| payload.to_string().len()),
        ];
        if sizes.iter().any(|size| *size > MAX_MESSAGE_BYTES) {
            let why = format!("body and payload have at most {MAX_MESSAGE_BYTES} bytes each");
            return Err(Trouble::new(413, "payload_too_large", why));
        }
        Ok(())
    }

    fn address(&self) -> Answer<Address> {
        match (&self.target, &self.recipient) {
            (Target::Contacts, _) => Ok(Address::Contacts),
            (Target::Public, _) => Ok(Address::Public),
            (Target::Unsupported(target), _) => {
                Err(Trouble::new(400, "unsupported_target", format!("{target} is not supported")))
            }
            (Target::One(_), Some(recipient)) => Ok(Address::Agent(recipient.clone())),
            (Target::One(name), None) => match name.rsplit_once('@') {
                Some((agent, realm)) if !agent.is_empty() => {
                    let realm = RealmName::new(realm).map_err(|_| Trouble::nobody(name))?;
                    Ok(Address::Remote { agent: agent.to_owned(), realm })
                }
                _ => Err(Trouble::nobody(name)),
            },
        }
    }

    /// Names inside the payload that stand for one thing of the sender's for ever.
    fn named(&self) -> Answer<Option<SingleUseKey>> {
        let label = match &self.payload {
            Some(Payload::Mailbox(mail)) => format!("mail:{}", mail.id),
            Some(Payload::Reservation(held)) if held.status == ReservationStatus::Active => {
                format!("rsv:{}", held.id)
            }
            _ => return Ok(None),
        };
        if label.len() > 512 {
            return Err(Trouble::new(400, "invalid_payload", "an id has at most 500 bytes"));
        }
        let payload = self.raw_payload.as_ref().unwrap_or(&Value::Null);
        let canonical = canonicalize_value(payload)
            .map_err(|error| Trouble::new(400, "invalid_payload", error.to_string()))?;
        let digest = Some(Sha256::digest(canonical).to_vec());
        Ok(Some(SingleUseKey { label, until: None, digest }))
    }

    fn deed(&self) -> Answer<Option<SideEffect>> {
        Ok(match &self.payload {
            Some(Payload::Reservation(held)) => Some(self.lease(held)?),
            Some(Payload::Ack(ack)) => Some(SideEffect::Acknowledge {
                label: format!("mail:{}", ack.id),
                message: ack.id.parse().ok().map(MessageId),
                response: ack.response.clone(),
            }),
            Some(Payload::Thread(thread)) => {
                ConversationId::new(&thread.id).ok().map(|conversation| SideEffect::Entitle {
                    conversation,
                    subject: thread.subject.clone(),
                    ended: match thread.status {
                        ThreadStatus::Open => None,
                        ThreadStatus::Closed => Some(ConversationStatus::Completed),
                        ThreadStatus::Archived => Some(ConversationStatus::Archived),
                    },
                })
            }
            _ => None,
        })
    }

    fn lease(&self, held: &Reservation) -> Answer<SideEffect> {
        let which = || Which::Key(held.id.clone());
        let missing = |field: &str| Trouble::new(400, "invalid_payload", format!("{field}: is missing"));
        match held.status {
            ReservationStatus::Renewed => {
                let expires_at = held.expires.ok_or_else(|| missing("expires_ts"))?;
                return Ok(SideEffect::Renew(Renew { which: which(), expires_at }));
            }
            ReservationStatus::Released => return Ok(SideEffect::Release(which())),
            ReservationStatus::Expired => return Ok(SideEffect::Lapse(which())),
            ReservationStatus::Active => {}
        }
        let scope = held.scope.as_ref().ok_or_else(|| missing("scope"))?;
        if scope.is_local() && self.target.is_broadcast() {
            let why = "scope: a local reservation means nothing to everyone; name a repository or a project";
            return Err(Trouble::new(400, "invalid_payload", why).with("field", json!("scope")));
        }
        Ok(SideEffect::Reserve(Reserve {
            key: Some(held.id.clone()),
            scope: scope.normal(),
            paths: held.paths.clone(),
            exclusive: held.exclusive,
            reason: held.reason.clone(),
            issued_at: held.issued,
            expires_at: held.expires.ok_or_else(|| missing("expires_ts"))?,
            audience: match self.target {
                Target::Public => Audience::Observers,
                _ => Audience::Parties,
            },
            meta: Some(Kept::from_value(&json!({ "scope": scope.as_str(), "thread_id": held.thread_id }))),
        }))
    }

    fn letter(self, address: Address) -> SendMessage {
        let (subject, body) = self.said();
        let thread = self.thread_id.as_deref().or_else(|| self.payload.as_ref().and_then(Payload::thread_id));
        // Any text may name a thread; what cannot name a conversation stays in the envelope alone.
        let within =
            thread.and_then(|thread| ConversationId::new(thread).ok()).map(|conversation| ConversationRef {
                conversation,
                thread: None,
                reply_to: None,
                visibility: None,
                join: JoinMode::PartiesOnly { kind: "thread".to_owned() },
            });
        let mail = match &self.payload {
            Some(Payload::Mailbox(mail)) => Some(mail),
            _ => None,
        };
        let priority = match mail.map(|mail| mail.priority.as_str()) {
            Some("urgent") => Priority::URGENT,
            Some("high") => Priority::HIGH,
            Some("low") => Priority::LOW,
            _ => Priority::NORMAL,
        };
        let correlation = match &self.payload {
            Some(Payload::Mailbox(mail)) => Some(mail.id.clone()),
            Some(Payload::Ack(ack)) => Some(ack.id.clone()),
            Some(Payload::Reservation(held)) => Some(held.id.clone()),
            Some(Payload::Conflict(conflict)) => Some(conflict.id.clone()),
            _ => None,
        };
        SendMessage {
            kind: self.payload.as_ref().map_or(String::new(), |payload| payload.kind().to_owned()),
            subject,
            body,
            priority,
            ack_required: mail.is_some_and(|mail| mail.ack_required),
            expires_at: mail.and_then(|mail| mail.expires),
            correlation,
            within,
            envelope: self.envelope,
            meta: self.meta.as_ref().map(Kept::from_value),
            allow_no_recipients: self.target.is_broadcast(),
            ..SendMessage::text(vec![address], String::new())
        }
    }

    /// Heading and text as the other doors show them.
    fn said(&self) -> (Option<String>, Body) {
        let raw = || Body::Json(Kept::from_value(self.raw_payload.as_ref().unwrap_or(&Value::Null)));
        let member = |name: &str| self.raw_payload.as_ref().and_then(|payload| payload[name].as_str());
        match &self.payload {
            Some(Payload::Mailbox(mail)) => (Some(mail.subject.clone()), Body::Text(mail.body.clone())),
            Some(Payload::Thread(thread)) => (Some(thread.subject.clone()), raw()),
            Some(Payload::Ack(_) | Payload::Reservation(_) | Payload::Conflict(_)) => (None, raw()),
            Some(Payload::Other(kind)) => {
                let text = match &self.body {
                    Some(body) => Some(body.as_str()),
                    None if kind == "text" => member("content").or_else(|| member("text")),
                    None => None,
                };
                (None, text.map_or_else(raw, |text| Body::Text(text.to_owned())))
            }
            None => (None, Body::Text(self.body.clone().unwrap_or_default())),
        }
    }
}

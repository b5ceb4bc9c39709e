//! From a message of this door to the engine's message, and to its side effect.

use posthaste_engine::nouns::{
    Address, AgentId, Audience, Body, ConversationId, ConversationStatus, Json, MessageId, Millis, Priority,
    RealmName,
};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::reservations::{Renew, Reserve, Which};
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_wire::airc::{
    MAX_MESSAGE_BYTES, Payload, Reservation, ReservationStatus, Target, ThreadStatus, UnsignedMembers,
};
use posthaste_wire::canonical::canonicalize_value;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::errors::{Answer, DoorError};
use super::to_wire::UnsignedMeta;

/// How long a nonce is kept: longer than the clock window before and after a timestamp.
const NONCE_KEPT_FOR: Millis = 15 * 60_000;

/// A parsed message whose sender is known.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) target: Target,
    /// The agent that the target names, if the sender may see it.
    pub(super) recipient: Option<AgentId>,
    pub(super) id: Option<String>,
    pub(super) nonce: Option<String>,
    pub(super) thread_id: Option<String>,
    pub(super) body: Option<String>,
    pub(super) payload: Option<Payload>,
    pub(super) raw_payload: Option<Value>,
    /// The signed envelope, verbatim.
    pub(super) envelope: Option<String>,
    /// What an unsigned message said beyond its text.
    pub(super) meta: Option<UnsignedMembers>,
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
                until: Some(now + NONCE_KEPT_FOR),
                digest: None,
            });
        }
        keys.extend(self.payload_key()?);
        let side_effect = self.side_effect()?;
        let message = self.message(address);
        Ok(SendSigned { message, keys, side_effect })
    }

    fn check(&self) -> Answer<()> {
        if self.body.is_none() && self.payload.is_none() {
            return Err(DoorError::new(400, "invalid_envelope", "a message needs a body or a payload"));
        }
        // The parts of an envelope that is short enough need not be measured.
        if self.envelope.as_ref().is_some_and(|text| text.len() <= MAX_MESSAGE_BYTES) {
            return Ok(());
        }
        let sizes = [
            self.body.as_ref().map_or(0, String::len),
            self.raw_payload.as_ref().map_or(0, |payload| payload.to_string().len()),
        ];
        if sizes.iter().any(|size| *size > MAX_MESSAGE_BYTES) {
            let why = format!("body and payload have at most {MAX_MESSAGE_BYTES} bytes each");
            return Err(DoorError::new(413, "payload_too_large", why));
        }
        Ok(())
    }

    fn address(&self) -> Answer<Address> {
        match (&self.target, &self.recipient) {
            (Target::Contacts, _) => Ok(Address::Contacts),
            (Target::Public, _) => Ok(Address::Public),
            (Target::Unsupported(target), _) => {
                Err(DoorError::new(400, "unsupported_target", format!("{target} is not supported")))
            }
            (Target::One(_), Some(recipient)) => Ok(Address::Agent(recipient.clone())),
            (Target::One(name), None) => match name.rsplit_once('@') {
                Some((agent, realm)) if !agent.is_empty() => {
                    let realm = RealmName::new(realm).map_err(|_| DoorError::no_identity(name))?;
                    Ok(Address::Remote { agent: agent.to_owned(), realm })
                }
                _ => Err(DoorError::no_identity(name)),
            },
        }
    }

    /// The single-use key of the payload's own id, if it has one.
    fn payload_key(&self) -> Answer<Option<SingleUseKey>> {
        let label = match &self.payload {
            Some(Payload::Mailbox(mail)) => format!("mail:{}", mail.id),
            Some(Payload::Reservation(held)) if held.status == ReservationStatus::Active => {
                format!("rsv:{}", held.id)
            }
            _ => return Ok(None),
        };
        if label.len() > 512 {
            return Err(DoorError::new(400, "invalid_payload", "an id has at most 500 bytes"));
        }
        let payload = self.raw_payload.as_ref().unwrap_or(&Value::Null);
        let canonical = canonicalize_value(payload)
            .map_err(|error| DoorError::new(400, "invalid_payload", error.to_string()))?;
        let digest = Some(Sha256::digest(canonical).to_vec());
        Ok(Some(SingleUseKey { label, until: None, digest }))
    }

    fn side_effect(&self) -> Answer<Option<SideEffect>> {
        Ok(match &self.payload {
            Some(Payload::Reservation(held)) => Some(self.reservation(held)?),
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

    fn reservation(&self, held: &Reservation) -> Answer<SideEffect> {
        let which = || Which::Key(held.id.clone());
        let missing = |field: &str| DoorError::new(400, "invalid_payload", format!("{field}: is missing"));
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
            return Err(DoorError::new(400, "invalid_payload", why).with_field("scope"));
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
            meta: Some(stored(&ReservationMeta {
                scope: Some(scope.as_str().to_owned()),
                thread_id: held.thread_id.clone(),
            })),
        }))
    }

    fn message(self, address: Address) -> SendMessage {
        let (subject, body) = self.subject_and_body();
        let thread = self.thread_id.as_deref().or_else(|| self.payload.as_ref().and_then(Payload::thread_id));
        // Any text may name a thread; one that is not a valid conversation id stays in the envelope only.
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
            meta: self.meta.map(|airc| stored(&UnsignedMeta { airc })),
            allow_no_recipients: self.target.is_broadcast(),
            ..SendMessage::text(vec![address], String::new())
        }
    }

    /// Subject and text as the other doors show them.
    fn subject_and_body(&self) -> (Option<String>, Body) {
        let raw = || Body::Json(Json::from_value(self.raw_payload.as_ref().unwrap_or(&Value::Null)));
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

/// What a reservation's owner wrote, as it is kept in the reservation's metadata.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReservationMeta {
    #[serde(default)]
    pub(super) scope: Option<String>,
    #[serde(default)]
    thread_id: Option<String>,
}

/// A value as the database keeps it.
fn stored(value: &impl Serialize) -> Json {
    Json::from_checked(&serde_json::to_string(value).unwrap_or_default())
}

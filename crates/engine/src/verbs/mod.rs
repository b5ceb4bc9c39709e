//! Verbs: everything a caller can ask to change. Each is a plain struct with one `apply`; the list below is the whole
//! of the engine's write side, and adding to it makes the compiler name every place to touch.

pub mod agents;
pub mod claims;
pub mod contacts;
mod context;
pub mod conversations;
pub mod deliveries;
pub mod keys;
pub mod mail;
pub mod office;
pub mod peers;
mod recipients;
pub mod reservations;
pub mod runs;
pub mod scopes;
pub mod seen_keys;
pub mod signed;
pub mod tasks;
pub mod tokens;
pub mod turns;

pub(crate) use context::{BatchState, Decide, Decided, Stop, Write};

use serde::{Deserialize, Serialize};

use crate::nouns::{
    Agent, Contact, Conversation, Delivery, Participant, Peer, Reservation, Reserved, Scope, Task, Thread,
    Token, Turn,
};

/// A verb together with what it answers.
pub trait Verb: Sized {
    /// What the verb answers when it is carried out.
    type Outcome;
    /// The verb as one of the closed list.
    fn into_command(self) -> Command;
    /// Its answer, out of the closed list of answers.
    fn from_outcome(outcome: Outcome) -> Option<Self::Outcome>;
}

macro_rules! verbs {
    ($($room:ident :: $name:ident = $word:literal => $outcome:ty;)+) => {
        /// Everything that can be asked of a realm. Serialisable, because commands are what a replicated log carries.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "verb", content = "with")]
        pub enum Command {
            $(#[doc = concat!("See [`", stringify!($room), "::", stringify!($name), "`].")]
              #[serde(rename = $word)] $name(Box<$room::$name>),)+
        }

        /// The answers, one for each verb.
        #[derive(Debug)]
        pub enum Outcome {
            $(#[doc = concat!("Of [`", stringify!($room), "::", stringify!($name), "`].")] $name(Box<$outcome>),)+
        }

        impl Command {
            /// Every verb's word.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The verb's word, the same in metrics, logs and records.
            #[must_use]
            pub fn word(&self) -> &'static str {
                match self { $(Self::$name(_) => $word),+ }
            }

            /// Decides, then writes. Deterministic: sees only the command and the database.
            pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Outcome> {
                match self {
                    $(Self::$name(verb) => {
                        let write = verb.decide(to)?;
                        Ok(Outcome::$name(Box::new(write(to)?)))
                    })+
                }
            }
        }

        $(impl Verb for $room::$name {
            type Outcome = $outcome;
            fn into_command(self) -> Command { Command::$name(Box::new(self)) }
            fn from_outcome(outcome: Outcome) -> Option<$outcome> {
                match outcome { Outcome::$name(inner) => Some(*inner), _ => None }
            }
        })+
    };
}

verbs! {
    agents::Register = "register" => agents::Registered;
    agents::Update = "update" => Agent;
    agents::SetState = "set_state" => Agent;
    agents::Orphan = "orphan" => Agent;
    agents::Unregister = "unregister" => Agent;
    keys::ChangeKeys = "change_keys" => Agent;
    mail::SendMessage = "send" => mail::SendReceipt;
    mail::RecordDelivered = "record_delivered" => mail::SendReceipt;
    signed::SendSigned = "send_sealed" => signed::SignedReceipt;
    deliveries::MarkDelivered = "mark_delivered" => usize;
    deliveries::MarkRead = "mark_read" => Delivery;
    deliveries::Acknowledge = "acknowledge" => Delivery;
    deliveries::Discard = "discard" => Delivery;
    deliveries::MarkFailed = "mark_failed" => Delivery;
    deliveries::Dispatched = "dispatched" => ();
    conversations::Create = "create_conversation" => conversations::Created;
    conversations::Close = "close_conversation" => Conversation;
    conversations::Reopen = "reopen_conversation" => Conversation;
    conversations::Join = "join_conversation" => conversations::Joined;
    conversations::Leave = "leave_conversation" => Participant;
    conversations::Invite = "invite" => Participant;
    conversations::Remove = "remove_participant" => Participant;
    turns::Say = "say" => Turn;
    turns::OpenThread = "open_thread" => Thread;
    turns::KeepSummary = "keep_summary" => ();
    scopes::CreateScope = "create_scope" => Scope;
    scopes::JoinScope = "join_scope" => Scope;
    scopes::LeaveScope = "leave_scope" => Scope;
    scopes::DeleteScope = "delete_scope" => Scope;
    tasks::CreateTask = "create_task" => Task;
    tasks::UpdateTask = "update_task" => Task;
    tasks::AddContributor = "add_contributor" => Task;
    runs::Advance = "advance_run" => runs::Advanced;
    reservations::Reserve = "reserve" => Reserved;
    reservations::Renew = "renew" => Reserved;
    reservations::ReserveEach = "reserve_each" => reservations::ReservedEach;
    reservations::Release = "release" => Vec<Reservation>;
    contacts::Ask = "ask_contact" => Contact;
    contacts::Answer = "answer_contact" => Contact;
    contacts::EndContact = "end_contact" => ();
    tokens::CreateToken = "create_token" => Token;
    tokens::RevokeToken = "revoke_token" => Token;
    tokens::RenewToken = "renew_token" => Token;
    peers::PutPeer = "put_peer" => Peer;
    peers::RemovePeer = "remove_peer" => ();
    office::Announce = "announce" => crate::nouns::Seq;
    office::SetRules = "set_rules" => crate::limits::Rules;
    claims::Claim = "claim" => claims::Claimed;
    claims::MoveClaim = "move_claim" => claims::Moved;
    claims::ReleaseClaim = "release_claim" => Option<claims::Claimed>;
    office::Sweep = "sweep" => office::Swept;
}

/// A command that names more agents than these may take long.
const FEW_NAMES: usize = 64;
/// One that compares more paths than these with those in force may, too.
const FEW_PATHS: usize = 8;

impl Command {
    /// Whether it sends a message that no recipient has yet.
    pub(crate) fn sends(&self) -> bool {
        matches!(self, Self::SendMessage(_) | Self::SendSigned(_))
    }

    /// Whether it reads messages, deliveries or turns, or writes such rows and reads them again. If so, rows that earlier
    /// commands of the batch buffered are written first, and its own are not buffered.
    pub(crate) fn reads_messages(&self) -> bool {
        match self {
            Self::SendMessage(send) => !send.stands_alone(),
            Self::RecordDelivered(_) => false,
            Self::Say(say) => !say.is_plain(),
            _ => true,
        }
    }

    /// Whether it may take long: it is addressed to groups, or names many agents.
    pub(crate) fn is_broad(&self) -> bool {
        match self {
            Self::SendMessage(_) | Self::SendSigned(_) | Self::RecordDelivered(_) => {
                self.message().is_some_and(mail::SendMessage::is_broad)
            }
            Self::Create(create) => create.participants.len() > FEW_NAMES,
            Self::CreateTask(create) => create.participants.len() > FEW_NAMES,
            Self::Reserve(reserve) => reserve.paths.len() > FEW_PATHS,
            Self::ReserveEach(reserve) => reserve.paths.len() > FEW_PATHS,
            Self::DeleteScope(_) | Self::Unregister(_) => true,
            _ => false,
        }
    }

    /// The message that it sends or records.
    pub(crate) fn message(&self) -> Option<&mail::SendMessage> {
        match self {
            Self::SendMessage(send) => Some(send),
            Self::SendSigned(signed) => Some(&signed.message),
            Self::RecordDelivered(record) => Some(record.message()),
            _ => None,
        }
    }
}

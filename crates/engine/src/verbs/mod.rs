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

macro_rules! carry_out {
    (apply $verb:ident $to:ident) => {
        $verb.apply($to)
    };
    (decide $verb:ident $to:ident) => {
        match $verb.decide($to) {
            Ok(write) => write($to).map_err(Stop::from),
            Err(stop) => Err(stop),
        }
    };
}

macro_rules! verbs {
    ($($how:ident $room:ident :: $name:ident = $word:literal => $outcome:ty;)+) => {
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
                match self { $(Self::$name(verb) => carry_out!($how verb to).map(|outcome| Outcome::$name(Box::new(outcome)))),+ }
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
    decide agents::Register = "register" => agents::Registered;
    decide agents::Update = "update" => Agent;
    decide agents::SetState = "set_state" => Agent;
    decide agents::Orphan = "orphan" => Agent;
    decide agents::Unregister = "unregister" => Agent;
    decide keys::ChangeKeys = "change_keys" => Agent;
    decide mail::SendMessage = "send" => mail::SendReceipt;
    decide mail::RecordDelivered = "record_delivered" => mail::SendReceipt;
    decide signed::SendSigned = "send_sealed" => signed::SignedReceipt;
    decide deliveries::MarkDelivered = "mark_delivered" => usize;
    decide deliveries::MarkRead = "mark_read" => Delivery;
    decide deliveries::Acknowledge = "acknowledge" => Delivery;
    decide deliveries::Discard = "discard" => Delivery;
    decide deliveries::MarkFailed = "mark_failed" => Delivery;
    decide deliveries::Dispatched = "dispatched" => ();
    decide conversations::Create = "create_conversation" => conversations::Created;
    decide conversations::Close = "close_conversation" => Conversation;
    decide conversations::Reopen = "reopen_conversation" => Conversation;
    decide conversations::Join = "join_conversation" => conversations::Joined;
    decide conversations::Leave = "leave_conversation" => Participant;
    decide conversations::Invite = "invite" => Participant;
    decide conversations::Remove = "remove_participant" => Participant;
    decide turns::Say = "say" => Turn;
    decide turns::OpenThread = "open_thread" => Thread;
    decide turns::KeepSummary = "keep_summary" => ();
    decide scopes::CreateScope = "create_scope" => Scope;
    decide scopes::JoinScope = "join_scope" => Scope;
    decide scopes::LeaveScope = "leave_scope" => Scope;
    decide scopes::DeleteScope = "delete_scope" => Scope;
    decide tasks::CreateTask = "create_task" => Task;
    decide tasks::UpdateTask = "update_task" => Task;
    decide tasks::AddContributor = "add_contributor" => Task;
    decide runs::Advance = "advance_run" => runs::Advanced;
    decide reservations::Reserve = "reserve" => Reserved;
    decide reservations::Renew = "renew" => Reserved;
    decide reservations::ReserveEach = "reserve_each" => reservations::ReservedEach;
    decide reservations::Release = "release" => Vec<Reservation>;
    decide contacts::Ask = "ask_contact" => Contact;
    decide contacts::Answer = "answer_contact" => Contact;
    decide contacts::EndContact = "end_contact" => ();
    decide tokens::CreateToken = "create_token" => Token;
    decide tokens::RevokeToken = "revoke_token" => Token;
    decide tokens::RenewToken = "renew_token" => Token;
    decide peers::PutPeer = "put_peer" => Peer;
    decide peers::RemovePeer = "remove_peer" => ();
    decide office::Announce = "announce" => crate::nouns::Seq;
    decide office::SetRules = "set_rules" => crate::limits::Rules;
    decide claims::Claim = "claim" => claims::Claimed;
    decide claims::MoveClaim = "move_claim" => claims::Moved;
    decide claims::ReleaseClaim = "release_claim" => Option<claims::Claimed>;
    decide office::Sweep = "sweep" => office::Swept;
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

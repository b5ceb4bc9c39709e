//! Plain data. A noun knows its own shape and nothing of the database, doors or the clock.

mod acl;
mod address;
mod agent;
mod caller;
mod coded;
mod contact;
mod conversation;
mod event;
mod ids;
mod json;
mod message;
mod peer;
mod reservation;
mod run;
mod scope;
mod task;
mod token;

pub use acl::{AgentSet, Bounds, ScopeSet};
pub use address::Address;
pub use agent::{Agent, AgentKind, ContactPolicy, Privacy, Visibility};
pub use caller::{Caller, Rights};
pub use contact::{Contact, ContactState};
pub use conversation::{
    ContentType, Conversation, ConversationStatus, HistoryAccess, Participant, Permissions, PermissionsPatch,
    Standing, Summary, Thread, Turn, TurnSource, TurnVisibility,
};
pub use event::{Event, Fact, Reached, Sight};
pub use ids::{
    AgentId, ConversationId, IdError, MessageId, Millis, RealmName, ScopeId, Seq, TaskId, ThreadId, TurnId,
};
pub use json::{Json, JsonError};
pub use message::{Audience, Body, Delivery, DeliveryState, Message, Priority, RecipientKind};
pub use peer::{Peer, PeerKind};
pub use reservation::{Conflict, Reservation, ReservationStatus, Reserved};
pub use run::{Run, RunNote, RunPhase, Taken};
pub use scope::{JoinPolicy, MessagesSeenBy, Scope, ScopeVisibility, SendPolicy};
pub use task::{Task, TaskStatus};
pub use token::{Token, TokenRole};

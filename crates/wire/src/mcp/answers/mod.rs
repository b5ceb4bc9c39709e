//! What the mail tools and resources answer. Members are named and ordered as on the wire; a member that is `null` rather than
//! absent is a plain `Option`. Moments are texts with microseconds and an offset.

#![allow(missing_docs, reason = "the members' names say what they hold, and they are the wire's")]

mod agents;
mod contacts;
mod conversations;
mod mail;
mod overview;
mod reservations;
mod tasks;

pub use agents::{
    AgentList, DeregisteredAgent, GuardInstallation, GuardRemoval, Health, HealthLimits, IdentityAnswer,
    ListedAgent, PlacedProject, Profile, Project, ProjectAgents, RegisteredAgent, ResourceAgent, WhoisAnswer,
};
pub use contacts::{ContactAnswer, ContactPolicyAnswer, ContactRequest, ContactRow, Handshake};
pub use conversations::{ConversationRow, TurnList, TurnRow};
pub use mail::{
    AcknowledgedMessage, Acknowledgement, Delivery, ExampleMessage, InboxMessage, Mailbox, MailboxMessage,
    Mention, Message, PreparedThread, ReadMessage, Reply, SearchHit, SendReceipt, SentMessage, Session,
    SummaryAggregate, ThreadAnswer, ThreadMessages, ThreadSummaries, ThreadSummary, TrackedMessage, Waited,
};
pub use overview::{
    Capabilities, Environment, EnvironmentLimits, Liveness, Locks, LocksSummary, Metrics, RecentEvent,
    RecentEvents, ToolDirectory, ToolRow, ToolSchemas,
};
pub use reservations::{
    Conflicts, ConflictsByPath, ForcedRelease, GrantedReservation, Holder, Released, RenewedReservation,
    RenewedReservations, ReservationCycle, ReservationRow, Reserved,
};
pub use tasks::{IgnoredBroadcast, OpenedTask, TaskDuplicate, TaskEnded, TaskMessage};

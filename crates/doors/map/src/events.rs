//! The engine's events as MAP's events, in both dialects. What is the same for many subscribers is rendered once.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use posthaste_engine::nouns::{
    AgentId, AgentKind, Audience, Caller, ConversationId, DeliveryState, Event, Fact, Json, Message, Reached,
    RecipientKind, Turn,
};
use posthaste_engine::stamp;
use posthaste_engine::views::{View, Viewed};
use posthaste_wire::map::event::{
    self as wire, AgentEntry, AgentOrphaned, AgentPermissions, AgentRegistered, AgentState, AgentStub,
    AgentUnregistered, AgentUpdated, ConversationClosed, ConversationCreated, ConversationReopened,
    DraftMembers, EventData, EventParams, MessageData, OutcomeError, ParticipantJoined, ParticipantLeft,
    ReplayedEvent, ScopeCreated, ScopeDeleted, ScopeMember, SummaryGenerated, TaskAssigned, TaskCompleted,
    TaskCreated, TaskStatus, ThreadCreated, TurnData,
};
use posthaste_wire::map::message::Receipt;
use posthaste_wire::map::{EventId, EventName, codes};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::nouns::{self, OWN};
use super::session::POLICY;
use super::to_wire;
use super::{MAX_RECEIPTS, overrides};

/// How MAP names an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// An event type of MAP.
    As(EventName),
    /// An extension, sent only to subscribers that name it.
    Extension(String),
    /// Not sent at all: internal to this door.
    Hidden,
}

/// How events are rendered for a subscriber.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) draft: bool,
    /// Tag of the event log, part of event ids.
    pub(super) log_tag: u16,
    /// Whether messages include their payload.
    pub(super) payloads: bool,
    /// Whether the subscriber may observe; others do not learn the states of deliveries.
    pub(super) observes: bool,
}

pub(super) fn seen(event: &Event) -> Seen {
    let participant =
        |sort: &AgentKind| matches!(sort, AgentKind::Client | AgentKind::Gateway | AgentKind::System);
    Seen::As(match &event.fact {
        // Participants have events of their own; their entries in the directory are internal to this door.
        Fact::AgentRegistered { sort, .. } | Fact::AgentUnregistered { sort, .. } if participant(sort) => {
            return Seen::Hidden;
        }
        Fact::AgentRegistered { .. } => EventName::AgentRegistered,
        Fact::AgentUnregistered { .. } => EventName::AgentUnregistered,
        Fact::AgentState { .. } => EventName::AgentState,
        Fact::AgentOrphaned { .. } => EventName::AgentOrphaned,
        Fact::AgentUpdated { changes, .. } => update_name(changes),
        Fact::MessageSent => EventName::MessageSent,
        Fact::MessageDelivered { .. } => EventName::MessageDelivered,
        Fact::MessageAcked { .. } => EventName::MessageAcked,
        Fact::MessageExpired { .. } => EventName::MessageExpired,
        Fact::MessageFailed { .. } => EventName::MessageFailed,
        Fact::ConversationCreated { .. } => EventName::MailCreated,
        Fact::ConversationClosed { .. } => EventName::MailClosed,
        Fact::ConversationReopened { .. } => EventName::MailReopened,
        Fact::ParticipantJoined { .. } => EventName::MailJoined,
        Fact::ParticipantLeft { .. } => EventName::MailLeft,
        Fact::TurnAdded { .. } => EventName::MailTurn,
        Fact::ThreadCreated { .. } => EventName::MailThread,
        Fact::SummaryGenerated { .. } => EventName::MailSummary,
        Fact::ScopeCreated { .. } => EventName::ScopeCreated,
        Fact::ScopeDeleted { .. } => EventName::ScopeDeleted,
        Fact::ScopeJoined { .. } => EventName::ScopeJoined,
        Fact::ScopeLeft { .. } => EventName::ScopeLeft,
        Fact::TaskCreated { .. } => EventName::TaskCreated,
        Fact::TaskAssigned { .. } => EventName::TaskAssigned,
        Fact::TaskStatusChanged { .. } => EventName::TaskStatus,
        Fact::TaskCompleted { .. } => EventName::TaskCompleted,
        Fact::Announced { word, .. } => match EventName::parse(word) {
            Some(name) => name,
            None => return Seen::Extension(format!("x-posthaste.{word}")),
        },
        Fact::MessageRead { .. }
        | Fact::ReservationMade { .. }
        | Fact::ReservationRenewed { .. }
        | Fact::ReservationReleased { .. }
        | Fact::ReservationExpired { .. }
        | Fact::ReservationConflict { .. }
        | Fact::ContactChanged { .. }
        | Fact::TokenCreated { .. }
        | Fact::TokenRevoked { .. }
        | Fact::PeerChanged { .. }
        | Fact::PeerRemoved { .. }
        | Fact::RulesChanged => return Seen::Extension(format!("x-posthaste.{}", event.fact.kind())),
    })
}

/// The event type of a change depends on what changed.
fn update_name(changes: &Json) -> EventName {
    let text = changes.as_str();
    if text.contains("\"bounds\"") && changes.value().get("bounds").is_some() {
        return EventName::AgentPermissions;
    }
    let environment = || changes.value().pointer("/meta/map:environment").is_some();
    if text.contains("map:environment") && environment() {
        return EventName::AgentEnvironment;
    }
    EventName::AgentUpdated
}

/// The id of an event.
pub(super) fn id(event: &Event, log_tag: u16) -> EventId {
    EventId { at: event.at, log_tag, seq: event.seq }
}

/// What the form of an event tells beyond the event itself.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// When the causing event happened.
    pub(super) cause_at: Option<i64>,
    /// The states of a message's deliveries, as far as the subscriber may know them.
    pub(super) receipts: Option<Vec<Reached>>,
}

impl Known {
    /// Whether the database has to be queried.
    pub(super) fn is_wanted(event: &Event, form: Form) -> bool {
        let cause = event.cause.is_some() && event.message.is_none();
        cause || (form.draft && event.fact == Fact::MessageSent && event.reached.is_none())
    }

    /// Queries the database.
    pub(super) fn read(view: &View<'_>, callers: &[Caller], event: &Event, form: Form) -> Viewed<Self> {
        let mut known = Self::default();
        match (&event.message, event.cause) {
            (None, Some(cause)) => known.cause_at = view.time_of(cause)?,
            (Some(message), _) if Self::is_wanted(event, form) => {
                // A subscriber that no longer sees the message sees no recipients either.
                let found = callers.iter().find_map(|caller| view.message_at(caller, message.seq).ok());
                let deliveries = found.map_or(Vec::new(), |found| found.deliveries);
                let open = deliveries.into_iter().filter(|delivery| delivery.copy != RecipientKind::Bcc);
                known.receipts = Some(open.map(|delivery| (delivery.agent, delivery.state)).collect());
            }
            _ => {}
        }
        Ok(known)
    }
}

/// An event as one form and spelling write it, without what depends on the subscription.
#[derive(Debug)]
pub(super) struct Rendered {
    event_id: String,
    timestamp: i64,
    cause: Option<String>,
    event: Box<RawValue>,
}

impl Rendered {
    /// The params of `map/event`.
    pub(super) fn params<'a>(&'a self, subscription: &'a str, number: u64) -> EventParams<'a, &'a RawValue> {
        EventParams {
            subscription_id: subscription.into(),
            sequence_number: number,
            sequence: number,
            event_id: self.event_id.as_str().into(),
            timestamp: self.timestamp,
            caused_by: self.cause.as_deref().map(|cause| [cause.into()]),
            event: &self.event,
        }
    }

    /// An event in the result of `map/replay`.
    pub(super) fn into_replayed(self) -> ReplayedEvent<'static> {
        ReplayedEvent {
            event_id: self.event_id.into(),
            timestamp: self.timestamp,
            caused_by: self.cause.map(|cause| [cause.into()]),
            event: self.event,
        }
    }
}

/// What differs between subscribers of one form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wording<'a> {
    /// The event type, if the subscriber's filter spells it in another way than its form.
    pub(super) kind: Option<&'a str>,
    /// Whether to leave out the correlation id. `client.request()` takes the first delivery with its correlation id for the
    /// answer, so the delivery of the question itself must not carry it.
    pub(super) without_correlation: bool,
}

/// Whether an event is the delivery of a question.
pub(super) fn is_delivered_question(event: &Event) -> bool {
    matches!(event.fact, Fact::MessageDelivered { .. })
        && event.message.as_deref().is_some_and(to_wire::is_question)
}

/// Renders an event for subscribers. What is the same for all of one form is rendered once per thread.
pub(super) fn render_shared(
    event: &Arc<Event>,
    form: Form,
    known: &Known,
    wording: Wording<'_>,
) -> Arc<Rendered> {
    // Receipts depend on what the subscriber may see.
    let receipts = form.draft && event.fact == Fact::MessageSent && !form.observes;
    let is_shared = form.payloads
        && known.receipts.is_none()
        && !receipts
        && wording.kind.is_none()
        && !wording.without_correlation;
    let make = || render(event, form, known, wording);
    if is_shared { cache::get_or_render(event, form.draft, make) } else { Arc::new(make()) }
}

pub(super) fn render(event: &Event, form: Form, known: &Known, wording: Wording<'_>) -> Rendered {
    let event_id = id(event, form.log_tag).ulid();
    let cause = event.cause.and_then(|seq| {
        let at = known.cause_at.or_else(|| event.message.as_ref().map(|message| message.at))?;
        Some(EventId { at, log_tag: form.log_tag, seq }.ulid())
    });
    let kind = match (wording.kind, seen(event)) {
        (Some(kind), _) => Cow::Borrowed(kind),
        (None, Seen::As(name)) => Cow::Borrowed(if form.draft { name.draft() } else { name.sdk() }),
        (None, Seen::Extension(name)) => Cow::Owned(name),
        (None, Seen::Hidden) => Cow::Borrowed("x-posthaste.hidden"),
    };
    let data = data(event, form.payloads, !wording.without_correlation);
    let semantic;
    let members = match (form.draft, &event.message) {
        (false, _) => None,
        (true, Some(message)) if event.fact == Fact::MessageSent => {
            semantic = to_wire::semantic(message);
            let envelope = to_wire::message(message, form.payloads);
            Some(DraftMembers::Sent { envelope, receipts: receipts(message, event, form, known, &semantic) })
        }
        (true, _) => draft_members(event, &data),
    };
    let rendered = wire::Event {
        id: event_id.as_str().into(),
        kind,
        timestamp: event.at,
        source: event.source().as_str().into(),
        members,
        data,
        caused_by: cause.as_deref().map(|cause| [cause.into()]),
    };
    let rendered = to_wire::to_raw(&rendered);
    Rendered { event_id, timestamp: event.at, cause, event: rendered }
}

/// Renders an event that is not in the log: about the subscription or the server, at this moment. Its id lets the subscriber
/// go on after the last event that it was `served`.
pub(super) fn render_unlogged(name: EventName, served: EventId, data: &impl Serialize) -> Rendered {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let event_id = served.unlogged_ulid(NUMBER.fetch_add(1, Ordering::Relaxed));
    let timestamp = stamp::now();
    let event = wire::Event {
        id: event_id.as_str().into(),
        kind: name.sdk().into(),
        timestamp,
        source: "posthaste".into(),
        members: members_of(data),
        data,
        caused_by: None,
    };
    let event = to_wire::to_raw(&event);
    Rendered { event_id, timestamp, cause: None, event }
}

/// What an event says, in the SDK's members.
fn data(event: &Event, payloads: bool, correlation: bool) -> EventData<'_> {
    match (&event.fact, &event.message, &event.turn) {
        (Fact::TurnAdded { conversation }, _, Some(turn)) => EventData::Turn(turn_data(conversation, turn)),
        (fact, Some(message), _) => EventData::Message(message_data(fact, message, payloads, correlation)),
        (fact, None, _) => fact_data(event, fact),
    }
}

fn turn_data<'a>(conversation: &'a ConversationId, turn: &'a Turn) -> TurnData<'a> {
    TurnData { conversation_id: conversation.as_str().into(), turn: to_wire::turn(turn) }
}

fn message_data<'a>(
    fact: &'a Fact,
    message: &'a Message,
    payloads: bool,
    correlation: bool,
) -> MessageData<'a> {
    let whole = to_wire::message(message, payloads);
    let mut data = MessageData {
        message_id: whole.id.clone(),
        from: message.from.as_str().into(),
        delivered_to: None,
        agent_id: None,
        to: None,
        reason: None,
        timestamp: message.at,
        priority: to_wire::priority(message.priority).into(),
        correlation_id: message.correlation.as_deref().filter(|_| correlation).map(Cow::Borrowed),
        payload: None,
        message: None,
    };
    match fact {
        // A list in the SDK, although each recipient has an event of its own.
        Fact::MessageDelivered { agent } | Fact::MessageAcked { agent, .. } => {
            data.delivered_to = Some([agent.as_str().into()]);
            data.agent_id = Some(agent.as_str().into());
        }
        Fact::MessageExpired { agent } => {
            data.to = Some(Cow::Owned(to_wire::to_raw(agent)));
            data.reason = Some("expired".into());
        }
        Fact::MessageFailed { agent, reason } => {
            data.to = Some(Cow::Owned(to_wire::to_raw(agent)));
            data.reason = Some(reason.into());
        }
        _ => data.to = Some(whole.to.clone()),
    }
    if payloads {
        data.payload = whole.payload.clone();
        data.message = Some(whole);
    }
    data
}

/// What a fact that concerns no message says. Where other servers write the whole object, it is included.
fn fact_data<'a>(event: &'a Event, fact: &'a Fact) -> EventData<'a> {
    match fact {
        Fact::AgentRegistered { agent, name, role, owner, state, entry, .. } => {
            let (name, role) = (name.as_deref().map(Cow::Borrowed), role.as_deref().map(Cow::Borrowed));
            let owner_id = owner.as_ref().map(|owner| owner.as_str().into());
            let entry = match entry {
                Some(entry) => AgentEntry::Full(Box::new(nouns::agent(entry))),
                None => AgentEntry::Short(AgentStub {
                    id: agent.as_str().into(),
                    owner_id: owner_id.clone(),
                    state: state.into(),
                    name: name.clone(),
                    role: role.clone(),
                }),
            };
            let agent_id = agent.as_str().into();
            EventData::AgentRegistered(AgentRegistered { agent_id, owner_id, agent: entry, name, role })
        }
        Fact::AgentOrphaned { agent, previous } => EventData::AgentOrphaned(AgentOrphaned {
            agent_id: agent.as_str().into(),
            previous_owner: previous.as_ref().map(|previous| previous.as_str().into()),
        }),
        Fact::AgentUnregistered { agent, reason, .. } => EventData::AgentUnregistered(AgentUnregistered {
            agent_id: agent.as_str().into(),
            // Not optional, unlike the reasons of other events.
            reason: reason.as_deref().unwrap_or("unregistered").into(),
        }),
        Fact::AgentState { agent, previous, current } => EventData::AgentState(AgentState {
            agent_id: agent.as_str().into(),
            previous_state: previous.into(),
            new_state: current.into(),
        }),
        Fact::AgentUpdated { agent, changes } if update_name(changes) == EventName::AgentPermissions => {
            EventData::AgentPermissions(permissions_data(event, agent, changes))
        }
        Fact::AgentUpdated { agent, changes } => EventData::AgentUpdated(AgentUpdated {
            agent_id: agent.as_str().into(),
            changes: changes_to_wire(changes),
            updated_by: event.actor.as_str().into(),
        }),
        Fact::ConversationCreated { conversation } => EventData::ConversationCreated(ConversationCreated {
            conversation_id: conversation.id.as_str().into(),
            kind: conversation.kind.as_str().into(),
            created_by: conversation.created_by.as_str().into(),
            subject: conversation.subject.as_deref().map(Cow::Borrowed),
        }),
        Fact::ConversationClosed { conversation, by, reason } => {
            EventData::ConversationClosed(ConversationClosed {
                conversation_id: conversation.as_str().into(),
                closed_by: by.as_str().into(),
                reason: reason.as_deref().map(Cow::Borrowed),
            })
        }
        Fact::ConversationReopened { conversation, by } => {
            EventData::ConversationReopened(ConversationReopened {
                conversation_id: conversation.as_str().into(),
                reopened_by: by.as_str().into(),
            })
        }
        Fact::ParticipantJoined { participant } => EventData::ParticipantJoined(ParticipantJoined {
            conversation_id: participant.conversation.as_str().into(),
            participant: to_wire::participant(participant),
        }),
        Fact::ParticipantLeft { conversation, agent, reason } => {
            EventData::ParticipantLeft(ParticipantLeft {
                conversation_id: conversation.as_str().into(),
                participant_id: agent.as_str().into(),
                reason: reason.as_deref().map(Cow::Borrowed),
            })
        }
        Fact::ThreadCreated { thread } => EventData::ThreadCreated(ThreadCreated {
            conversation_id: thread.conversation.as_str().into(),
            thread: to_wire::thread(thread),
        }),
        Fact::SummaryGenerated { conversation, text } => EventData::SummaryGenerated(SummaryGenerated {
            conversation_id: conversation.as_str().into(),
            summary: text.into(),
        }),
        Fact::ScopeCreated { scope } => EventData::ScopeCreated(ScopeCreated {
            scope_id: scope.id.as_str().into(),
            scope: nouns::scope(scope),
            name: scope.name.as_deref().map(Cow::Borrowed),
        }),
        Fact::ScopeDeleted { scope, name } => EventData::ScopeDeleted(ScopeDeleted {
            scope_id: scope.as_str().into(),
            name: name.as_deref().map(Cow::Borrowed),
        }),
        Fact::ScopeJoined { scope, agent } | Fact::ScopeLeft { scope, agent } => {
            EventData::ScopeMember(ScopeMember {
                scope_id: scope.as_str().into(),
                agent_id: agent.as_str().into(),
            })
        }
        Fact::TaskCreated { task } => {
            EventData::TaskCreated(TaskCreated { task_id: task.id.as_str().into(), task: nouns::task(task) })
        }
        Fact::TaskAssigned { task, agent } => EventData::TaskAssigned(TaskAssigned {
            task_id: task.as_str().into(),
            agent_id: agent.as_str().into(),
        }),
        Fact::TaskStatusChanged { task, previous, current } => EventData::TaskStatus(TaskStatus {
            task_id: task.as_str().into(),
            previous: previous.as_str().into(),
            current: current.as_str().into(),
        }),
        Fact::TaskCompleted { task, result } => EventData::TaskCompleted(TaskCompleted {
            task_id: task.as_str().into(),
            result: result.as_ref().map(Json::value),
        }),
        Fact::Announced { data, .. } => EventData::Other(data.value()),
        other => EventData::Other(to_value(other)),
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The overrides that an agent has from now on. Older events contain only those that changed.
fn permissions_data<'a>(event: &'a Event, agent: &'a AgentId, changes: &Json) -> AgentPermissions<'a> {
    let changes = changes.value();
    let bounds = |name: &str| {
        let bounds = changes.get(name).cloned().map(serde_json::from_value);
        bounds.and_then(Result::ok).map(|bounds| overrides::to_wire(&bounds))
    };
    let changed = bounds("bounds").unwrap_or_default();
    AgentPermissions {
        agent_id: agent.as_str().into(),
        effective_permissions: bounds("bounds_in_force").unwrap_or_else(|| changed.clone()),
        changes: changed,
        updated_by: event.actor.as_str().into(),
    }
}

/// The fields of an agent's entry that changed, under MAP's names.
fn changes_to_wire(changes: &Json) -> Map<String, Value> {
    let Value::Object(given) = changes.value() else { return Map::new() };
    let mut out = Map::new();
    for (name, value) in given {
        match name.as_str() {
            "meta" => {
                let Value::Object(meta) = value else { continue };
                let mut metadata = Map::new();
                for (name, value) in meta {
                    match name.strip_prefix(OWN) {
                        Some("principal" | POLICY) => {}
                        Some(own) => drop(out.insert(own.to_owned(), value)),
                        None => drop(metadata.insert(name, value)),
                    }
                }
                if !metadata.is_empty() {
                    out.insert("metadata".to_owned(), Value::Object(metadata));
                }
            }
            "owner" => drop(out.insert("ownerId".to_owned(), value)),
            _ => drop(out.insert(name, value)),
        }
    }
    out
}

/// The state of each delivery. Subscribers that may not know it see all of them as queued.
fn receipts<'a>(
    message: &'a Message,
    event: &'a Event,
    form: Form,
    known: &'a Known,
    semantic: &'a str,
) -> Vec<Receipt<'a>> {
    let is_live = known.receipts.is_none();
    // What was read from the database is what this subscriber may know.
    let is_visible = message.audience == Audience::Observers && (form.observes || !is_live);
    let reached = known.receipts.as_deref().or(event.reached.as_deref()).unwrap_or_default();
    let receipt = |(agent, state): &'a Reached| {
        let status = match state {
            _ if !is_visible => DeliveryState::Queued,
            // The sender asked for the queue; the delivery is another event.
            DeliveryState::Delivered if is_live && semantic == "queue" => DeliveryState::Queued,
            DeliveryState::Read | DeliveryState::Acked => DeliveryState::Delivered,
            DeliveryState::Expired => DeliveryState::Failed,
            other => *other,
        };
        to_wire::receipt(agent, status, semantic, message.at)
    };
    reached.iter().take(MAX_RECEIPTS).map(receipt).collect()
}

/// The members that the draft has on the event itself, except for sent messages.
fn draft_members<'a>(event: &'a Event, data: &EventData<'a>) -> Option<DraftMembers<'a>> {
    let outcome = |message: &Message, agent: &'a AgentId, error: Option<&'a str>| DraftMembers::Outcome {
        message_id: message.id.to_string(),
        agent_id: agent.as_str().into(),
        error: error.map(|message| OutcomeError { code: codes::DELIVERY_FAILED, message: message.into() }),
    };
    match (&event.fact, &event.message) {
        (Fact::MessageDelivered { agent } | Fact::MessageAcked { agent, .. }, Some(message)) => {
            Some(outcome(message, agent, None))
        }
        (Fact::MessageFailed { agent, reason }, Some(message)) => Some(outcome(message, agent, Some(reason))),
        (Fact::MessageExpired { agent }, Some(message)) => Some(outcome(message, agent, Some("expired"))),
        (Fact::AgentState { agent, previous, current }, _) => Some(DraftMembers::State {
            agent_id: agent.as_str().into(),
            previous: previous.into(),
            current: current.into(),
        }),
        (Fact::TurnAdded { conversation }, _) => {
            let turn = event.turn.as_ref()?;
            Some(DraftMembers::Turn(turn_data(conversation, turn)))
        }
        (_, None) => members_of(data),
        _ => None,
    }
}

/// The members of an event's data as members of the event. Those that every event has stay in the data only.
fn members_of<'a>(data: &impl Serialize) -> Option<DraftMembers<'a>> {
    let Value::Object(mut members) = to_value(data) else { return None };
    members.retain(|name, _| !DraftMembers::RESERVED.contains(&name.as_str()));
    Some(DraftMembers::Other(members))
}

/// Events that were rendered last, so that many subscribers of one event do not render it again and again.
mod cache {
    use std::cell::RefCell;
    use std::sync::{Arc, Weak};

    use posthaste_engine::nouns::Event;

    use super::Rendered;

    /// Cached events of one thread and form: more than one subscriber writes at once.
    const CACHED_EVENTS: usize = 64;
    /// Longer events are rendered for each subscriber.
    const MAX_CACHED_BYTES: usize = 16 << 10;

    type Slot = Option<(Weak<Event>, Arc<Rendered>)>;

    thread_local! {
        static RECENT: RefCell<[[Slot; CACHED_EVENTS]; 2]> =
            const { RefCell::new([const { [const { None }; CACHED_EVENTS] }; 2]) };
    }

    pub(super) fn get_or_render(
        event: &Arc<Event>,
        draft: bool,
        render: impl FnOnce() -> Rendered,
    ) -> Arc<Rendered> {
        let at = usize::try_from(event.seq).unwrap_or_default() % CACHED_EVENTS;
        RECENT.with_borrow_mut(|recent| {
            let slot = &mut recent[usize::from(draft)][at];
            if let Some((known, rendered)) = slot
                && std::ptr::eq(known.as_ptr(), Arc::as_ptr(event))
            {
                return rendered.clone();
            }
            let rendered = Arc::new(render());
            if rendered.event.get().len() <= MAX_CACHED_BYTES {
                *slot = Some((Arc::downgrade(event), rendered.clone()));
            }
            rendered
        })
    }
}

//! Conversion of MAP's filters to the engine's.

use std::sync::{Arc, Weak};

use posthaste_engine::nouns::{Address, Agent, AgentId, ConversationId, Event, ScopeId};
use posthaste_engine::{AgentTest, Filter, Test};
use posthaste_wire::map::{EventName, FilterError, MailFilter, Pattern, Spec};
use serde_json::Value;

use super::events::{Seen, seen};
use super::from_wire;
use super::nouns;
use super::session::Session;

/// Recipients of one message that are compared with the patterns of a filter; the others are ignored.
const MAX_COMPARED_RECIPIENTS: usize = 64;

fn test(check: impl Fn(&Event) -> bool + Send + Sync + 'static) -> Filter {
    Filter::Test(Test(Arc::new(check)))
}

fn of_source(check: impl Fn(&Agent) -> bool + Send + Sync + 'static) -> Filter {
    Filter::SourceAgent(AgentTest(Arc::new(check)))
}

/// Matches nothing; for text that cannot be an id.
fn nothing() -> Filter {
    Filter::Any(Vec::new())
}

/// The engine's filter for a subscriber's filter and the draft's streams.
///
/// # Errors
/// Refused if it has more patterns than are compared with every event.
pub(super) fn compile(spec: &Spec, streams: Vec<Pattern>, mail: bool) -> Result<Filter, FilterError> {
    spec.check(streams.len())?;
    let mut all = vec![visible(spec, mail)];
    if !streams.is_empty() {
        all.push(named(streams));
    }
    all.push(fields(spec));
    Ok(Filter::All(all))
}

/// Events that MAP has a type for, and extension events that the filter names.
fn visible(spec: &Spec, mail: bool) -> Filter {
    fn names(spec: &Spec, found: &mut Vec<Pattern>) {
        found.extend(spec.event_types.iter().cloned());
        spec.or.iter().chain(&spec.and).for_each(|inner| names(inner, found));
    }
    let mut named = Vec::new();
    names(spec, &mut named);
    test(move |event| match seen(event) {
        Seen::As(name) => mail || !name.is_mail(),
        Seen::Extension(name) => named.iter().any(|pattern| pattern.matches_extension(&name)),
        Seen::Hidden => false,
    })
}

/// Events whose type matches one of the patterns.
fn named(patterns: Vec<Pattern>) -> Filter {
    let names = Pattern::names(&patterns);
    test(move |event| match seen(event) {
        Seen::As(name) => names.contains(name),
        Seen::Extension(name) => patterns.iter().any(|pattern| pattern.matches_extension(&name)),
        Seen::Hidden => false,
    })
}

fn fields(spec: &Spec) -> Filter {
    let mut parts = Vec::new();
    if !spec.event_types.is_empty() {
        parts.push(named(spec.event_types.clone()));
    }
    if !spec.from_agents.is_empty() {
        parts.push(Filter::Sources(ids(&spec.from_agents)));
    }
    if !spec.roles.is_empty() {
        let roles = spec.roles.clone();
        parts.push(of_source(move |agent| agent.role.as_ref().is_some_and(|role| roles.contains(role))));
    }
    if !spec.agents.is_empty() {
        let globs = spec.agents.clone();
        parts.push(test(move |event| {
            let to = event.message.iter().flat_map(|message| &message.to).filter_map(|to| match to {
                Address::Agent(agent) => Some(agent),
                _ => None,
            });
            let to = to.take(MAX_COMPARED_RECIPIENTS);
            let about = event.fact.about().into_iter().chain([event.source()]).chain(to);
            about.into_iter().any(|agent| globs.iter().any(|pattern| pattern.matches(agent.as_str())))
        }));
    }
    if !spec.scopes.is_empty() {
        parts.push(Filter::Scopes(spec.scopes.iter().filter_map(|id| ScopeId::new(id).ok()).collect()));
    }
    if !spec.priorities.is_empty() {
        let tiers = spec.priorities.iter().filter_map(|word| from_wire::priority_word(word)).collect();
        // Only messages have priorities; other events match.
        parts.push(Filter::Any(vec![Filter::Priorities(tiers), test(|event| event.message.is_none())]));
    }
    if !spec.correlations.is_empty() {
        parts.push(Filter::Correlations(spec.correlations.clone()));
    }
    if !spec.message_types.is_empty() {
        let kinds = spec.message_types.clone();
        parts.push(test(move |event| {
            event.message.as_ref().is_some_and(|message| kinds.contains(&message.kind))
        }));
    }
    parts.extend(agent_conditions(spec));
    if let Some(top) = &spec.descendants {
        parts.push(AgentId::new(top).map_or_else(|_| nothing(), Filter::Below));
    }
    if let Some(bottom) = &spec.ancestors {
        parts.push(AgentId::new(bottom).map_or_else(|_| nothing(), Filter::Above));
    }
    if let Some(top) = &spec.subtree {
        parts.push(AgentId::new(top).map_or_else(
            |_| nothing(),
            |top| Filter::Any(vec![Filter::Concerning(vec![top.clone()]), Filter::Below(top)]),
        ));
    }
    if let Some(filter) = &spec.mail {
        parts.push(mail(filter));
    }
    if !spec.or.is_empty() {
        parts.push(Filter::Any(spec.or.iter().map(fields).collect()));
    }
    parts.extend(spec.and.iter().map(fields));
    if spec.any && !parts.is_empty() { Filter::Any(parts) } else { Filter::All(parts) }
}

/// Conditions on the agent's metadata and environment.
fn agent_conditions(spec: &Spec) -> Vec<Filter> {
    let mut parts = Vec::new();
    if !spec.metadata.is_empty() {
        let wanted = spec.metadata.clone();
        parts.push(of_source(move |agent| {
            let metadata = nouns::metadata(agent);
            wanted.iter().all(|(name, value)| metadata.get(name) == Some(value))
        }));
    }
    if !spec.environment.is_empty() {
        let wanted = spec.environment.clone();
        parts.push(of_source(move |agent| {
            let Some(environment) = nouns::own_member(agent, "environment") else { return false };
            wanted.iter().all(|(path, value)| at_path(&environment, path) == Some(value))
        }));
    }
    if !spec.environments.is_empty() {
        let names = spec.environments.clone();
        parts.push(of_source(move |agent| {
            let Some(environment) = nouns::own_member(agent, "environment") else { return false };
            let called = ["id", "name", "type"].iter().filter_map(|name| environment.get(name)?.as_str());
            called.chain(environment.as_str()).any(|name| names.iter().any(|wanted| wanted.matches(name)))
        }));
    }
    parts
}

/// A member by a path like `os.type`. A member whose name contains the dots takes precedence.
fn at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    value.get(path).or_else(|| path.split('.').try_fold(value, |value, name| value.get(name)))
}

fn mail(filter: &MailFilter) -> Filter {
    let mut parts = vec![test(|event| matches!(seen(event), Seen::As(name) if name.is_mail()))];
    if let Some(id) = &filter.conversation {
        parts.push(ConversationId::new(id).map_or_else(|_| nothing(), Filter::Conversation));
    }
    if let Some(id) = &filter.thread {
        parts.push(Filter::Thread(from_wire::thread(id)));
    }
    if let Some(id) = &filter.participant {
        parts.push(AgentId::new(id).map_or_else(|_| nothing(), Filter::Participant));
    }
    if let Some(word) = &filter.content_type {
        parts.push(Filter::ContentType(word.clone()));
    }
    Filter::All(parts)
}

fn ids(names: &[String]) -> Vec<AgentId> {
    names.iter().filter_map(|name| AgentId::new(name).ok()).collect()
}

/// Everything except what the session itself does. The session knows its agents only while they are registered; the database
/// also knows them before and after.
pub(super) fn not_own(session: &Arc<Session>) -> Filter {
    let participant = session.participant.clone();
    // Weak, because the session owns the subscription.
    let session: Weak<Session> = Arc::downgrade(session);
    let here = test(move |event| session.upgrade().is_some_and(|session| session.owns(event.source())));
    Filter::Not(Box::new(Filter::Any(vec![here, Filter::OwnedBy(participant)])))
}

/// Whether a subscriber asks for a heartbeat or capacity event, which are sent only on request.
pub(super) fn asks_for(spec: &Spec, streams: &[Pattern], name: EventName) -> bool {
    spec.names(name) || streams.iter().any(|stream| *stream != Pattern::new("*") && stream.matches(name))
}

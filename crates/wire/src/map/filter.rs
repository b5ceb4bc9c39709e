//! Event filters of subscriptions and replays, with the field names of the draft and the SDK.

use serde_json::{Map, Value};
use thiserror::Error;

use super::glob::{Glob, MAX_PATTERN_CHARS};
use super::names::Pattern;

/// Maximum nesting depth of `$or` and `$and`.
const MAX_DEPTH: usize = 8;
/// Maximum number of patterns and values, nested filters included: each is compared with every event.
const MAX_PATTERNS: usize = 100;
/// Maximum number of exact values (agents, roles, priorities, correlations, message types), which are cheaper to compare.
const MAX_EXACT_VALUES: usize = 1000;
/// Maximum size of a filter as JSON, in bytes.
const MAX_FILTER_BYTES: usize = 64 << 10;

/// A parsed filter. All fields that are set must match; a list matches if one entry does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Event types.
    pub event_types: Vec<Pattern>,
    /// Agents that caused the event.
    pub from_agents: Vec<String>,
    /// Roles of agents that caused the event.
    pub roles: Vec<String>,
    /// Agents that caused the event or that it is about.
    pub agents: Vec<Glob>,
    /// Scopes.
    pub scopes: Vec<String>,
    /// Message priorities.
    pub priorities: Vec<String>,
    /// Message correlation ids.
    pub correlations: Vec<String>,
    /// Message types.
    pub message_types: Vec<String>,
    /// Environment names.
    pub environments: Vec<Glob>,
    /// Required members of the agent's metadata.
    pub metadata: Vec<(String, Value)>,
    /// Required members of the agent's environment, by path.
    pub environment: Vec<(String, Value)>,
    /// Restricts to descendants of this agent.
    pub descendants: Option<String>,
    /// Restricts to ancestors of this agent.
    pub ancestors: Option<String>,
    /// Restricts to this agent and its descendants.
    pub subtree: Option<String>,
    /// Restricts to matching mail events.
    pub mail: Option<MailFilter>,
    /// True if one matching field is enough.
    pub any: bool,
    /// Nested filters of which at least one must match.
    pub or: Vec<Spec>,
    /// Nested filters that must all match.
    pub and: Vec<Spec>,
}

/// A filter of mail events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailFilter {
    /// Events of this conversation.
    pub conversation: Option<String>,
    /// Events in this thread.
    pub thread: Option<String>,
    /// Events by or about this participant.
    pub participant: Option<String>,
    /// Turns with this content type.
    pub content_type: Option<String>,
}

/// Why a value is not a filter.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FilterError {
    /// Not an object.
    #[error("a filter is an object")]
    Shape,
    /// A field of the wrong type.
    #[error("the filter field {0} has the wrong type")]
    Field(String),
    /// Nested too deep.
    #[error("filters nest at most {MAX_DEPTH} levels deep")]
    TooDeep,
    /// Too many patterns and values.
    #[error(
        "a filter has at most {MAX_PATTERNS} patterns and {MAX_EXACT_VALUES} exact values, including nested filters"
    )]
    TooMany,
    /// A pattern is too long.
    #[error("a pattern has at most {MAX_PATTERN_CHARS} characters")]
    LongPattern,
    /// The filter is too large.
    #[error("a filter has at most {MAX_FILTER_BYTES} bytes")]
    TooLarge,
}

impl Spec {
    /// Parses a filter. Unknown fields are ignored, because newer clients may send more.
    pub fn parse(value: &Value) -> Result<Self, FilterError> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Object(fields) => {
                let spec = parse_fields(fields, 0)?;
                if serde_json::to_vec(value).is_ok_and(|json| json.len() > MAX_FILTER_BYTES) {
                    return Err(FilterError::TooLarge);
                }
                spec.check(0).map(|()| spec)
            }
            _ => Err(FilterError::Shape),
        }
    }

    /// Refuses a filter that is too expensive to match; `other_patterns` are those of the subscription outside the filter.
    pub fn check(&self, other_patterns: usize) -> Result<(), FilterError> {
        match self.cost() + other_patterns > MAX_PATTERNS || self.exact_values() > MAX_EXACT_VALUES {
            true => Err(FilterError::TooMany),
            false => Ok(()),
        }
    }

    /// The cost of matching an event: the number of filters, patterns and inexact values, nested filters included.
    #[must_use]
    pub fn cost(&self) -> usize {
        let inner: usize = self.or.iter().chain(&self.and).map(Self::cost).sum();
        let one = |field: &Option<String>| usize::from(field.is_some());
        1 + inner
            + self.event_types.len()
            + self.agents.len()
            + self.scopes.len()
            + self.environments.len()
            + self.metadata.len()
            + self.environment.len()
            + one(&self.descendants)
            + one(&self.ancestors)
            + one(&self.subtree)
    }

    fn exact_values(&self) -> usize {
        let inner: usize = self.or.iter().chain(&self.and).map(Self::exact_values).sum();
        let lists =
            [&self.from_agents, &self.roles, &self.priorities, &self.correlations, &self.message_types];
        inner + lists.into_iter().map(Vec::len).sum::<usize>()
    }

    /// Whether the filter names this event type other than by `*`. Some events are sent only to subscribers that do.
    #[must_use]
    pub fn names(&self, name: super::EventName) -> bool {
        let star = Pattern::new("*");
        self.event_types.iter().any(|pattern| *pattern != star && pattern.matches(name))
    }
}

fn parse_fields(fields: &Map<String, Value>, depth: usize) -> Result<Spec, FilterError> {
    if depth > MAX_DEPTH {
        return Err(FilterError::TooDeep);
    }
    let list = |names: &[&str]| -> Result<Vec<String>, FilterError> {
        let mut found = Vec::new();
        for name in names {
            found.extend(texts(name, fields.get(*name))?);
        }
        Ok(found)
    };
    let one = |name: &str| text(name, fields.get(name));
    let globs = |name: &str| -> Result<Vec<Glob>, FilterError> {
        list(&[name])?.iter().map(|text| Glob::new(text).ok_or(FilterError::LongPattern)).collect()
    };
    let specs = |name: &str| -> Result<Vec<Spec>, FilterError> {
        match fields.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) if list.len() > MAX_PATTERNS => Err(FilterError::TooMany),
            Some(Value::Array(list)) => list
                .iter()
                .map(|one| match one {
                    Value::Object(fields) => parse_fields(fields, depth + 1),
                    _ => Err(FilterError::Field(name.to_owned())),
                })
                .collect(),
            Some(_) => Err(FilterError::Field(name.to_owned())),
        }
    };
    Ok(Spec {
        event_types: list(&["eventTypes", "eventType"])?
            .iter()
            .map(|text| {
                let short = text.chars().nth(MAX_PATTERN_CHARS).is_none();
                short.then(|| Pattern::new(text)).ok_or(FilterError::LongPattern)
            })
            .collect::<Result<_, _>>()?,
        from_agents: list(&["fromAgents"])?,
        roles: list(&["fromRoles", "roles", "role"])?,
        agents: globs("agents")?,
        scopes: list(&["scopes", "scope"])?,
        priorities: list(&["priorities"])?,
        correlations: list(&["correlationIds"])?,
        message_types: list(&["messageTypes"])?,
        environments: globs("environments")?,
        metadata: pairs("metadataMatch", fields.get("metadataMatch"))?,
        environment: pairs("environmentMatch", fields.get("environmentMatch"))?,
        descendants: one("descendants")?,
        ancestors: one("ancestors")?,
        subtree: one("subtree")?,
        mail: mail(fields.get("mail"))?,
        any: one("match")?.as_deref() == Some("any"),
        or: specs("$or")?,
        and: specs("$and")?,
    })
}

fn mail(value: Option<&Value>) -> Result<Option<MailFilter>, FilterError> {
    let fields = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(FilterError::Field("mail".to_owned())),
    };
    Ok(Some(MailFilter {
        conversation: text("mail.conversationId", fields.get("conversationId"))?,
        thread: text("mail.threadId", fields.get("threadId"))?,
        participant: text("mail.participantId", fields.get("participantId"))?,
        content_type: text("mail.contentType", fields.get("contentType"))?,
    }))
}

fn text(name: &str, value: Option<&Value>) -> Result<Option<String>, FilterError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(FilterError::Field(name.to_owned())),
    }
}

/// Parses a list of strings; a single string is a list of one.
fn texts(name: &str, value: Option<&Value>) -> Result<Vec<String>, FilterError> {
    let wrong = || FilterError::Field(name.to_owned());
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(list)) if list.len() > MAX_EXACT_VALUES => Err(FilterError::TooMany),
        Some(Value::Array(list)) => {
            list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn pairs(name: &str, value: Option<&Value>) -> Result<Vec<(String, Value)>, FilterError> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(fields)) => {
            Ok(fields.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        Some(_) => Err(FilterError::Field(name.to_owned())),
    }
}

/// The event types of one of the draft's named streams.
#[must_use]
pub fn stream_pattern(stream: &str) -> Pattern {
    match stream {
        "*" | "all" => Pattern::new("*"),
        "messages" => Pattern::new("message.*"),
        "state" | "agents" | "lifecycle" => Pattern::new("agent.*"),
        "tasks" => Pattern::new("task.*"),
        "scopes" => Pattern::new("scope.*"),
        "participants" | "sessions" => Pattern::new("participant.*"),
        "permissions" => Pattern::new("permissions.*"),
        other => Pattern::new(&format!("{other}.*")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::map::EventName;

    #[test]
    fn draft_and_sdk_fields_are_parsed() {
        let spec = Spec::parse(&json!({
            "agents": ["worker_*"], "roles": ["worker"], "fromRoles": ["boss"], "priorities": ["urgent"],
            "scopes": [], "eventTypes": ["task.*", "agent_registered"], "descendants": "root",
            "metadataMatch": { "team": "a" }, "mail": { "threadId": "t" }, "match": "any", "newField": 5,
        }));
        let spec = spec.unwrap();
        assert_eq!(spec.roles, ["boss", "worker"]);
        assert!(spec.names(EventName::TaskCreated) && spec.names(EventName::AgentRegistered));
        assert_eq!(spec.descendants.as_deref(), Some("root"));
        assert_eq!(spec.mail.unwrap().thread.as_deref(), Some("t"));
        assert!(spec.any);
    }

    #[test]
    fn fields_of_the_wrong_type_are_refused() {
        for value in [
            json!("x"),
            json!([]),
            json!({ "eventTypes": 5 }),
            json!({ "eventTypes": [5] }),
            json!({ "mail": "x" }),
            json!({ "mail": { "conversationId": 5 } }),
            json!({ "$or": [5] }),
            json!({ "metadataMatch": [] }),
        ] {
            assert!(Spec::parse(&value).is_err(), "{value}");
        }
        let mut deep = json!({});
        for _ in 0..20 {
            deep = json!({ "$or": [deep] });
        }
        assert_eq!(Spec::parse(&deep), Err(FilterError::TooDeep));
    }

    #[test]
    fn limits_include_nested_filters() {
        let many = |n: usize| -> Vec<String> { (0..n).map(|n| format!("*a{n}*")).collect() };
        assert!(Spec::parse(&json!({ "agents": many(90) })).is_ok());
        assert!(Spec::parse(&json!({ "fromAgents": many(1000) })).is_ok());
        for value in [
            json!({ "agents": many(101) }),
            json!({ "eventTypes": many(101) }),
            json!({ "scopes": many(101) }),
            json!({ "fromAgents": many(1001) }),
            json!({ "$or": (0..101).map(|_| json!({})).collect::<Vec<_>>() }),
            json!({ "$or": [{ "agents": many(60) }, { "$and": [{ "environments": many(60) }] }] }),
            json!({ "$or": [{ "fromAgents": many(600) }, { "roles": many(600) }] }),
        ] {
            assert_eq!(Spec::parse(&value), Err(FilterError::TooMany));
        }
        let long = "a".repeat(MAX_PATTERN_CHARS + 1);
        for value in [json!({ "agents": [long] }), json!({ "eventTypes": [long] })] {
            assert_eq!(Spec::parse(&value), Err(FilterError::LongPattern));
        }
        let large = json!({ "metadataMatch": { "team": "a".repeat(MAX_FILTER_BYTES) } });
        assert_eq!(Spec::parse(&large), Err(FilterError::TooLarge));
    }

    #[test]
    fn streams_match_their_event_types() {
        assert!(stream_pattern("messages").matches(EventName::MessageSent));
        assert!(stream_pattern("state").matches(EventName::AgentRegistered));
        assert!(!stream_pattern("state").matches(EventName::TaskCreated));
        assert!(stream_pattern("mail").matches(EventName::MailTurn));
    }
}

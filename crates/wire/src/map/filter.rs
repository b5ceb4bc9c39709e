//! What a subscriber or a replay asks for, in both spellings of its fields.

use serde_json::{Map, Value};
use thiserror::Error;

use super::glob::{Glob, LONGEST};
use super::names::Pattern;

/// How deeply `$or` and `$and` may nest.
const DEEPEST: usize = 8;
/// Patterns and values of a whole filter, with all filters in it: each is compared with every event.
const MOST: usize = 100;
/// Exact values of a whole filter, which are cheaper to compare: agents, correlations, kinds of messages, priorities.
const MOST_EXACT: usize = 1000;
/// The whole filter as JSON, in bytes.
const LARGEST: usize = 64 << 10;

/// A filter as it was written: fields that must all hold, lists of which one must.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Names of events.
    pub event_types: Vec<Pattern>,
    /// Agents that events come from.
    pub from_agents: Vec<String>,
    /// Roles of those agents.
    pub roles: Vec<String>,
    /// Patterns of agents that events come from or are about.
    pub agents: Vec<Glob>,
    /// Scopes.
    pub scopes: Vec<String>,
    /// Priorities of messages.
    pub priorities: Vec<String>,
    /// Correlations of messages.
    pub correlations: Vec<String>,
    /// What messages say they are.
    pub message_types: Vec<String>,
    /// Names of surroundings.
    pub environments: Vec<Glob>,
    /// Members that the agent's metadata must have.
    pub metadata: Vec<(String, Value)>,
    /// Members, by path, that the agent's environment must have.
    pub environment: Vec<(String, Value)>,
    /// Only below this agent.
    pub descendants: Option<String>,
    /// Only above this agent.
    pub ancestors: Option<String>,
    /// Only this agent and those below it.
    pub subtree: Option<String>,
    /// Only mail, and only such.
    pub mail: Option<MailFilter>,
    /// Whether one field is enough.
    pub any: bool,
    /// Further filters of which one must hold.
    pub or: Vec<Spec>,
    /// Further filters that must all hold.
    pub and: Vec<Spec>,
}

/// Which mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailFilter {
    /// Of this conversation.
    pub conversation: Option<String>,
    /// In this thread.
    pub thread: Option<String>,
    /// By or about this participant.
    pub participant: Option<String>,
    /// Turns that contain this.
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
    /// Filters in filters in filters.
    #[error("filters nest at most {DEEPEST} deep")]
    TooDeep,
    /// Too many patterns and values.
    #[error("a filter has at most {MOST} patterns and {MOST_EXACT} exact values, with all filters in it")]
    TooMany,
    /// A pattern too long.
    #[error("a pattern has at most {LONGEST} characters")]
    LongPattern,
    /// Too large in all.
    #[error("a filter has at most {LARGEST} bytes")]
    TooLarge,
}

impl Spec {
    /// Reads a filter. Unknown fields are left alone: newer clients know more of them.
    pub fn parse(value: &Value) -> Result<Self, FilterError> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Object(fields) => {
                let spec = parse_fields(fields, 0)?;
                if serde_json::to_vec(value).is_ok_and(|json| json.len() > LARGEST) {
                    return Err(FilterError::TooLarge);
                }
                spec.check(0).map(|()| spec)
            }
            _ => Err(FilterError::Shape),
        }
    }

    /// Refuses a filter that takes too much to compare, together with the patterns beside it.
    pub fn check(&self, beside: usize) -> Result<(), FilterError> {
        match self.cost() + beside > MOST || self.exact_values() > MOST_EXACT {
            true => Err(FilterError::TooMany),
            false => Ok(()),
        }
    }

    /// How much it takes to compare an event with it: patterns and values that are not exact, and filters in it.
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

    /// Whether the filter names this event of the kind that only those get who ask for it.
    #[must_use]
    pub fn names(&self, name: super::EventName) -> bool {
        let star = Pattern::new("*");
        self.event_types.iter().any(|pattern| *pattern != star && pattern.matches(name))
    }
}

fn parse_fields(fields: &Map<String, Value>, depth: usize) -> Result<Spec, FilterError> {
    if depth > DEEPEST {
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
            Some(Value::Array(list)) if list.len() > MOST => Err(FilterError::TooMany),
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
                let short = text.chars().nth(LONGEST).is_none();
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

/// A list of texts; a single text is a list of one.
fn texts(name: &str, value: Option<&Value>) -> Result<Vec<String>, FilterError> {
    let wrong = || FilterError::Field(name.to_owned());
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(list)) if list.len() > MOST_EXACT => Err(FilterError::TooMany),
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

/// The events of one of the draft's streams.
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
    fn both_spellings_are_read() {
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
    fn wrong_types_are_refused() {
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
    fn a_filter_is_bounded_with_all_filters_in_it() {
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
        let long = "a".repeat(LONGEST + 1);
        for value in [json!({ "agents": [long] }), json!({ "eventTypes": [long] })] {
            assert_eq!(Spec::parse(&value), Err(FilterError::LongPattern));
        }
        let large = json!({ "metadataMatch": { "team": "a".repeat(LARGEST) } });
        assert_eq!(Spec::parse(&large), Err(FilterError::TooLarge));
    }

    #[test]
    fn streams_name_families_of_events() {
        assert!(stream_pattern("messages").matches(EventName::MessageSent));
        assert!(stream_pattern("state").matches(EventName::AgentRegistered));
        assert!(!stream_pattern("state").matches(EventName::TaskCreated));
        assert!(stream_pattern("mail").matches(EventName::MailTurn));
    }
}

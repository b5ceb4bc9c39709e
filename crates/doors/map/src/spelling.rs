//! Names of events as a subscriber's filter spells them: in dots or with underscores.

use std::sync::Arc;

use posthaste_engine::nouns::Event;
use posthaste_wire::map::{Pattern, Spec};

use super::events::{Seen, seen};

/// Stands before the name of an event in its members; ids and times before it cannot contain it.
const TYPE: &str = r#""type":""#;

/// The patterns of a filter that say how names are written.
#[derive(Debug, Default)]
pub(super) struct Spelling(Vec<Pattern>);

impl Spelling {
    /// The spelling of a filter. Sessions in the draft's vocabulary have the draft's names in any case.
    pub(super) fn of(spec: &Spec, draft: bool) -> Self {
        fn collect(spec: &Spec, found: &mut Vec<Pattern>) {
            found.extend(spec.event_types.iter().cloned());
            spec.or.iter().chain(&spec.and).for_each(|inner| collect(inner, found));
        }
        let mut patterns = Vec::new();
        if !draft {
            collect(spec, &mut patterns);
        }
        Self(patterns)
    }

    /// The members of an event's envelope with the name that the filter has for it.
    pub(super) fn apply(&self, event: &Event, members: Arc<str>) -> Arc<str> {
        let Seen::As(name) = seen(event) else { return members };
        let Some(wanted) = self.0.iter().find_map(|pattern| pattern.spelling(name)) else { return members };
        let usual = name.sdk();
        if wanted == usual {
            return members;
        }
        match members.split_once(TYPE) {
            Some((before, rest)) if rest.starts_with(usual) => {
                Arc::from([before, TYPE, wanted, &rest[usual.len()..]].concat())
            }
            _ => members,
        }
    }
}

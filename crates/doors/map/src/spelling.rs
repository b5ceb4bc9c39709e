//! Event types as a subscriber's filter spells them: with dots or with underscores.

use posthaste_engine::nouns::Event;
use posthaste_wire::map::{Pattern, Spec};

use super::events::{Seen, seen};

/// The patterns of a filter, from which the spelling of event types is taken.
#[derive(Debug, Default)]
pub(super) struct Spelling(Vec<Pattern>);

impl Spelling {
    /// The spelling of a filter. Sessions of the draft always get the draft's names.
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

    /// The event type as the filter spells it; `None` if that is the SDK's spelling.
    pub(super) fn of_event(&self, event: &Event) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let Seen::As(name) = seen(event) else { return None };
        let wanted = self.0.iter().find_map(|pattern| pattern.spelling(name))?;
        (wanted != name.sdk()).then_some(wanted)
    }
}

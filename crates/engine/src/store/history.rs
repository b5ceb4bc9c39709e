//! Writing the history down: many lines with one statement, before the batch that made them is committed.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use rusqlite::Connection;

use super::many::Insert;
use crate::nouns::{Event, Fact};

static LINES: LazyLock<Insert> =
    LazyLock::new(|| Insert::new("events", "seq, at, kind, actor, cause, message, conversation, fact"));

/// Writes lines of history.
pub(crate) fn write_history(db: &Connection, events: &[Arc<Event>]) -> rusqlite::Result<()> {
    LINES.write(db, events, |to, event| {
        to.put(event.seq)?;
        to.put(event.at)?;
        to.put(event.fact.kind())?;
        to.put(&event.actor)?;
        to.put(event.cause)?;
        to.put(event.message.as_ref().map(|message| message.seq))?;
        to.put(event.fact.conversation())?;
        to.put(text(&event.fact))
    })
}

fn text(fact: &Fact) -> Cow<'static, str> {
    match fact {
        // The most common line, and always the same.
        Fact::MessageSent => r#"{"kind":"message.sent"}"#.into(),
        // Facts are plain data without maps or floats: writing them as JSON cannot fail.
        other => serde_json::to_string(other).unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::nouns::Fact;

    #[test]
    fn the_line_that_is_not_written_each_time_is_the_one_that_would_be() {
        assert_eq!(text(&Fact::MessageSent), serde_json::to_string(&Fact::MessageSent).expect("plain data"));
    }
}

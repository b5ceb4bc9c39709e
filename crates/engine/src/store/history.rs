//! Writing the history down: many lines with one statement, before the batch that made them is committed.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use rusqlite::{CachedStatement, Connection};

use crate::nouns::{Event, Fact};

/// Lines written with one statement.
const TOGETHER: usize = 16;

static ONE: LazyLock<String> = LazyLock::new(|| insert(1));
static MANY: LazyLock<String> = LazyLock::new(|| insert(TOGETHER));

fn insert(lines: usize) -> String {
    let values = vec!["(?,?,?,?,?,?,?,?)"; lines].join(",");
    format!("INSERT INTO events(seq, at, kind, actor, cause, message, conversation, fact) VALUES{values}")
}

/// Writes lines of history.
pub(crate) fn write_history(books: &Connection, events: &[Arc<Event>]) -> rusqlite::Result<()> {
    let together = events.chunks_exact(TOGETHER);
    let rest = together.remainder();
    for (lines, sql) in together.map(|lines| (lines, &MANY)).chain(rest.chunks(1).map(|line| (line, &ONE))) {
        let mut statement = books.prepare_cached(sql)?;
        for (place, event) in lines.iter().enumerate() {
            bind(&mut statement, place * 8, event)?;
        }
        statement.raw_execute()?;
    }
    Ok(())
}

fn bind(to: &mut CachedStatement<'_>, before: usize, event: &Event) -> rusqlite::Result<()> {
    to.raw_bind_parameter(before + 1, event.seq)?;
    to.raw_bind_parameter(before + 2, event.at)?;
    to.raw_bind_parameter(before + 3, event.fact.kind())?;
    to.raw_bind_parameter(before + 4, &event.actor)?;
    to.raw_bind_parameter(before + 5, event.cause)?;
    to.raw_bind_parameter(before + 6, event.message.as_ref().map(|message| message.seq))?;
    to.raw_bind_parameter(before + 7, event.fact.conversation())?;
    to.raw_bind_parameter(before + 8, text(&event.fact).as_ref())
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

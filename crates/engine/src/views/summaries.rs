//! Summaries of conversations: read from the database if still current, else made from what the caller may read.

use serde::{Deserialize, Serialize};

use super::{TurnQuery, View, Viewed};
use crate::nouns::{Body, Caller, ConversationId, Json, Millis, Seq, Summary, ThreadId, Turn, TurnId};
use crate::sight::Reader;
use crate::store::{one, rows};
use crate::summary::{Line, MAX_LINES, summarise};

/// Which part of a conversation to summarise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Only this thread.
    pub thread: Option<ThreadId>,
    /// From this turn on, itself included.
    pub from: Option<TurnId>,
    /// Up to this turn, itself included.
    pub to: Option<TurnId>,
}

/// A summary and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gist {
    /// The summary.
    pub summary: Summary,
    /// When it was stored, if it was; absent if it was just made.
    pub kept_at: Option<Millis>,
    /// The last turn that it includes.
    pub up_to: Seq,
    /// The key under which to store it.
    pub part: String,
    /// Whether it is based only on turns that all readers of the conversation may read.
    pub for_all: bool,
}

impl View<'_> {
    /// The summary of a conversation or a part of it. The caller stores a new one with the verb `KeepSummary`.
    ///
    /// # Errors
    /// Refused if the caller may not read the conversation or its earlier turns.
    pub fn summary(&self, caller: &Caller, id: &ConversationId, part: &Part, refresh: bool) -> Viewed<Gist> {
        let (conversation, reader) = self.history_reader(caller, id)?;
        let for_all = !self.has_restricted_turns(conversation)? && !self.has_late_readers(id)?;
        // Readers that see different turns have different summaries; those that see everything share one. A participant
        // that rejoins may have fewer permissions than before, so its key includes when it joined.
        let whose = match &reader {
            _ if for_all => ("all", None, 0),
            Reader::Overseer => ("office", None, 0),
            Reader::Participant(part) => ("part", Some(&part.agent), part.joined),
            Reader::Outsider(agent) => ("outside", Some(agent), 0),
        };
        // Plain data without maps or floats: writing it as JSON cannot fail.
        let name = serde_json::to_string(&(part, whose)).unwrap_or_default();
        let last = self.last_turn(conversation)?;
        let sql = "SELECT summary, up_to, at FROM summaries WHERE conversation = ?1 AND part = ?2";
        let kept = one(self.db, sql, (id, &name), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Seq>(1)?, row.get::<_, Millis>(2)?))
        })?;
        if let Some((text, up_to, at)) = kept
            && up_to == last
            && !refresh
            && let Ok(summary) = serde_json::from_str(&text)
        {
            return Ok(Gist { summary, kept_at: Some(at), up_to, part: name, for_all });
        }
        let summary = self.summarise(caller, id, part)?;
        Ok(Gist { summary, kept_at: None, up_to: last, part: name, for_all })
    }

    fn summarise(&self, caller: &Caller, id: &ConversationId, part: &Part) -> Viewed<Summary> {
        // The latest turns matter most, so turns are read from the end.
        let mut query = TurnQuery {
            thread: part.thread,
            newest_first: true,
            limit: self.limits.page,
            ..TurnQuery::default()
        };
        self.check_thread(id, part.thread)?;
        let first = part.from.map(|turn| self.turn(caller, id, turn)).transpose()?;
        let end = part.to.map(|turn| self.turn(caller, id, turn)).transpose()?;
        let mut turns: Vec<Turn> = Vec::new();
        let reached = |turn: &Turn| first.as_ref().is_none_or(|first| turn.seq >= first.seq);
        if let Some(end) = end {
            query.before = Some(end.id);
            let in_thread = part.thread.is_none() || end.thread == part.thread;
            turns.extend(Some(end).filter(|end| in_thread && reached(end)));
        }
        while turns.len() < MAX_LINES && !self.budget.is_full() {
            let page = self.turns(caller, id, &query)?;
            let before = turns.len();
            let size = page.items.len();
            turns.extend(page.items.iter().filter(|turn| reached(turn)).cloned());
            if page.next.is_none() || turns.len() < before + size {
                break;
            }
            query.before = page.next;
        }
        turns.reverse();
        let texts: Vec<String> = turns.iter().map(|turn| self.text_of(turn)).collect::<Viewed<_>>()?;
        let lines: Vec<Line<'_>> = turns
            .iter()
            .zip(&texts)
            .map(|(turn, text)| Line { author: turn.author.as_str(), text })
            .collect();
        let made = summarise(&lines);
        Ok(Summary {
            text: made.text,
            key_points: made.key_points,
            decisions: made.decisions,
            open_questions: made.open_questions,
            actions: made.actions.into_iter().map(|action| (action.text, action.done)).collect(),
            participants: made.participants,
            mentions: made.mentions,
            lines: made.lines,
        })
    }

    /// The text of a turn.
    fn text_of(&self, turn: &Turn) -> Viewed<String> {
        if let crate::nouns::TurnSource::Intercepted(message) = turn.source
            && let Some(message) = rows::message_by_id(self.db, message)?
        {
            let body = match &message.body {
                Body::Text(text) => text.clone(),
                Body::Json(json) => strings_of(json),
            };
            return Ok(match message.subject {
                Some(subject) if !body.is_empty() => format!("{subject}\n{body}"),
                Some(subject) => subject,
                None => body,
            });
        }
        Ok(strings_of(&turn.content))
    }

    /// Whether a conversation has turns that not all its readers may read.
    pub(super) fn has_restricted_turns(&self, conversation: Seq) -> Viewed<bool> {
        let sql = "SELECT 1 FROM turns INDEXED BY turns_restricted WHERE conversation_seq = ?1 AND visibility IS NOT NULL LIMIT 1";
        Ok(one(self.db, sql, [conversation], |_| Ok(()))?.is_some())
    }

    /// Whether there is a participant that may not read all earlier turns.
    fn has_late_readers(&self, id: &ConversationId) -> Viewed<bool> {
        let sql = "SELECT 1 FROM participants WHERE conversation = ?1 AND left_at IS NULL
                   AND permissions ->> '$.history' <> 'full' LIMIT 1";
        Ok(one(self.db, sql, [id], |_| Ok(()))?.is_some())
    }

    fn last_turn(&self, conversation: Seq) -> Viewed<Seq> {
        let sql = "SELECT seq FROM turns INDEXED BY turns_by_conversation WHERE conversation_seq = ?1 ORDER BY seq DESC LIMIT 1";
        Ok(one(self.db, sql, [conversation], |row| row.get(0))?.unwrap_or(0))
    }
}

/// The strings of a JSON value, in order: its readable text.
fn strings_of(json: &Json) -> String {
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => found.push(text.clone()),
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            serde_json::Value::Object(members) => members.values().for_each(|member| collect(member, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&json.value(), &mut found);
    found.join("\n")
}

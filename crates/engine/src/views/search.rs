//! Full-text search over letters and turns, limited to what the caller may see.

use std::sync::LazyLock;

use super::search_words::{self, Asked};
use super::weigh::Weigh;
use super::{View, Viewed, require_member, snippet};
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, ConversationId, Message, Seq, Turn};
use crate::sight::{MessageHead, Searcher};
use crate::store::{lay_out, one, rows};

/// In which order matches are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchOrder {
    /// The best match first, among the latest.
    #[default]
    Best,
    /// The latest first.
    Newest,
}

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words, `"phrases"`, `prefix*`, AND, OR, NOT, `-word`, `subject:word`, `from:name`.
    pub text: String,
    /// Only in this conversation.
    pub conversation: Option<ConversationId>,
    /// Only from this agent.
    pub from: Option<AgentId>,
    /// In which order.
    pub order: SearchOrder,
    /// Only before this place in the history.
    pub before: Option<Seq>,
    /// What stands before and behind a match in its snippet; `[` and `]` if not said.
    pub marks: Option<(char, char)>,
    /// How many.
    pub limit: usize,
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its place in the history.
    pub seq: Seq,
    /// The letter that matches, if it is one.
    pub message: Option<Message>,
    /// The turn that matches, if it is one.
    pub turn: Option<Turn>,
    /// The words around the match, which stands between the marks.
    pub snippet: String,
}

impl Hit {
    /// What it says, and what it says above that.
    fn texts(&self) -> (&str, Option<&str>) {
        match (&self.message, &self.turn) {
            (Some(message), _) => (message.body.as_str(), message.subject.as_deref()),
            (None, Some(turn)) => (turn.content.as_str(), None),
            (None, None) => ("", None),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The matches.
    pub hits: Vec<Hit>,
    /// Whether the search stopped before it had seen every match.
    pub partial: bool,
}

impl View<'_> {
    /// Letters and turns that match.
    ///
    /// # Errors
    /// Refused for strangers and for queries that cannot be read.
    pub fn search(&self, caller: &Caller, query: &SearchQuery) -> Viewed<Found> {
        require_member(caller)?;
        let limit = self.page(query.limit);
        let Asked { text, shown, from } = search_words::read(&query.text, self.limits.search_phrases)?;
        let query = &SearchQuery { from: query.from.clone().or(from), ..query.clone() };
        let before = query.before.unwrap_or(Seq::MAX);
        // Ranking needs all candidates, so only the latest visible matches are ranked.
        let wanted = if query.order == SearchOrder::Best {
            limit.saturating_mul(20).min(2_000).max(limit)
        } else {
            limit
        };
        let mut ranked: Vec<(f64, Place)> = Vec::new();
        let mut found = Found::default();
        let mut seen = 0;
        let mut seeker = Searcher::of(self.db, caller)?;
        // The latest letters may not be in the index yet; they come first, because they are the latest.
        let shelves: &[&Shelf] = if lay_out(self.db)? { &[&FRESH, &INDEX] } else { &[&INDEX] };
        'shelves: for shelf in shelves {
            let sql = if query.order == SearchOrder::Best { &shelf.ranked } else { &shelf.newest };
            let mut statement = self.db.prepare_cached(sql)?;
            let params = (&text, before, seeker.may_see_any(), &caller.agent);
            let mut matches = statement.query(params).map_err(bad_query)?;
            while let Some(row) = matches.next().map_err(bad_query)? {
                seen += 1;
                let enough = seen > self.limits.search_rows || ranked.len() == wanted;
                // What was found by half time is looked at in the rest of it.
                if enough || self.budget.is_half_spent() {
                    found.partial = true;
                    break 'shelves;
                }
                let Some(rank) = row.get::<_, Option<f64>>(1)? else { continue };
                if let Some(place) = self.place(&mut seeker, query, row.get(0)?)? {
                    ranked.push((rank, place));
                }
            }
        }
        // Smaller is better; of equals the later one comes first.
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.seq().cmp(&a.1.seq())));
        found.partial |= ranked.len() > limit;
        ranked.truncate(limit);
        // Only what is shown is read whole.
        let words = snippet::Words::of(&shown);
        let marks = query.marks.unwrap_or(('[', ']'));
        for (_, place) in ranked {
            self.budget.checkpoint()?;
            let Some(mut hit) = self.hit(place)? else { continue };
            let weight =
                hit.message.as_ref().map_or(0, Weigh::weight) + hit.turn.as_ref().map_or(0, Weigh::weight);
            if !found.hits.is_empty() && !self.budget.has_room(weight) {
                found.partial = true;
                break;
            }
            self.budget.bring(weight);
            let (body, subject) = hit.texts();
            hit.snippet = snippet::cut(body, subject, &words, marks);
            found.hits.push(hit);
        }
        Ok(found)
    }

    /// What the caller sees at a place that matches, if it sees anything there and the query is not narrower than that.
    fn place(&self, seeker: &mut Searcher<'_>, query: &SearchQuery, seq: Seq) -> Viewed<Option<Place>> {
        let fits = |conversation: Option<&ConversationId>, author: &AgentId| {
            query.conversation.as_ref().is_none_or(|wanted| conversation == Some(wanted))
                && query.from.as_ref().is_none_or(|wanted| author == wanted)
        };
        // What stands behind a letter's body is read only where it matters: the way there may be long.
        let glimpse = if seeker.may_see_any() || query.conversation.is_some() {
            let sql = "SELECT sender, audience, conversation FROM messages WHERE seq = ?1";
            one(self.db, sql, [seq], |row| {
                Ok(MessageHead { from: row.get(0)?, audience: Some(row.get(1)?), conversation: row.get(2)? })
            })?
        } else {
            let sql = "SELECT sender FROM messages WHERE seq = ?1";
            one(self.db, sql, [seq], |row| {
                Ok(MessageHead { from: row.get(0)?, audience: None, conversation: None })
            })?
        };
        if let Some(letter) = glimpse {
            if !fits(letter.conversation.as_ref(), &letter.from) {
                return Ok(None);
            }
            if seeker.sees_letter(self.db, seq, &letter)? {
                return Ok(Some(Place::InboxMessage(seq)));
            }
            // A letter that was recorded is a turn as well, written down right after it.
            let sql = "SELECT 1 FROM turns WHERE seq = ?1 + 1 AND message = ?1";
            if one(self.db, sql, [seq], |_| Ok(()))?.is_none() {
                return Ok(None);
            }
            let Some(turn) = rows::turn_at(self.db, seq + 1)? else { return Ok(None) };
            let reads = seeker.reads_turn(self.db, &turn)?;
            return Ok(reads.then_some(Place::Turn { seq, turn: seq + 1 }));
        }
        let Some(turn) = rows::turn_at(self.db, seq)? else { return Ok(None) };
        let reads = fits(Some(&turn.conversation), &turn.author) && seeker.reads_turn(self.db, &turn)?;
        Ok(reads.then_some(Place::Turn { seq, turn: seq }))
    }

    fn hit(&self, place: Place) -> Viewed<Option<Hit>> {
        let snippet = String::new();
        Ok(match place {
            Place::InboxMessage(seq) => rows::message_at(self.db, seq)?.map(|message| Hit {
                seq,
                message: Some(message),
                turn: None,
                snippet,
            }),
            Place::Turn { seq, turn } => rows::turn_at(self.db, turn)?.map(|turn| Hit {
                seq,
                message: None,
                turn: Some(turn),
                snippet,
            }),
        })
    }
}

/// Where a match is, and as what the caller sees it.
#[derive(Clone, Copy)]
enum Place {
    InboxMessage(Seq),
    /// A turn, which may be the record of a letter at another place.
    Turn {
        seq: Seq,
        turn: Seq,
    },
}

impl Place {
    fn seq(self) -> Seq {
        match self {
            Self::InboxMessage(seq) | Self::Turn { seq, .. } => seq,
        }
    }
}

/// One of the two indices that a search looks into. The rank comes with the match: asked for each by itself, it would
/// count the word in all letters every time. There is none for what the caller surely does not see: working it out
/// costs more than all the rest. Nor is there one for long texts, which come last: working it out takes memory and time in
/// proportion to the words that match, and no interrupt is heard meanwhile.
struct Shelf {
    ranked: String,
    newest: String,
}

impl Shelf {
    fn of(name: &str) -> Self {
        let perhaps = Searcher::MAYBE_VISIBLE_SQL.replace("{place}", &format!("{name}.rowid"));
        let matches = |rank: &str| {
            format!(
                "SELECT rowid, CASE WHEN {perhaps} THEN {rank} END FROM {name}
                 WHERE {name} MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC"
            )
        };
        Self {
            ranked: matches(&format!(
                "CASE WHEN coalesce(
                     (SELECT octet_length(body) FROM main.messages WHERE seq = {name}.rowid),
                     (SELECT octet_length(content) FROM main.turns WHERE seq = {name}.rowid), 0) <= {LONG_TEXT}
                 THEN bm25({name}, 4.0, 1.0) ELSE 0.0 END"
            )),
            newest: matches("0.0"),
        }
    }
}

/// Texts of more bytes than this are not ranked.
const LONG_TEXT: usize = 64 << 10;

static INDEX: LazyLock<Shelf> = LazyLock::new(|| Shelf::of("fulltext"));
/// What is laid out by searches for themselves.
static FRESH: LazyLock<Shelf> = LazyLock::new(|| Shelf::of("fresh"));

/// Only queries with brackets get that far.
const UNREADABLE: &str =
    "check its brackets and quotation marks, and that AND, OR and NOT stand between two words";

fn bad_query(error: rusqlite::Error) -> crate::error::EngineError {
    match &error {
        rusqlite::Error::SqliteFailure(_, Some(why))
            if why.contains("fts5") || why.contains("no such column") =>
        {
            Refusal::BadQuery { why: UNREADABLE.to_owned() }.into()
        }
        rusqlite::Error::SqliteFailure(_, Some(why))
            if why.contains("unterminated") || why.contains("unknown special") =>
        {
            Refusal::BadQuery { why: UNREADABLE.to_owned() }.into()
        }
        _ => error.into(),
    }
}

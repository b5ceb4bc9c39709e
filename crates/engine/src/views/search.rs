//! Full-text search over messages and turns, limited to what the caller may see.

use std::sync::LazyLock;

use super::page_weight::Weigh;
use super::search_words::{self, ParsedQuery};
use super::{View, Viewed, require_member, snippet};
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, ConversationId, Message, Seq, Turn};
use crate::sight::{MessageHead, Searcher};
use crate::store::{index_recent_texts, one, rows};

/// The order of matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchOrder {
    /// The best match first, among the latest.
    #[default]
    Best,
    /// The latest first.
    Newest,
}

/// A search query.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words, `"phrases"`, `prefix*`, AND, OR, NOT, `-word`, `subject:word`, `from:name`.
    pub text: String,
    /// Only in this conversation.
    pub conversation: Option<ConversationId>,
    /// Only from this agent.
    pub from: Option<AgentId>,
    /// The order.
    pub order: SearchOrder,
    /// Only before this seq.
    pub before: Option<Seq>,
    /// The characters around each match in a snippet; default `[` and `]`.
    pub marks: Option<(char, char)>,
    /// How many.
    pub limit: usize,
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its seq.
    pub seq: Seq,
    /// The message that matches, if it is one.
    pub message: Option<Message>,
    /// The turn that matches, if it is one.
    pub turn: Option<Turn>,
    /// The words around the match, with the match between the marks.
    pub snippet: String,
}

impl Hit {
    /// Its body or content, and its subject.
    fn texts(&self) -> (&str, Option<&str>) {
        match (&self.message, &self.turn) {
            (Some(message), _) => (message.body.as_str(), message.subject.as_deref()),
            (None, Some(turn)) => (turn.content.as_str(), None),
            (None, None) => ("", None),
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The matches.
    pub hits: Vec<Hit>,
    /// Whether the search stopped before it had read every match.
    pub partial: bool,
}

impl View<'_> {
    /// Messages and turns that match.
    ///
    /// # Errors
    /// Refused for strangers and for queries that cannot be parsed.
    pub fn search(&self, caller: &Caller, query: &SearchQuery) -> Viewed<Found> {
        require_member(caller)?;
        let limit = self.page(query.limit);
        let ParsedQuery { text, shown, from } = search_words::parse(&query.text, self.limits.search_phrases)?;
        let query = &SearchQuery { from: query.from.clone().or(from), ..query.clone() };
        let before = query.before.unwrap_or(Seq::MAX);
        // Ranking needs all candidates, so only the latest visible matches are ranked.
        let wanted = if query.order == SearchOrder::Best {
            limit.saturating_mul(20).min(2_000).max(limit)
        } else {
            limit
        };
        let mut ranked: Vec<(f64, Match)> = Vec::new();
        let mut found = Found::default();
        let mut rows_read = 0;
        let mut searcher = Searcher::new(self.db, caller)?;
        // The latest texts may not be in the main index yet; they come first, because they are the latest.
        let indices: &[&TextIndex] =
            if index_recent_texts(self.db)? { &[&RECENT_INDEX, &MAIN_INDEX] } else { &[&MAIN_INDEX] };
        'indices: for index in indices {
            let sql = if query.order == SearchOrder::Best { &index.ranked } else { &index.newest };
            let mut statement = self.db.prepare(sql)?;
            let params = (&text, before, searcher.may_see_any(), &caller.agent);
            let mut matches = statement.query(params).map_err(bad_query)?;
            while let Some(row) = matches.next().map_err(bad_query)? {
                rows_read += 1;
                let enough = rows_read > self.limits.search_rows || ranked.len() == wanted;
                // The second half of the time is for reading the matches that were found in the first.
                if enough || self.budget.is_half_spent() {
                    found.partial = true;
                    break 'indices;
                }
                let Some(rank) = row.get::<_, Option<f64>>(1)? else { continue };
                if let Some(found) = self.visible_match(&mut searcher, query, row.get(0)?)? {
                    ranked.push((rank, found));
                }
            }
        }
        // A smaller rank is better; of equals the later one comes first.
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.seq().cmp(&a.1.seq())));
        found.partial |= ranked.len() > limit;
        ranked.truncate(limit);
        // Only the matches on the page are read in full.
        let words = snippet::Words::parse(&shown);
        let marks = query.marks.unwrap_or(('[', ']'));
        for (_, found_at) in ranked {
            self.budget.checkpoint()?;
            let Some(mut hit) = self.hit(found_at)? else { continue };
            let weight =
                hit.message.as_ref().map_or(0, Weigh::weight) + hit.turn.as_ref().map_or(0, Weigh::weight);
            if !found.hits.is_empty() && !self.budget.has_room(weight) {
                found.partial = true;
                break;
            }
            self.budget.add_bytes(weight);
            let (body, subject) = hit.texts();
            hit.snippet = snippet::cut(body, subject, &words, marks);
            found.hits.push(hit);
        }
        Ok(found)
    }

    /// What the caller sees at the seq of a match, if anything, and if it satisfies the rest of the query.
    fn visible_match(
        &self,
        searcher: &mut Searcher<'_>,
        query: &SearchQuery,
        seq: Seq,
    ) -> Viewed<Option<Match>> {
        let fits = |conversation: Option<&ConversationId>, author: &AgentId| {
            query.conversation.as_ref().is_none_or(|wanted| conversation == Some(wanted))
                && query.from.as_ref().is_none_or(|wanted| author == wanted)
        };
        // Columns behind a long body are slow to read in SQLite, so they are read only where they matter.
        let head = if searcher.may_see_any() || query.conversation.is_some() {
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
        if let Some(head) = head {
            if !fits(head.conversation.as_ref(), &head.from) {
                return Ok(None);
            }
            if searcher.sees_message(self.db, seq, &head)? {
                return Ok(Some(Match::Message(seq)));
            }
            // A message that was recorded in a conversation is also a turn, with the next seq.
            let sql = "SELECT 1 FROM turns WHERE seq = ?1 + 1 AND message = ?1";
            if one(self.db, sql, [seq], |_| Ok(()))?.is_none() {
                return Ok(None);
            }
            let Some(turn) = rows::turn_at(self.db, seq + 1)? else { return Ok(None) };
            let reads = searcher.reads_turn(self.db, &turn)?;
            return Ok(reads.then_some(Match::Turn { seq, turn: seq + 1 }));
        }
        let Some(turn) = rows::turn_at(self.db, seq)? else { return Ok(None) };
        let reads = fits(Some(&turn.conversation), &turn.author) && searcher.reads_turn(self.db, &turn)?;
        Ok(reads.then_some(Match::Turn { seq, turn: seq }))
    }

    fn hit(&self, found: Match) -> Viewed<Option<Hit>> {
        let snippet = String::new();
        Ok(match found {
            Match::Message(seq) => rows::message_at(self.db, seq)?.map(|message| Hit {
                seq,
                message: Some(message),
                turn: None,
                snippet,
            }),
            Match::Turn { seq, turn } => rows::turn_at(self.db, turn)?.map(|turn| Hit {
                seq,
                message: None,
                turn: Some(turn),
                snippet,
            }),
        })
    }
}

/// The seq of a match, and as what the caller sees it.
#[derive(Clone, Copy)]
enum Match {
    Message(Seq),
    /// A turn, which may be the record of a message with another seq.
    Turn {
        seq: Seq,
        turn: Seq,
    },
}

impl Match {
    fn seq(self) -> Seq {
        match self {
            Self::Message(seq) | Self::Turn { seq, .. } => seq,
        }
    }
}

/// The statements for one of the two full-text indices. The rank is computed in the query: `bm25` in a query per match
/// would count the word in all texts each time. It is not computed for texts that the caller surely does not see, because
/// it costs more than everything else, nor for long texts, which come last: it takes memory and time in proportion to the
/// words that match, and cannot be interrupted.
struct TextIndex {
    ranked: String,
    newest: String,
}

impl TextIndex {
    fn new(name: &str) -> Self {
        let maybe_visible = Searcher::MAYBE_VISIBLE_SQL.replace("{place}", &format!("{name}.rowid"));
        let matches = |rank: &str| {
            format!(
                "SELECT rowid, CASE WHEN {maybe_visible} THEN {rank} END FROM {name}
                 WHERE {name} MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC"
            )
        };
        Self {
            ranked: matches(&format!(
                "CASE WHEN coalesce(
                     (SELECT octet_length(body) FROM main.messages WHERE seq = {name}.rowid),
                     (SELECT octet_length(content) FROM main.turns WHERE seq = {name}.rowid), 0) <= {MAX_RANKED_BYTES}
                 THEN bm25({name}, 4.0, 1.0) ELSE 0.0 END"
            )),
            newest: matches("0.0"),
        }
    }
}

/// Texts of more bytes than this are not ranked.
const MAX_RANKED_BYTES: usize = 64 << 10;

static MAIN_INDEX: LazyLock<TextIndex> = LazyLock::new(|| TextIndex::new("fulltext"));
/// The temporary index that searches build on their connection.
static RECENT_INDEX: LazyLock<TextIndex> = LazyLock::new(|| TextIndex::new("recent"));

/// Only queries with brackets reach SQLite unparsed and can fail there.
const SYNTAX_HINT: &str =
    "check its brackets and quotation marks, and that AND, OR and NOT stand between two words";

fn bad_query(error: rusqlite::Error) -> crate::error::EngineError {
    match &error {
        rusqlite::Error::SqliteFailure(_, Some(why))
            if why.contains("fts5") || why.contains("no such column") =>
        {
            Refusal::BadQuery { why: SYNTAX_HINT.to_owned() }.into()
        }
        rusqlite::Error::SqliteFailure(_, Some(why))
            if why.contains("unterminated") || why.contains("unknown special") =>
        {
            Refusal::BadQuery { why: SYNTAX_HINT.to_owned() }.into()
        }
        _ => error.into(),
    }
}

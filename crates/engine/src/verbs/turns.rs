//! The verbs of turns: saying something in a conversation, opening threads, storing summaries.

mod placing;

pub(super) use placing::{Parties, Place, find_place};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::conversations::{self, check_open, own_part, readable, require};
use super::{Decide, Decided, Write};
use crate::commit::NewTurn;
use crate::error::Refusal;
use crate::nouns::{
    AgentId, ContentType, Conversation, ConversationId, Fact, Json, Participant, Seq, Sight, Summary, Thread,
    ThreadId, Turn, TurnId, TurnSource, TurnVisibility,
};
use crate::sight::{self, Reader};
use crate::store::rows;

/// Adds a turn to a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Say {
    /// The conversation.
    pub conversation: ConversationId,
    /// The thread.
    #[serde(default)]
    pub thread: Option<ThreadId>,
    /// Its content type.
    pub content_type: String,
    /// Its content.
    pub content: Json,
    /// The turn it replies to.
    #[serde(default)]
    pub in_reply_to: Option<TurnId>,
    /// Which participants may read it; all if absent.
    #[serde(default)]
    pub visibility: Option<TurnVisibility>,
    /// Any other data.
    #[serde(default)]
    pub meta: Option<Json>,
}

/// The first turn of a new conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstTurn {
    /// Its content type.
    pub content_type: String,
    /// Its content.
    pub content: Json,
    /// Which participants may read it; all if absent.
    #[serde(default)]
    pub visibility: Option<TurnVisibility>,
}

impl FirstTurn {
    /// Refuses a bad content type, and a visibility that names an agent which will not take part.
    pub(super) fn check(&self, takes_part: impl Fn(&AgentId) -> bool) -> Decided<()> {
        check_content_type(&self.content_type)?;
        let Some(TurnVisibility::Agents(agents)) = &self.visibility else { return Ok(()) };
        match agents.iter().find(|agent| !takes_part(agent)) {
            Some(agent) => Err(Refusal::NoSuchParticipant { agent: agent.clone() }.into()),
            None => Ok(()),
        }
    }
}

impl Say {
    /// Whether all participants may read it and it names no thread and no other turn.
    pub(crate) fn is_plain(&self) -> bool {
        self.thread.is_none()
            && self.in_reply_to.is_none()
            && matches!(self.visibility, None | Some(TurnVisibility::All))
    }

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Turn> + use<'v>> {
        let place = self.find_place(to)?;
        Ok(move |to: &mut Write<'_>| match place {
            SayIn::Cached(conversation_seq) => {
                let turn = self.turn(to, self.conversation.clone());
                record_plain(to, self, conversation_seq, turn)
            }
            SayIn::Found(mut conversation, part) => {
                if let Some(part) = part {
                    conversations::accept(to, &part)?;
                }
                let turn = self.turn(to, conversation.id.clone());
                record(to, &mut conversation, turn, None)
            }
        })
    }

    fn find_place(&self, to: &Decide<'_>) -> Decided<SayIn> {
        // A cached conversation was checked when it was cached.
        let cached = to.cache.borrow_mut().conversation_for(self).map(|cached| cached.conversation.seq);
        if let Some(conversation_seq) = cached {
            check_content_type(&self.content_type)?;
            return Ok(SayIn::Cached(conversation_seq));
        }
        let conversation = readable(to, &self.conversation)?;
        check_open(&conversation)?;
        require(to, &conversation, |may| may.can_send, "canSend")?;
        check_not_suspended(to)?;
        check_content_type(&self.content_type)?;
        check_visibility(to, &conversation, self.visibility.as_ref())?;
        if let Some(thread) = self.thread {
            thread_in(to, &conversation.id, thread)?;
        }
        if let Some(turn) = self.in_reply_to {
            turn_in(to, &conversation, turn)?;
        }
        // An administrator may speak without taking part.
        let part = own_part(to, &conversation).ok();
        Ok(SayIn::Found(Box::new(conversation), part))
    }

    fn turn(&self, to: &mut Write<'_>, conversation: ConversationId) -> Turn {
        Turn {
            seq: to.next_seq(),
            id: TurnId(to.fresh_id()),
            conversation,
            thread: self.thread,
            author: to.caller.agent.clone(),
            content_type: self.content_type.clone(),
            content: self.content.clone(),
            in_reply_to: self.in_reply_to,
            visibility: self.visibility.clone().unwrap_or(TurnVisibility::All),
            source: TurnSource::Explicit,
            meta: self.meta.clone(),
            at: to.now,
        }
    }
}

/// Where a turn is recorded.
enum SayIn {
    /// In a conversation that the writer has cached, by its seq.
    Cached(Seq),
    /// In a conversation that was read, with the caller's part in it.
    Found(Box<Conversation>, Option<Participant>),
}

/// Records the first turn of a new conversation.
pub(super) fn record_first(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    first: &FirstTurn,
) -> rusqlite::Result<Turn> {
    let turn = Turn {
        seq: to.next_seq(),
        id: TurnId(to.fresh_id()),
        conversation: conversation.id.clone(),
        thread: None,
        author: to.caller.agent.clone(),
        content_type: first.content_type.clone(),
        content: first.content.clone(),
        in_reply_to: None,
        visibility: first.visibility.clone().unwrap_or(TurnVisibility::All),
        source: TurnSource::Explicit,
        meta: None,
        at: to.now,
    };
    record(to, conversation, turn, None)
}

/// Refuses suspended agents. A caller that is not registered cannot be suspended.
fn check_not_suspended(to: &Decide<'_>) -> Decided<()> {
    match rows::active_agent(to.db, &to.caller.agent)? {
        Some(agent) if agent.is_suspended() => {
            Err(Refusal::WrongState { agent: agent.id, state: agent.state }.into())
        }
        _ => Ok(()),
    }
}

/// Records a turn in a cached conversation.
fn record_plain(to: &mut Write<'_>, say: &Say, conversation_seq: Seq, turn: Turn) -> rusqlite::Result<Turn> {
    let turn = insert(to, conversation_seq, turn, None)?;
    let now = to.now;
    let sight = match to.cache.borrow_mut().conversation_for(say) {
        Some(cached) => {
            cached.count(&turn.content_type, now);
            cached.sight(&turn.author)
        }
        None => Sight::Ask,
    };
    emit_added(to, turn, sight)
}

fn emit_added(to: &mut Write<'_>, turn: Arc<Turn>, sight: Sight) -> rusqlite::Result<Turn> {
    to.emit_turn(Fact::TurnAdded { conversation: turn.conversation.clone() }, turn.clone(), sight)?;
    Ok(Arc::unwrap_or_clone(turn))
}

fn insert(
    to: &mut Write<'_>,
    conversation_seq: Seq,
    turn: Turn,
    message: Option<Seq>,
) -> rusqlite::Result<Arc<Turn>> {
    let turn = Arc::new(turn);
    to.insert_turn(NewTurn { turn: turn.clone(), conversation_seq, message })?;
    Ok(turn)
}

/// Records a turn and counts it. `message` is the seq of the message that the turn stands for.
fn record(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    turn: Turn,
    message: Option<Seq>,
) -> rusqlite::Result<Turn> {
    let turn = insert(to, conversation.seq, turn, message)?;
    let sql = "INSERT INTO turn_types(conversation, content_type, turns) VALUES(?1, ?2, 1)
               ON CONFLICT DO UPDATE SET turns = turns + 1";
    to.exec(sql, (&turn.conversation, &turn.content_type))?;
    if let Some(thread) = turn.thread {
        let sql = "INSERT INTO thread_authors(thread, agent) VALUES(?1, ?2) ON CONFLICT DO NOTHING";
        let new_author = to.exec(sql, (thread, &turn.author))? > 0;
        let sql =
            "UPDATE threads SET turn_count = turn_count + 1, participant_count = participant_count + ?2,
                       updated_at = ?3 WHERE id = ?1";
        to.exec(sql, (thread, new_author, to.now))?;
    }
    conversation.turn_count += 1;
    conversations::touch(to, conversation)?;
    let sight = sight::of_turn(to.db, conversation, &turn)?;
    emit_added(to, turn, sight)
}

/// Opens a thread from a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenThread {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn it starts from.
    pub root: TurnId,
    /// The thread it branches off from.
    #[serde(default)]
    pub parent: Option<ThreadId>,
    /// Its subject.
    #[serde(default)]
    pub subject: Option<String>,
}

impl OpenThread {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Thread> + use<'v>> {
        let conversation = readable(to, &self.conversation)?;
        check_open(&conversation)?;
        require(to, &conversation, |may| may.can_create_threads, "canCreateThreads")?;
        let depth = match self.parent {
            Some(parent) => thread_in(to, &conversation.id, parent)?.depth + 1,
            None => 1,
        };
        if depth > to.rules.thread_depth {
            return Err(Refusal::ThreadTooDeep { limit: to.rules.thread_depth }.into());
        }
        turn_in(to, &conversation, self.root)?;
        Ok(move |to: &mut Write<'_>| self.write(to, conversation, depth))
    }

    fn write(
        &self,
        to: &mut Write<'_>,
        mut conversation: Conversation,
        depth: u32,
    ) -> rusqlite::Result<Thread> {
        let thread = Thread {
            id: ThreadId(to.fresh_id()),
            conversation: conversation.id.clone(),
            parent: self.parent,
            root: self.root,
            subject: self.subject.clone(),
            depth,
            turn_count: 0,
            participant_count: 0,
            created_by: to.caller.agent.clone(),
            created_at: to.now,
            updated_at: to.now,
            seq: to.next_seq(),
        };
        let sql = "INSERT INTO threads(id, conversation, parent, root, subject, depth, turn_count, participant_count,
                       created_by, created_at, updated_at, seq) VALUES(?1,?2,?3,?4,?5,?6,0,0,?7,?8,?8,?9)";
        let params = (
            thread.id,
            &thread.conversation,
            thread.parent,
            thread.root,
            &thread.subject,
            thread.depth,
            &thread.created_by,
            thread.created_at,
            thread.seq,
        );
        to.exec(sql, params)?;
        conversation.thread_count += 1;
        conversations::touch(to, &mut conversation)?;
        let sight = sight::of_conversation(to.db, &conversation)?;
        to.emit(Fact::ThreadCreated { thread: Box::new(thread.clone()) }, sight)?;
        Ok(thread)
    }
}

/// Stores a summary that was made outside, so that it need not be made again until there are further turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeepSummary {
    /// The conversation.
    pub conversation: ConversationId,
    /// The part of it that is summarised, and the readers it is for.
    pub part: String,
    /// The summary.
    pub summary: Summary,
    /// The last turn it takes into account.
    pub up_to: Seq,
    /// Whether all participants may read what the summary is made of, so that it is announced to them.
    pub announce: bool,
}

impl KeepSummary {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<()> + use<'v>> {
        let conversation = readable(to, &self.conversation)?;
        if !to.caller.rights.admin {
            own_part(to, &conversation)?;
        }
        Ok(move |to: &mut Write<'_>| {
            let sql =
                "INSERT INTO summaries(conversation, part, summary, up_to, at) VALUES(?1, ?2, ?3, ?4, ?5)
                       ON CONFLICT DO UPDATE SET summary = ?3, up_to = ?4, at = ?5";
            let text = serde_json::to_string(&self.summary).unwrap_or_default();
            to.exec(sql, (&self.conversation, &self.part, text, self.up_to, to.now))?;
            if self.announce {
                let sight = sight::of_conversation(to.db, &conversation)?;
                let text = self.summary.text.clone();
                to.emit(Fact::SummaryGenerated { conversation: conversation.id, text }, sight)?;
            }
            Ok(())
        })
    }
}

/// The turn, if it belongs to the conversation and the caller may read it.
pub(super) fn turn_in(to: &Decide<'_>, conversation: &Conversation, id: TurnId) -> Decided<Turn> {
    let reader = sight::reads_conversation(to.db, to.caller, conversation)?;
    turn_read_by(to, &conversation.id, id, reader.as_ref())
}

fn turn_read_by(
    to: &Decide<'_>,
    conversation: &ConversationId,
    id: TurnId,
    reader: Option<&Reader>,
) -> Decided<Turn> {
    let turn = rows::turn_by_id(to.db, id)?.filter(|turn| turn.conversation == *conversation);
    match (turn, reader) {
        // A turn that the caller could follow live can be answered, even if the caller may not look it up.
        (Some(turn), Some(reader)) if reader.reads(&turn) || reader.follows(&turn) => Ok(turn),
        _ => Err(Refusal::NoSuchTurn.into()),
    }
}

fn thread_in(to: &Decide<'_>, conversation: &ConversationId, id: ThreadId) -> Decided<Thread> {
    rows::thread_by_id(to.db, id)?
        .filter(|thread| thread.conversation == *conversation)
        .ok_or_else(|| Refusal::NoSuchThread.into())
}

fn check_content_type(text: &str) -> Decided<()> {
    match ContentType::new(text) {
        Some(_) => Ok(()),
        None => Err(Refusal::BadContentType { content_type: text.chars().take(128).collect() }.into()),
    }
}

/// Refuses a turn for certain agents if one of them does not take part.
fn check_visibility(
    to: &Decide<'_>,
    conversation: &Conversation,
    given: Option<&TurnVisibility>,
) -> Decided<()> {
    check_visibility_of(to, given, |agent| conversations::takes_part(to, &conversation.id, agent))
}

fn check_visibility_of(
    to: &Decide<'_>,
    given: Option<&TurnVisibility>,
    takes_part: impl Fn(&AgentId) -> rusqlite::Result<bool>,
) -> Decided<()> {
    let Some(TurnVisibility::Agents(agents)) = given else { return Ok(()) };
    if agents.len() > to.rules.participants as usize {
        let limit = to.rules.participants.into();
        return Err(Refusal::TooMany { what: "agents that a turn is for", limit }.into());
    }
    for agent in agents {
        if !takes_part(agent)? {
            return Err(Refusal::NoSuchParticipant { agent: agent.clone() }.into());
        }
    }
    Ok(())
}

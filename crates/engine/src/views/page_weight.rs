//! Sizes of rows, so that a page ends before it fills the memory: a page is limited in rows and in bytes.

use rusqlite::{Params, Row};

use super::inbox::InboxMessage;
use super::{Page, View, Viewed};
use crate::nouns::{
    Address, Agent, AgentId, Contact, Conversation, Delivery, Json, Message, Participant, Reservation, Run,
    Scope, Task, Thread, Turn, TurnVisibility,
};

/// What a row counts besides its texts, in bytes.
const ROW_BYTES: usize = 256;

/// About how many bytes a row takes in an answer. Texts that callers choose count in full.
pub(crate) trait Weigh {
    fn weight(&self) -> usize;
}

/// Rows of one query, up to a page's bytes.
pub(super) struct RowBatch<T> {
    pub(super) rows: Vec<T>,
    /// Whether there were more rows.
    pub(super) cut: bool,
}

impl<T> RowBatch<T> {
    /// Several batches, each in the order of its keys, as one. Where one was cut, the others end there, too.
    pub(super) fn merged<K: Ord + Copy>(
        parts: Vec<Self>,
        newest_first: bool,
        limit: usize,
        key: impl Fn(&T) -> K,
    ) -> Self {
        let ends = parts.iter().filter(|part| part.cut).filter_map(|part| part.rows.last()).map(&key);
        let end = if newest_first { ends.max() } else { ends.min() };
        let mut rows: Vec<T> = parts.into_iter().flat_map(|part| part.rows).collect();
        match newest_first {
            true => rows.sort_by_key(|row| std::cmp::Reverse(key(row))),
            false => rows.sort_by_key(&key),
        }
        rows.dedup_by_key(|row| key(row));
        if let Some(end) = end {
            rows.retain(|row| if newest_first { key(row) >= end } else { key(row) <= end });
        }
        let more = rows.len() > limit.saturating_add(1);
        rows.truncate(limit.saturating_add(1));
        Self { rows, cut: end.is_some() || more }
    }
}

impl View<'_> {
    /// The rows of a cached query, up to a page's bytes and at least one. Further rows are not read.
    pub(super) fn read_rows<T: Weigh>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Viewed<RowBatch<T>> {
        let mut statement = self.db.prepare(sql)?;
        let mut found = statement.query(params)?;
        let mut batch = RowBatch { rows: Vec::new(), cut: false };
        let mut bytes = 0;
        while let Some(row) = found.next()? {
            if bytes >= self.limits.page_bytes {
                batch.cut = true;
                break;
            }
            let row = read(row)?;
            bytes += row.weight();
            batch.rows.push(row);
        }
        Ok(batch)
    }

    /// A page of rows that were read with a limit of one more than the page holds. Ends early where the answer is full.
    pub(super) fn page_of<T: Weigh, C>(
        &self,
        batch: RowBatch<T>,
        limit: usize,
        key: impl FnOnce(&T) -> C,
    ) -> Page<T, C> {
        let mut page = self.page_builder(limit);
        page.more = batch.cut;
        for row in batch.rows {
            if !page.push(row) {
                break;
            }
        }
        page.finish(key)
    }

    /// Counts a single row of an answer towards the read's budget.
    pub(super) fn counted<T: Weigh>(&self, one: T) -> T {
        self.budget.add_bytes(one.weight());
        one
    }

    /// An empty page.
    pub(super) fn page_builder<T: Weigh>(&self, limit: usize) -> PageBuilder<'_, T> {
        PageBuilder { view: self, limit, items: Vec::new(), more: false }
    }
}

/// A page that is being filled.
pub(super) struct PageBuilder<'v, T> {
    view: &'v View<'v>,
    limit: usize,
    pub(super) items: Vec<T>,
    /// Whether a row found no room.
    pub(super) more: bool,
}

impl<T: Weigh> PageBuilder<'_, T> {
    /// Adds a row to the page; false if there is no room, and then none for later rows either. The first row always has
    /// room.
    pub(super) fn push(&mut self, row: T) -> bool {
        let weight = row.weight();
        let budget = self.view.budget;
        if self.items.len() >= self.limit || (!self.items.is_empty() && !budget.has_room(weight)) {
            self.more = true;
            return false;
        }
        budget.add_bytes(weight);
        self.items.push(row);
        true
    }

    /// Whether it has as many rows as it may.
    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= self.limit
    }

    pub(super) fn finish<C>(self, key: impl FnOnce(&T) -> C) -> Page<T, C> {
        let next = if self.more { self.items.last().map(key) } else { None };
        Page { items: self.items, next }
    }
}

fn text(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn json(json: Option<&Json>) -> usize {
    json.map_or(0, |json| json.as_str().len())
}

impl Weigh for Message {
    fn weight(&self) -> usize {
        let addresses: usize = self.to.iter().map(address).sum();
        let texts = [&self.subject, &self.correlation, &self.key, &self.envelope];
        ROW_BYTES
            + self.body.as_str().len()
            + self.kind.len()
            + addresses
            + texts.into_iter().map(|it| text(it.as_ref())).sum::<usize>()
            + json(self.meta.as_ref())
    }
}

fn address(address: &Address) -> usize {
    32 + match address {
        Address::Agent(agent) => agent.as_str().len(),
        Address::Role { role, .. } => role.len(),
        Address::Remote { agent, .. } => agent.len(),
        _ => 0,
    }
}

impl Weigh for InboxMessage {
    fn weight(&self) -> usize {
        self.message.weight() + self.delivery.weight()
    }
}

impl Weigh for (std::sync::Arc<Message>, AgentId) {
    fn weight(&self) -> usize {
        self.0.weight()
    }
}

impl Weigh for Delivery {
    fn weight(&self) -> usize {
        ROW_BYTES + text(self.note.as_ref())
    }
}

impl Weigh for Turn {
    fn weight(&self) -> usize {
        let visible_to = match &self.visibility {
            TurnVisibility::Agents(agents) => agents.len() * 32,
            TurnVisibility::Roles(roles) => roles.iter().map(String::len).sum(),
            TurnVisibility::All | TurnVisibility::Internal | TurnVisibility::Private => 0,
        };
        ROW_BYTES
            + self.content.as_str().len()
            + self.content_type.len()
            + json(self.meta.as_ref())
            + visible_to
    }
}

impl Weigh for Conversation {
    fn weight(&self) -> usize {
        ROW_BYTES + self.kind.len() + text(self.subject.as_ref()) + json(self.meta.as_ref())
    }
}

impl Weigh for Participant {
    fn weight(&self) -> usize {
        ROW_BYTES + self.role.len()
    }
}

impl Weigh for Thread {
    fn weight(&self) -> usize {
        ROW_BYTES + text(self.subject.as_ref())
    }
}

impl Weigh for Agent {
    fn weight(&self) -> usize {
        let texts = [&self.name, &self.description, &self.role];
        let values = [&self.keys, &self.capabilities, &self.meta];
        ROW_BYTES
            + texts.into_iter().map(|it| text(it.as_ref())).sum::<usize>()
            + values.into_iter().map(|it| json(it.as_ref())).sum::<usize>()
            + self.scopes.len() * 32
    }
}

impl Weigh for Task {
    fn weight(&self) -> usize {
        ROW_BYTES
            + text(self.title.as_ref())
            + text(self.description.as_ref())
            + json(self.result.as_ref())
            + json(self.meta.as_ref())
            + self.contributors.iter().map(String::len).sum::<usize>()
    }
}

impl Weigh for Scope {
    fn weight(&self) -> usize {
        ROW_BYTES
            + text(self.name.as_ref())
            + text(self.description.as_ref())
            + json(self.meta.as_ref())
            + self.roles.iter().map(String::len).sum::<usize>()
    }
}

impl Weigh for Contact {
    fn weight(&self) -> usize {
        ROW_BYTES + text(self.reason.as_ref())
    }
}

impl Weigh for Reservation {
    fn weight(&self) -> usize {
        ROW_BYTES
            + self.paths.iter().map(String::len).sum::<usize>()
            + self.scope.len()
            + text(self.reason.as_ref())
            + json(self.meta.as_ref())
            + self.told.as_ref().map_or(0, |told| told.len() * 32)
    }
}

impl Weigh for Run {
    fn weight(&self) -> usize {
        ROW_BYTES + self.instance.len() + self.name.len() + json(self.state.as_ref())
    }
}

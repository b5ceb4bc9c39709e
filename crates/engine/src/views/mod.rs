//! Views: everything a caller can read. Each checks the caller's rights; a page costs the same however long the list
//! is.

mod by_sender_key;
mod contacts;
mod conversations;
mod delivery_index;
mod directory;
mod events;
mod inbox;
mod messages;
mod office;
mod outbound;
mod outstanding;
mod page_weight;
mod reservations;
mod runs;
mod scopes;
mod search;
mod search_words;
mod short_ids;
mod snippet;
mod stats;
mod summaries;
mod tasks;
mod turns;

pub use conversations::{ConversationQuery, ConversationStats};
pub use delivery_index::DeliveryIndexRow;
pub use directory::{AgentQuery, Relatives, Structure};
pub use events::Replay;
pub(crate) use events::head;
pub use inbox::{InboxMessage, InboxOrder, InboxQuery, MailCounts};
pub use messages::Tracked;
pub use office::OfficeStats;
pub(crate) use office::rules;
pub use outbound::Outbound;
pub(crate) use page_weight::Weigh;
pub use reservations::{Clash, ReservationQuery};
pub use runs::{RunMessageRow, RunRecord};
pub use scopes::ScopeQuery;
pub use search::{Found, Hit, SearchOrder, SearchQuery};
pub use short_ids::Named;
pub use stats::{AgentGroup, Link, Minute, RecentActivity};
pub use summaries::{Gist, Part};
pub use tasks::TaskQuery;
pub use turns::TurnQuery;

use crate::budget::Budget;
use crate::error::{EngineError, Refusal};
use crate::limits::Limits;
use crate::nouns::{Caller, Millis};
use crate::store::Db;

/// The result of a view.
pub type Viewed<T> = Result<T, EngineError>;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page starts; absent on the last.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// Makes a page of rows that were read with a limit of one more than the page holds.
    fn from_rows(mut items: Vec<T>, limit: usize, key: impl FnOnce(&T) -> C) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(key) } else { None };
        Self { items, next }
    }

    /// Whether this is the last page.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.next.is_none()
    }
}

/// A snapshot of the database.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) db: Db<'a>,
    pub(crate) limits: &'a Limits,
    /// The time by which expiry is decided.
    pub(crate) now: Millis,
    /// What the read may still cost.
    pub(crate) budget: &'a Budget,
}

impl View<'_> {
    /// Whether a caller that reads several pages in one snapshot should stop: the answer is full, or half of the time
    /// is used. Continuing may end in a refusal.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.budget.is_full() || self.budget.is_half_spent()
    }

    /// A page size within the limit.
    fn page(&self, asked: usize) -> usize {
        asked.clamp(1, self.limits.page)
    }
}

/// The limit for a query: one more than the page holds, to know whether there are more.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// Refuses callers that are not members of the realm.
fn require_member(caller: &Caller) -> Viewed<()> {
    if caller.rights.member {
        Ok(())
    } else {
        Err(Refusal::NotAllowed { need: "to be a member of the realm" }.into())
    }
}

/// Refuses callers that are not administrators.
fn require_admin(caller: &Caller) -> Viewed<()> {
    if caller.rights.admin { Ok(()) } else { Err(Refusal::NotAllowed { need: "to run the office" }.into()) }
}

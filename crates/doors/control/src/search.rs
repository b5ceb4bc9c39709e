//! The method that searches messages and turns.

use posthaste_engine::views::{SearchOrder, SearchQuery};
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::refused;
use super::from_wire::{acting, optional};
use super::table::Call;
use super::to_wire;

pub(super) async fn search(
    call: Call<'_>,
    given: wire::SearchParams,
) -> Result<wire::SearchResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let query = SearchQuery {
        text: given.query,
        conversation: optional(given.conversation)?,
        from: optional(given.from)?,
        order: if given.newest { SearchOrder::Newest } else { SearchOrder::Best },
        before: given.before,
        limit: given.limit.0,
        marks: None,
    };
    let found = call.engine.read(move |view| view.search(&caller, &query)).await.map_err(refused)?;
    // Only matches in the order of the log can be paged.
    let last = found.hits.last().filter(|_| given.newest && found.partial);
    Ok(wire::SearchResult {
        hits: found.hits.iter().map(to_wire::hit).collect(),
        partial: found.partial,
        next: last.map(|hit| hit.seq),
    })
}

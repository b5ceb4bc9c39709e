//! Methods about reservations.

use posthaste_engine::Engine;
use posthaste_engine::nouns::Audience;
use posthaste_engine::verbs::reservations::{Release, Reserve, Which};
use posthaste_engine::views::ReservationQuery;
use posthaste_host::Host;
use posthaste_host::projects::alias;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::refused;
use super::from_wire::{acting, optional};
use super::table::Call;
use super::{VIA, to_wire};

/// Reservations that are released by one call that names none.
const MAX_RELEASED: usize = 1_000;

pub(super) async fn reserve(
    call: Call<'_>,
    given: wire::ReserveParams,
) -> Result<wire::ReserveResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let verb = Reserve {
        key: given.key,
        scope: scope_here(call.host, call.engine, &given.scope, given.directory.as_deref()).await?,
        paths: given.paths,
        exclusive: given.exclusive,
        reason: given.reason,
        issued_at: None,
        expires_at: given.expires_at,
        audience: Audience::Observers,
        meta: None,
    };
    let reserved = call.engine.submit(&caller, verb).await.map_err(refused)?;
    Ok(wire::ReserveResult {
        reservation: to_wire::reservation(&reserved.reservation),
        conflicts: reserved.conflicts.iter().map(to_wire::conflict).collect(),
    })
}

/// A scope in the form in which scopes are compared. For a caller that works in one of several projects of the realm,
/// `project` is that one.
async fn scope_here(
    host: &Host,
    engine: &Engine,
    scope: &str,
    directory: Option<&str>,
) -> Result<String, ErrorObject> {
    if scope == "project"
        && let Some(directory) = directory.and_then(alias)
    {
        let found = host.find_project(engine.realm(), &directory).await.map_err(refused)?;
        if let Some(found) = found.filter(|found| found.realm == *engine.realm()) {
            return Ok(found.scope());
        }
    }
    host.scope_in(engine.realm(), scope).await.map_err(refused)
}

pub(super) async fn release(
    call: Call<'_>,
    given: wire::ReleaseParams,
) -> Result<wire::ReleaseResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let named = given.keys.into_iter().map(Which::Key);
    let mut which: Vec<Which> = given.ids.into_iter().map(Which::Number).chain(named).collect();
    if which.is_empty() {
        let scope = match given.scope {
            Some(scope) => {
                Some(scope_here(call.host, call.engine, &scope, given.directory.as_deref()).await?)
            }
            None => None,
        };
        let asking = caller.clone();
        let owner = Some(caller.agent.clone());
        let query = ReservationQuery { scope, owner, limit: MAX_RELEASED, ..Default::default() };
        let held = call.engine.read(move |view| view.reservations(&asking, &query)).await.map_err(refused)?;
        which = held.items.iter().map(|held| Which::Number(held.seq)).collect();
        if which.is_empty() {
            return Ok(wire::ReleaseResult::default());
        }
    }
    let verb = Release { which, owner: None };
    let released = call.engine.submit(&caller, verb).await.map_err(refused)?;
    Ok(wire::ReleaseResult { released: released.iter().map(to_wire::reservation).collect() })
}

pub(super) async fn reservations(
    call: Call<'_>,
    given: wire::ReservationsParams,
) -> Result<wire::ReservationsResult, ErrorObject> {
    let caller = call.identity.caller(VIA);
    let scope = match given.scope {
        Some(scope) => Some(call.host.scope_in(call.engine.realm(), &scope).await.map_err(refused)?),
        None => None,
    };
    let query = ReservationQuery {
        scope,
        owner: optional(given.owner)?,
        ended: given.ended,
        after: given.after,
        limit: given.limit.0,
    };
    let page = call.engine.read(move |view| view.reservations(&caller, &query)).await.map_err(refused)?;
    Ok(wire::ReservationsResult {
        reservations: page.items.iter().map(to_wire::reservation).collect(),
        next: page.next,
    })
}

//! Methods about projects and realms, for administrators: which path means which realm, and what there is.

use std::collections::HashMap;

use posthaste_engine::Engine;
use posthaste_engine::nouns::{Caller, RealmName, TokenRole};
use posthaste_engine::verbs::claims::Claimed;
use posthaste_host::Host;
use posthaste_host::caller::Identity;
use posthaste_host::projects::alias;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;

use super::errors::{bad_params, denied, refused};
use super::from_wire::name;
use super::table::Call;
use super::to_wire;

/// Names of one work tree.
const MAX_NAMES: usize = 8;
/// Projects or realms of one page; each realm is opened to be counted.
const MAX_ROWS: usize = 200;
/// Paths that one row lists.
const MAX_PATHS: usize = 20;

/// What is in a realm.
#[derive(Clone, Debug, Default)]
struct Counts {
    agents: Option<i64>,
    messages: Option<i64>,
    /// Why it cannot be read, if so.
    problem: Option<String>,
}

/// Opens a realm, which is made if need be.
pub(super) async fn open(
    call: Call<'_>,
    given: wire::RealmOpenParams,
) -> Result<wire::RealmOpenResult, ErrorObject> {
    let realm: RealmName = name(given.name)?;
    if !call.host.may_administer(call.engine, call.identity) {
        return Err(denied("only administrators make realms"));
    }
    let made = !call.host.office().has_realm(&realm);
    call.host.office().realm(&realm).await.map_err(refused)?;
    Ok(wire::RealmOpenResult { name: realm.to_string(), made })
}

/// Claims a work tree for the realm of the call. A realm that was made for it earlier is left only if it has no messages.
pub(super) async fn claim(
    call: Call<'_>,
    given: wire::ProjectClaimParams,
) -> Result<wire::ProjectClaimResult, ErrorObject> {
    let Call { host, engine, identity } = call;
    check(host, engine, identity)?;
    if given.names.is_empty() || given.names.len() > MAX_NAMES {
        return Err(bad_params(format!("names: 1 to {MAX_NAMES} are needed")));
    }
    let names: Vec<String> = given.names.iter().map(|name| alias_of(name)).collect::<Result<_, _>>()?;
    let home = engine.realm();
    let standing = host.claim_tree(home, &names, &identity.name).await.map_err(refused)?;
    let standing = standing.ok_or_else(|| bad_params("names: at least one is needed"))?;
    let mut claim = standing.claim;
    let mut moved_from = None;
    if claim.realm != *home && counts(host, &claim.realm).await.messages == Some(0) {
        let moved = host.move_name(home, &claim.alias, home, &identity.name).await.map_err(refused)?;
        moved_from = moved.before.map(|before| before.realm);
        claim = moved.claim;
    }
    let counts = counts(host, &claim.realm).await;
    // Names below that mean the realm which the tree itself means now are not apart.
    let apart = standing.apart.into_iter().filter(|other| other.realm != claim.realm);
    let apart = apart.map(|other| other.alias).take(MAX_PATHS).collect();
    Ok(wire::ProjectClaimResult {
        shared: claim.realm == *home,
        path: claim.alias,
        realm: claim.realm.to_string(),
        wanted_realm: home.to_string(),
        moved_from: to_wire::optional(moved_from.as_ref()),
        agents: counts.agents,
        messages: counts.messages,
        apart,
    })
}

/// Has a path mean another realm from now on.
pub(super) async fn relocate(
    call: Call<'_>,
    given: wire::ProjectMoveParams,
) -> Result<wire::ProjectMoveResult, ErrorObject> {
    let Call { host, engine, identity } = call;
    let realm: RealmName = name(given.realm)?;
    check(host, engine, identity)?;
    let (home, path) = (engine.realm(), alias_of(&given.path)?);
    if home != host.default_realm() {
        let why = format!(
            "paths that callers of realm {home} name always mean realm {home}; only those of the default realm \
             {} can be moved",
            host.default_realm()
        );
        return Err(bad_params(why));
    }
    if !host.office().has_realm(&realm) {
        let why = format!("there is no realm {realm}; `posthaste realms list` shows those there are");
        return Err(bad_params(why));
    }
    // Callers of the default realm come along: which callers a realm that was not made for projects lets in is for the
    // operator to decide.
    let is_open = realm == *home || host.is_made_for_project(&realm).await.map_err(refused)?;
    if !is_open && !identity.is_operator() {
        return Err(denied("only the operator's key sends sessions into a realm with callers of its own"));
    }
    let moved = host.move_name(home, &path, &realm, &identity.name).await.map_err(refused)?;
    let before = match moved.before.filter(|before| before.realm != realm) {
        Some(before) => {
            let Counts { agents, messages, problem } = counts(host, &before.realm).await;
            Some(wire::FormerRealm { agents, messages, problem, realm: before.realm.to_string() })
        }
        None => None,
    };
    Ok(wire::ProjectMoveResult { path, realm: moved.claim.realm.to_string(), before })
}

/// Takes a claim back.
pub(super) async fn release(
    call: Call<'_>,
    given: wire::ProjectReleaseParams,
) -> Result<wire::ProjectReleaseResult, ErrorObject> {
    let Call { host, engine, identity } = call;
    check(host, engine, identity)?;
    let path = alias_of(&given.path)?;
    let released = host.release_name(engine.realm(), &path).await.map_err(refused)?;
    let Some(released) = released else {
        let why = format!("{path} is not claimed; `posthaste projects list` shows what is");
        return Err(bad_params(why));
    };
    let above =
        released.above.map(|claim| wire::ProjectAbove { path: claim.alias, realm: claim.realm.to_string() });
    Ok(wire::ProjectReleaseResult { path, realm: released.claim.realm.to_string(), above })
}

/// The paths and addresses that mean realms, with what is in each realm.
pub(super) async fn list(
    call: Call<'_>,
    given: wire::ProjectPageParams,
) -> Result<wire::ProjectListResult, ErrorObject> {
    let Call { host, engine, identity } = call;
    check(host, engine, identity)?;
    let limit = given.limit.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS);
    let mut claims = host.claims_for(engine.realm(), usize::MAX).await.map_err(refused)?;
    claims.sort_by(|a, b| a.alias.cmp(&b.alias));
    let after = given.after.unwrap_or_default();
    let mut page: Vec<Claimed> = claims.into_iter().filter(|claim| claim.alias > after).collect();
    let next = (page.len() > limit).then(|| page.get(limit - 1).map(|claim| claim.alias.clone()));
    page.truncate(limit);
    let mut known: HashMap<RealmName, Counts> = HashMap::new();
    let mut projects = Vec::with_capacity(page.len());
    for claim in page {
        if !known.contains_key(&claim.realm) {
            known.insert(claim.realm.clone(), counts(host, &claim.realm).await);
        }
        let counts = known.get(&claim.realm).cloned().unwrap_or_default();
        projects.push(wire::ProjectRow {
            path: claim.alias,
            realm: claim.realm.to_string(),
            agents: counts.agents,
            messages: counts.messages,
            made_at: to_rfc3339(claim.at),
            by: to_wire::optional(claim.by.as_ref()),
            former_realms: claim.former.iter().map(ToString::to_string).collect(),
        });
    }
    let default_realm = host.default_realm().to_string();
    Ok(wire::ProjectListResult { projects, next: next.flatten(), default_realm })
}

/// The realms of the data directory.
pub(super) async fn realms(
    call: Call<'_>,
    given: wire::ProjectPageParams,
) -> Result<wire::RealmListResult, ErrorObject> {
    let host = call.host;
    if !host.may_administer(call.engine, call.identity) {
        return Err(denied("only administrators list the realms"));
    }
    let limit = given.limit.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS);
    let mut names = host.office().realms().map_err(|fault| refused(fault.into()))?;
    let after = given.after.unwrap_or_default();
    names.retain(|name| name.as_str() > after.as_str());
    let next = (names.len() > limit).then(|| names.get(limit - 1).map(ToString::to_string));
    names.truncate(limit);
    let mut realms = Vec::with_capacity(names.len());
    for name in &names {
        let counts = counts(host, name).await;
        let claims = host.names_for(name).await.map_err(refused)?;
        realms.push(wire::RealmRow {
            name: name.to_string(),
            default: name == host.default_realm(),
            agents: counts.agents,
            messages: counts.messages,
            bytes: size(&host.office().path_of(name)),
            projects: claims.into_iter().map(|claim| claim.alias).take(MAX_PATHS).collect(),
            problem: counts.problem,
        });
    }
    Ok(wire::RealmListResult { realms, next: next.flatten() })
}

/// Lets administrators of the server or of the realm decide what paths of the realm's callers mean.
fn check(host: &Host, engine: &Engine, identity: &Identity) -> Result<(), ErrorObject> {
    match host.may_administer(engine, identity) || identity.role == TokenRole::Admin {
        true => Ok(()),
        false => Err(denied("only administrators say which realm a project is in")),
    }
}

fn alias_of(text: &str) -> Result<String, ErrorObject> {
    alias(text).ok_or_else(|| {
        bad_params(format!("`{text}` is neither an absolute path nor the address of a repository"))
    })
}

/// What is in a realm. One that cannot be read does not fail the whole list.
async fn counts(host: &Host, realm: &RealmName) -> Counts {
    if !host.office().has_realm(realm) {
        let problem = Some("it has no database".to_owned());
        return Counts { agents: Some(0), messages: Some(0), problem };
    }
    let look = async {
        let engine = host.office().realm(realm).await?;
        let caller = Caller::office();
        engine.read(move |view| Ok((view.stats(&caller)?.agents, view.message_count(&caller)?))).await
    };
    match look.await {
        Ok((agents, messages)) => Counts { agents: Some(agents), messages: Some(messages), problem: None },
        Err(error) => Counts { problem: Some(error.to_string()), ..Counts::default() },
    }
}

/// The bytes of a realm's database and its write-ahead log.
fn size(path: &std::path::Path) -> u64 {
    let wal = path.with_extension("db-wal");
    [path, &wal].into_iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum()
}

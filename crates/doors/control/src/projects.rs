//! Methods about projects and realms, for administrators: which path stands for which realm, and what there is.

use posthaste_engine::Engine;
use posthaste_engine::nouns::{Caller, RealmName};
use posthaste_engine::verbs::claims::Claimed;
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::{bad_params, denied, of_engine};
use posthaste_host::Host;
use posthaste_host::caller::Identity;
use posthaste_host::projects::alias;

/// Names that one work tree has.
const MOST_NAMES: usize = 8;
/// Projects and realms of one page; each realm is opened to be counted.
const MOST_ROWS: usize = 200;
/// Names that an answer repeats.
const MOST_SHOWN: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimParams {
    /// The work tree, then its other names (the first work tree of the repository, the repository's address).
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveParams {
    path: String,
    realm: RealmName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseParams {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageParams {
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

/// Claims a work tree for the realm of the call. A realm that was made for it earlier is left only if no message is in
/// it.
pub(super) async fn claim(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: ClaimParams,
) -> Result<Value, ErrorObject> {
    check(shared, engine, identity)?;
    if given.names.is_empty() || given.names.len() > MOST_NAMES {
        return Err(bad_params(format!("names: 1 to {MOST_NAMES} are needed")));
    }
    let names: Vec<String> = given.names.iter().map(|name| name_of(name)).collect::<Result<_, _>>()?;
    let home = engine.realm();
    let standing = shared.claim_tree(home, &names, &identity.name).await.map_err(refused)?;
    let standing = standing.ok_or_else(|| bad_params("names: at least one is needed"))?;
    let mut claim = standing.claim;
    let mut moved_from = None;
    if claim.realm != *home && counts(shared, &claim.realm).await["messages"] == 0 {
        let moved = shared.move_name(home, &claim.alias, home, &identity.name).await.map_err(refused)?;
        moved_from = moved.before.map(|before| before.realm);
        claim = moved.claim;
    }
    let counts = counts(shared, &claim.realm).await;
    // Names below that stand for the realm which the tree itself stands for now are not apart.
    let apart: Vec<&String> = standing
        .apart
        .iter()
        .filter(|other| other.realm != claim.realm)
        .map(|other| &other.alias)
        .take(MOST_SHOWN)
        .collect();
    Ok(json!({
        "path": claim.alias,
        "realm": claim.realm,
        "wanted_realm": home,
        "shared": claim.realm == *home,
        "moved_from": moved_from,
        "agents": counts["agents"],
        "messages": counts["messages"],
        "apart": apart,
    }))
}

/// Has a path stand for another realm from now on.
pub(super) async fn relocate(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: MoveParams,
) -> Result<Value, ErrorObject> {
    check(shared, engine, identity)?;
    let (home, name) = (engine.realm(), name_of(&given.path)?);
    if home != shared.default_realm() {
        let why = format!(
            "paths that callers of realm {home} name always mean realm {home}; only those of the default realm \
             {} can be moved",
            shared.default_realm()
        );
        return Err(bad_params(why));
    }
    if !shared.office().has_realm(&given.realm) {
        let why = format!("there is no realm {}; `posthaste realms list` shows those there are", given.realm);
        return Err(bad_params(why));
    }
    // Callers of the default realm come along: whom a realm that was not made for projects lets in is the operator's
    // to decide.
    let open = given.realm == *home || shared.is_made_for_project(&given.realm).await.map_err(refused)?;
    if !open && !identity.runs_office() {
        return Err(denied("only the operator's key sends sessions into a realm with callers of its own"));
    }
    let moved = shared.move_name(home, &name, &given.realm, &identity.name).await.map_err(refused)?;
    let before = match moved.before.filter(|before| before.realm != given.realm) {
        Some(before) => {
            let mut counts = counts(shared, &before.realm).await;
            counts["realm"] = before.realm.to_string().into();
            counts
        }
        None => Value::Null,
    };
    Ok(json!({ "path": name, "realm": moved.claim.realm, "before": before }))
}

/// Takes a claim back.
pub(super) async fn release(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: ReleaseParams,
) -> Result<Value, ErrorObject> {
    check(shared, engine, identity)?;
    let name = name_of(&given.path)?;
    let released = shared.release_name(engine.realm(), &name).await.map_err(refused)?;
    let Some(released) = released else {
        let why = format!("{name} is not claimed; `posthaste projects list` shows what is");
        return Err(bad_params(why));
    };
    let above = released.above.map(|claim| json!({ "path": claim.alias, "realm": claim.realm }));
    Ok(json!({ "path": name, "realm": released.claim.realm, "above": above }))
}

/// The names that stand for realms, with what is in each realm.
pub(super) async fn list(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: PageParams,
) -> Result<Value, ErrorObject> {
    check(shared, engine, identity)?;
    let limit = given.limit.unwrap_or(MOST_ROWS).clamp(1, MOST_ROWS);
    let mut claims = shared.claims_for(engine.realm(), usize::MAX).await.map_err(refused)?;
    claims.sort_by(|a, b| a.alias.cmp(&b.alias));
    let after = given.after.unwrap_or_default();
    let mut page: Vec<Claimed> = claims.into_iter().filter(|claim| claim.alias > after).collect();
    let next = (page.len() > limit).then(|| page.get(limit - 1).map(|claim| claim.alias.clone()));
    page.truncate(limit);
    let mut known = std::collections::HashMap::new();
    let mut rows = Vec::with_capacity(page.len());
    for claim in &page {
        if !known.contains_key(&claim.realm) {
            known.insert(claim.realm.clone(), counts(shared, &claim.realm).await);
        }
        let counts = known.get(&claim.realm).cloned().unwrap_or_default();
        rows.push(json!({
            "path": claim.alias,
            "realm": claim.realm,
            "agents": counts["agents"],
            "messages": counts["messages"],
            "made_at": to_rfc3339(claim.at),
            "by": claim.by,
            "former_realms": claim.former,
        }));
    }
    Ok(json!({ "projects": rows, "next": next.flatten(), "default_realm": shared.default_realm() }))
}

/// The realms of the data directory.
pub(super) async fn realms(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: PageParams,
) -> Result<Value, ErrorObject> {
    if !shared.heeds(engine, identity) {
        return Err(denied("only administrators list the realms"));
    }
    let limit = given.limit.unwrap_or(MOST_ROWS).clamp(1, MOST_ROWS);
    let mut names = shared.office().realms().map_err(|fault| refused(fault.into()))?;
    let after = given.after.unwrap_or_default();
    names.retain(|name| name.as_str() > after.as_str());
    let next = (names.len() > limit).then(|| names.get(limit - 1).cloned());
    names.truncate(limit);
    let mut rows = Vec::with_capacity(names.len());
    for name in &names {
        let counts = counts(shared, name).await;
        let paths = shared.names_for(name).await.map_err(refused)?;
        let paths: Vec<&String> = paths.iter().map(|claim| &claim.alias).take(MOST_SHOWN).collect();
        rows.push(json!({
            "name": name,
            "default": name == shared.default_realm(),
            "agents": counts["agents"],
            "messages": counts["messages"],
            "bytes": size(&shared.office().path_of(name)),
            "projects": paths,
            "problem": counts["problem"],
        }));
    }
    Ok(json!({ "realms": rows, "next": next.flatten() }))
}

/// Administrators of a realm have a say in what its callers' paths mean.
fn check(shared: &Host, engine: &Engine, identity: &Identity) -> Result<(), ErrorObject> {
    let runs_realm = identity.role == posthaste_engine::nouns::TokenRole::Admin;
    match shared.heeds(engine, identity) || runs_realm {
        true => Ok(()),
        false => Err(denied("only administrators say which realm a project is in")),
    }
}

fn name_of(text: &str) -> Result<String, ErrorObject> {
    alias(text).ok_or_else(|| {
        bad_params(format!("`{text}` is neither an absolute path nor the address of a repository"))
    })
}

/// What is in a realm. One that cannot be read is no reason to list nothing.
async fn counts(shared: &Host, realm: &RealmName) -> Value {
    if !shared.office().has_realm(realm) {
        return json!({ "agents": 0, "messages": 0, "problem": "it has no database" });
    }
    let look = async {
        let engine = shared.office().realm(realm).await?;
        let caller = Caller::office();
        engine.read(move |view| Ok((view.stats(&caller)?.agents, view.message_count(&caller)?))).await
    };
    match look.await {
        Ok((agents, messages)) => json!({ "agents": agents, "messages": messages, "problem": null }),
        Err(error) => json!({ "agents": null, "messages": null, "problem": error.to_string() }),
    }
}

/// The bytes of a realm's database and its write-ahead log.
fn size(path: &std::path::Path) -> u64 {
    let wal = path.with_extension("db-wal");
    [path, &wal].into_iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum()
}

fn refused(error: posthaste_engine::EngineError) -> ErrorObject {
    of_engine(&error)
}

//! Claims: the other names of realms (a path, the address of a repository, a project's key), and which project of its
//! realm each name means. The default realm's database keeps the list for all realms.

use serde::{Deserialize, Serialize};

use super::{Decided, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, RealmName};
use crate::store::one;

/// Realms that a name stood for before which are remembered.
const MOST_FORMER: usize = 16;

/// Gives a realm of the office another name: a path, the address of a repository, a project's key. The office's
/// default realm keeps the list. The first claim stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The other name.
    pub alias: String,
    /// The realm it stands for.
    pub realm: RealmName,
    /// On whose wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// The realm of an earlier claim that no longer counts and is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<RealmName>,
    /// The project of the realm that the name means, if that is not the realm's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether paths below this one mean the same project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub covers: bool,
}

/// Has a name stand for another realm from now on, whether or not it was claimed before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveClaim {
    /// The name.
    pub alias: String,
    /// The realm it stands for from now on.
    pub realm: RealmName,
    /// On whose wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// The project of the realm that the name means, if that is not the realm's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Takes a claim back. Where the name stood before is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleaseClaim {
    /// The name.
    pub alias: String,
}

/// A name of a realm besides its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The other name.
    pub alias: String,
    /// The realm it stands for, which may be another than was asked for if it was claimed before.
    pub realm: RealmName,
    /// Since when.
    pub at: Millis,
    /// On whose wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// The project of the realm that the name means, if that is not the realm's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether paths below this one mean the same project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub covers: bool,
    /// Whether the operator moved it to its realm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
    /// The realms that it stood for before, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<RealmName>,
    /// Whether it was taken back: the name stands for no realm now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

/// A name before and after it was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The claim that stood before, if there was one.
    pub before: Option<Claimed>,
    /// The claim that stands now.
    pub claim: Claimed,
}

impl Claimed {
    /// What the entries of the list start with.
    pub(crate) const PREFIX: &'static str = "alias:";

    /// The realms that the name has stood for, this one included, once it stands for another.
    fn former_after(&self, realm: &RealmName) -> Vec<RealmName> {
        let mut former = self.former.clone();
        former.retain(|known| *known != self.realm);
        former.push(self.realm.clone());
        former.retain(|known| known != realm);
        let surplus = former.len().saturating_sub(MOST_FORMER);
        former.split_off(surplus)
    }
}

impl Claim {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Claimed> {
        to.require_admin()?;
        check_alias(&self.alias)?;
        let known = find(to, &self.alias)?;
        let stands =
            |claimed: &&Claimed| !claimed.released && self.instead_of.as_ref() != Some(&claimed.realm);
        if let Some(claimed) = known.as_ref().filter(stands) {
            return Ok(claimed.clone());
        }
        let claimed = Claimed {
            alias: self.alias.clone(),
            realm: self.realm.clone(),
            at: to.now,
            by: self.by.clone(),
            project: self.project.clone(),
            covers: self.covers,
            moved: false,
            // A claim that never counted says nothing about where the name stood.
            former: known.filter(|known| known.released).map_or_else(Vec::new, |known| known.former),
            released: false,
        };
        write(to, &claimed)?;
        Ok(claimed)
    }
}

impl MoveClaim {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Moved> {
        to.require_admin()?;
        check_alias(&self.alias)?;
        let known = find(to, &self.alias)?;
        let claim = Claimed {
            alias: self.alias.clone(),
            realm: self.realm.clone(),
            at: to.now,
            by: self.by.clone(),
            project: self.project.clone(),
            covers: true,
            moved: true,
            former: match &known {
                None => Vec::new(),
                Some(known) if known.released => {
                    known.former.iter().filter(|realm| **realm != self.realm).cloned().collect()
                }
                Some(known) => known.former_after(&self.realm),
            },
            released: false,
        };
        let before = known.filter(|known| !known.released);
        if let Some(before) = before.as_ref().filter(|before| before.realm == self.realm && before.covers) {
            return Ok(Moved { claim: before.clone(), before: Some(before.clone()) });
        }
        write(to, &claim)?;
        Ok(Moved { before, claim })
    }
}

impl ReleaseClaim {
    /// The claim that stood until now, if there was one.
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Option<Claimed>> {
        to.require_admin()?;
        check_alias(&self.alias)?;
        let Some(known) = find(to, &self.alias)?.filter(|known| !known.released) else { return Ok(None) };
        let mut former = known.former.clone();
        former.retain(|realm| *realm != known.realm);
        former.push(known.realm.clone());
        let surplus = former.len().saturating_sub(MOST_FORMER);
        let released =
            Claimed { former: former.split_off(surplus), released: true, at: to.now, ..known.clone() };
        write(to, &released)?;
        Ok(Some(known))
    }
}

fn check_alias(alias: &str) -> Decided<()> {
    if alias.is_empty() || alias.len() > 4_096 || alias.chars().any(char::is_control) {
        let why = "1 to 4096 bytes without control characters";
        return Err(Refusal::BadValue { field: "alias", why }.into());
    }
    Ok(())
}

fn find(to: &Write<'_>, alias: &str) -> Decided<Option<Claimed>> {
    let key = format!("{}{alias}", Claimed::PREFIX);
    let known: Option<String> =
        one(to.db, "SELECT value FROM meta WHERE key = ?1", [&key], |row| row.get(0))?;
    Ok(known.and_then(|text| serde_json::from_str(&text).ok()))
}

fn write(to: &mut Write<'_>, claimed: &Claimed) -> Decided<()> {
    let key = format!("{}{}", Claimed::PREFIX, claimed.alias);
    // Plain data without maps or floats: writing it as JSON cannot fail.
    let text = serde_json::to_string(claimed).unwrap_or_default();
    // The server's own note of where things are: nothing that happened to an agent, so no event.
    let sql = "INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
    to.exec(sql, (&key, &text))?;
    Ok(())
}

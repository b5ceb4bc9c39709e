//! Claims: the other names of realms (a path, the address of a repository, a project's key), and which project of its
//! realm each name means. The default realm's database keeps the list for all realms.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, RealmName};
use crate::store::one;

/// Former realms of a name that are kept.
const MAX_FORMER: usize = 16;

/// Gives a realm another name: a path, the address of a repository, a project's key. The server's default realm keeps the
/// list. The first claim stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The other name.
    pub alias: String,
    /// The realm it stands for.
    pub realm: RealmName,
    /// The agent that asked for it.
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

/// Lets a name stand for another realm, whether or not it was claimed before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveClaim {
    /// The name.
    pub alias: String,
    /// The realm that it stands for now.
    pub realm: RealmName,
    /// The agent that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// The project of the realm that the name means, if that is not the realm's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Withdraws a claim. The name's former realms are kept.
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
    /// When it was claimed.
    pub at: Millis,
    /// The agent that asked for it.
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
    /// Whether it was withdrawn: the name stands for no realm now.
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
    /// Prefix of the list's keys.
    pub(crate) const PREFIX: &'static str = "alias:";

    /// The realms that the name has stood for, this one included, once it stands for another.
    fn former_after(&self, realm: &RealmName) -> Vec<RealmName> {
        let mut former = self.former.clone();
        former.retain(|known| *known != self.realm);
        former.push(self.realm.clone());
        former.retain(|known| known != realm);
        let surplus = former.len().saturating_sub(MAX_FORMER);
        former.split_off(surplus)
    }
}

impl Claim {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Claimed> + use<'v>> {
        to.require_admin()?;
        check_alias(&self.alias)?;
        let known = find(to, &self.alias)?;
        let stands =
            |claimed: &&Claimed| !claimed.released && self.instead_of.as_ref() != Some(&claimed.realm);
        let standing = known.as_ref().filter(stands).cloned();
        Ok(|to: &mut Write<'_>| match standing {
            Some(claimed) => Ok(claimed),
            None => {
                let claimed = self.claimed(to.now, known);
                write(to, &claimed)?;
                Ok(claimed)
            }
        })
    }

    fn claimed(&self, at: Millis, known: Option<Claimed>) -> Claimed {
        Claimed {
            alias: self.alias.clone(),
            realm: self.realm.clone(),
            at,
            by: self.by.clone(),
            project: self.project.clone(),
            covers: self.covers,
            moved: false,
            // A claim that is replaced because it never counted is not a former realm of the name.
            former: known.filter(|known| known.released).map_or_else(Vec::new, |known| known.former),
            released: false,
        }
    }
}

impl MoveClaim {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Moved> + use<'v>> {
        to.require_admin()?;
        check_alias(&self.alias)?;
        let known = find(to, &self.alias)?;
        let former = match &known {
            None => Vec::new(),
            Some(known) if known.released => {
                known.former.iter().filter(|realm| **realm != self.realm).cloned().collect()
            }
            Some(known) => known.former_after(&self.realm),
        };
        let before = known.filter(|known| !known.released);
        Ok(|to: &mut Write<'_>| {
            if let Some(before) = before.as_ref().filter(|before| before.realm == self.realm && before.covers)
            {
                return Ok(Moved { claim: before.clone(), before: Some(before.clone()) });
            }
            let claim = Claimed {
                alias: self.alias.clone(),
                realm: self.realm.clone(),
                at: to.now,
                by: self.by.clone(),
                project: self.project.clone(),
                covers: true,
                moved: true,
                former,
                released: false,
            };
            write(to, &claim)?;
            Ok(Moved { before, claim })
        })
    }
}

impl ReleaseClaim {
    /// Returns the claim that stood until now, if there was one.
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Option<Claimed>> + use<'v>> {
        to.require_admin()?;
        check_alias(&self.alias)?;
        let known = find(to, &self.alias)?.filter(|known| !known.released);
        Ok(|to: &mut Write<'_>| {
            let Some(known) = known else { return Ok(None) };
            let mut former = known.former.clone();
            former.retain(|realm| *realm != known.realm);
            former.push(known.realm.clone());
            let surplus = former.len().saturating_sub(MAX_FORMER);
            let released =
                Claimed { former: former.split_off(surplus), released: true, at: to.now, ..known.clone() };
            write(to, &released)?;
            Ok(Some(known))
        })
    }
}

fn check_alias(alias: &str) -> Decided<()> {
    if alias.is_empty() || alias.len() > 4_096 || alias.chars().any(char::is_control) {
        let why = "1 to 4096 bytes without control characters";
        return Err(Refusal::BadValue { field: "alias", why }.into());
    }
    Ok(())
}

fn find(to: &Decide<'_>, alias: &str) -> rusqlite::Result<Option<Claimed>> {
    let key = format!("{}{alias}", Claimed::PREFIX);
    let known: Option<String> =
        one(to.db, "SELECT value FROM meta WHERE key = ?1", [&key], |row| row.get(0))?;
    Ok(known.and_then(|text| serde_json::from_str(&text).ok()))
}

fn write(to: &Write<'_>, claimed: &Claimed) -> rusqlite::Result<()> {
    let key = format!("{}{}", Claimed::PREFIX, claimed.alias);
    // Plain data without maps or floats: writing it as JSON cannot fail.
    let text = serde_json::to_string(claimed).unwrap_or_default();
    // Where the server finds things is no concern of agents, so there is no event.
    let sql = "INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
    to.exec(sql, (&key, &text)).map(drop)
}

//! Agent presence. In memory only, by design: presence is a heartbeat, and one from before a restart is stale.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::nouns::{Agent, AgentId, Caller, Millis, Privacy};
use crate::sight;
use crate::stamp;
use crate::store::rows;
use crate::views::{View, Viewed};

/// An agent's last heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Available, busy, away, …
    pub status: String,
    /// What it is working on.
    pub note: Option<String>,
    /// When the heartbeat was received.
    pub seen_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
}

/// The heartbeats of a realm.
#[derive(Debug, Default)]
pub struct Presences {
    known: Mutex<HashMap<AgentId, Presence>>,
}

impl Presences {
    /// Records a heartbeat that is valid for `lasts` milliseconds.
    pub fn beat(&self, agent: AgentId, status: impl Into<String>, note: Option<String>, lasts: Millis) {
        let now = stamp::now();
        let presence =
            Presence { status: status.into(), note, seen_at: now, expires_at: now.saturating_add(lasts) };
        self.lock().insert(agent, presence);
    }

    /// Removes the presence of an agent that signed off.
    pub fn leave(&self, agent: &AgentId) {
        self.lock().remove(agent);
    }

    /// Removes expired heartbeats, so that the map does not grow forever.
    pub fn sweep(&self) {
        let now = stamp::now();
        self.lock().retain(|_, presence| presence.expires_at > now);
    }

    /// An agent's presence, if it has not expired and the agent's privacy tier shows it to the caller.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of(&self, view: &View<'_>, caller: &Caller, agent: &Agent) -> Viewed<Option<Presence>> {
        let presence = self.lock().get(&agent.id).cloned();
        let Some(presence) = presence.filter(|presence| presence.expires_at > view.now) else {
            return Ok(None);
        };
        Ok(may_see(view, caller, agent)?.then_some(presence))
    }

    /// All agents with a valid heartbeat that the caller may see, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, view: &View<'_>, caller: &Caller) -> Viewed<Vec<(Agent, Presence)>> {
        let mut known: Vec<(AgentId, Presence)> = {
            let known = self.lock();
            let counts = known.iter().filter(|(_, presence)| presence.expires_at > view.now);
            counts.map(|(agent, presence)| (agent.clone(), presence.clone())).collect()
        };
        known.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut seen = Vec::new();
        for (id, presence) in known {
            if seen.len() == view.limits.page {
                break;
            }
            if let Some(agent) = rows::active_agent(view.db, &id)?
                && may_see(view, caller, &agent)?
            {
                seen.push((agent, presence));
            }
        }
        Ok(seen)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AgentId, Presence>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn may_see(view: &View<'_>, caller: &Caller, agent: &Agent) -> Viewed<bool> {
    if caller.may_act_for(&agent.id) {
        return Ok(true);
    }
    if !sight::sees_agent(view.db, caller, agent)? {
        return Ok(false);
    }
    Ok(match agent.privacy {
        Privacy::Public => true,
        Privacy::Contacts => sight::are_contacts(view.db, &caller.agent, &agent.id, view.now)?,
        Privacy::Invisible => false,
    })
}

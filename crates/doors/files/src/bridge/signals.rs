//! Hooks and nudges beside the mail directory: what changes is told in the realm's history, because in the directory a
//! later one takes the place of an earlier one.

use std::path::{Path, PathBuf};

use posthaste_engine::nouns::{AgentId, Caller, Json};
use posthaste_engine::verbs::office::Announce;
use posthaste_wire::files::check_agent;
use posthaste_wire::files::signals::{Hook, LATEST_NUDGE_FILE, Nudge};
use serde_json::{Value, json};

use super::super::signals;
use super::Bridge;

/// Files of which the last content is remembered.
const MOST_SIGNALS: usize = 65_536;

impl Bridge {
    /// Notes what lies there at the start; only changes are told.
    pub(super) fn begin_signals(&mut self) {
        self.watch_signals();
        let Some(state) = self.state.clone() else { return };
        for path in state.files().into_iter().take(MOST_SIGNALS) {
            if let Some(bytes) = signals::read_at(&path) {
                self.signals.insert(path, bytes);
            }
        }
    }

    /// Looks for what nobody told of: when everything is looked at, and when a directory has just appeared.
    pub(super) async fn sweep_signals(&mut self, deep: bool) {
        let appeared = self.watch_signals();
        let Some(state) = self.state.clone() else { return };
        if deep || appeared {
            let files = tokio::task::spawn_blocking(move || state.files()).await.unwrap_or_default();
            for path in files.into_iter().take(MOST_SIGNALS) {
                self.signal(path).await;
            }
        }
    }

    /// Watches the directories once they are there; true if one was not watched before.
    fn watch_signals(&mut self) -> bool {
        let Some(state) = &self.state else { return false };
        let (hooks, nudges) = (state.hooks_path(), state.nudges_path());
        self.watch.add_tree(&hooks) | self.watch.add_tree(&nudges)
    }

    /// Tells of a hook or a nudge that changed.
    pub(super) async fn signal(&mut self, path: PathBuf) {
        let Some(state) = self.state.clone() else { return };
        let Some(bytes) = signals::read_at(&path) else { return };
        if self.signals.get(&path) == Some(&bytes) {
            return;
        }
        let Some((word, data, parties)) = told(&path, &state.hooks_path(), &bytes) else { return };
        if self.signals.len() >= MOST_SIGNALS {
            self.signals.clear();
        }
        self.signals.insert(path, bytes);
        let to = parties.into_iter().filter_map(|name| AgentId::new(name).ok()).collect();
        let Ok(data) = Json::new(data.to_string()) else { return };
        let verb = Announce { word: word.to_owned(), data, to: Some(to) };
        if let Err(error) = self.engine.submit(&Caller::office(), verb).await {
            tracing::debug!(%error, "a signal could not be written into the history");
        }
    }
}

/// What a changed file says, and whom it concerns.
fn told(path: &Path, hooks: &Path, bytes: &[u8]) -> Option<(&'static str, Value, Vec<String>)> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".json")?;
    if path.parent()? == hooks {
        check_agent(stem).ok()?;
        let hook = Hook::parse(bytes, stem)?;
        return Some(("files.hook", hook.to_value(), vec![stem.to_owned()]));
    }
    let to = match file {
        LATEST_NUDGE_FILE => path.parent()?.file_name()?.to_str()?,
        _ => stem,
    };
    check_agent(to).ok()?;
    let nudge = Nudge::parse(bytes)?;
    let mut data = nudge.to_value();
    data["to"] = json!(to);
    Some(("files.nudge", data, vec![to.to_owned(), nudge.from]))
}

//! Hooks and nudges next to the mail directory: changes are announced in the realm's event log, because in the directory a
//! later one replaces an earlier one.

use std::path::{Path, PathBuf};

use posthaste_engine::nouns::{AgentId, Caller, Json};
use posthaste_engine::verbs::office::Announce;
use posthaste_wire::files::check_agent;
use posthaste_wire::files::signals::{Hook, LATEST_NUDGE_FILE, Nudge, SentNudge};

use super::super::signals;
use super::Bridge;

/// Files of which the last content is remembered.
const MAX_SIGNALS: usize = 65_536;

impl Bridge {
    /// Reads existing files at the start; only changes are announced.
    pub(super) fn begin_signals(&mut self) {
        self.watch_signals();
        let Some(state) = self.state.clone() else { return };
        for path in state.files().into_iter().take(MAX_SIGNALS) {
            if let Some(bytes) = signals::read_at(&path) {
                self.signals.insert(path, bytes);
            }
        }
    }

    /// Scans for changes that no notification told of: in a deep sweep, and when a directory has just appeared.
    pub(super) async fn sweep_signals(&mut self, deep: bool) {
        let appeared = self.watch_signals();
        let Some(state) = self.state.clone() else { return };
        if deep || appeared {
            let files = tokio::task::spawn_blocking(move || state.files()).await.unwrap_or_default();
            for path in files.into_iter().take(MAX_SIGNALS) {
                self.signal(path).await;
            }
        }
    }

    /// Watches the directories once they exist; true if one was not watched before.
    fn watch_signals(&mut self) -> bool {
        let Some(state) = &self.state else { return false };
        let (hooks, nudges) = (state.hooks_path(), state.nudges_path());
        self.watch.add_tree(&hooks) | self.watch.add_tree(&nudges)
    }

    /// Announces a hook or a nudge that changed.
    pub(super) async fn signal(&mut self, path: PathBuf) {
        let Some(state) = self.state.clone() else { return };
        let Some(bytes) = signals::read_at(&path) else { return };
        if self.signals.get(&path) == Some(&bytes) {
            return;
        }
        let Some((word, data, parties)) = parse_signal(&path, &state.hooks_path(), &bytes) else { return };
        if self.signals.len() >= MAX_SIGNALS {
            self.signals.clear();
        }
        self.signals.insert(path, bytes);
        let to = parties.into_iter().filter_map(|name| AgentId::new(name).ok()).collect();
        let Ok(data) = Json::new(data) else { return };
        let verb = Announce { word: word.to_owned(), data, to: Some(to) };
        if let Err(error) = self.engine.submit(&Caller::office(), verb).await {
            tracing::debug!(%error, "a signal could not be written into the event log");
        }
    }
}

/// The announcement of a changed file: its kind, its data, and the agents it concerns.
fn parse_signal(path: &Path, hooks: &Path, bytes: &[u8]) -> Option<(&'static str, String, Vec<String>)> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".json")?;
    if path.parent()? == hooks {
        check_agent(stem).ok()?;
        let hook = Hook::parse(bytes, stem)?;
        return Some(("files.hook", serde_json::to_string(&hook).ok()?, vec![stem.to_owned()]));
    }
    let to = match file {
        LATEST_NUDGE_FILE => path.parent()?.file_name()?.to_str()?,
        _ => stem,
    };
    check_agent(to).ok()?;
    let nudge = Nudge::parse(bytes)?;
    let parties = vec![to.to_owned(), nudge.from.clone()];
    let data = serde_json::to_string(&SentNudge { nudge, to: to.to_owned() }).ok()?;
    Some(("files.nudge", data, parties))
}

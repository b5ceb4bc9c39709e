//! Runs in memory, counted by caller. Each may use the operator's programs and models, so their number per caller is limited.

use std::collections::HashMap;
use std::sync::Arc;

use super::run_state::RunKey;
use super::{RunCell, new_cell};

/// Maximum number of open runs of one caller; the next is refused until one has ended.
pub(super) const MAX_RUNS: usize = 128;
/// The same for runs that messages of other doors open. Lower, because their senders do not wait for the answer.
pub(super) const MAX_RUNS_BY_MESSAGE: usize = 32;

#[derive(Debug, Default)]
pub(super) struct OpenRuns {
    cells: HashMap<RunKey, Arc<RunCell>>,
    by_caller: HashMap<Arc<str>, usize>,
}

impl OpenRuns {
    pub(super) fn get(&self, key: &RunKey) -> Option<&Arc<RunCell>> {
        self.cells.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether a caller has any.
    pub(super) fn has(&self, caller: &str) -> bool {
        self.by_caller.contains_key(caller)
    }

    /// The run with a key. A run that is not open is opened, unless its caller has `most` open runs.
    pub(super) fn enter(&mut self, key: &RunKey, most: usize) -> Option<Arc<RunCell>> {
        if let Some(cell) = self.cells.get(key) {
            return Some(cell.clone());
        }
        let open = self.by_caller.entry(key.instance.clone()).or_default();
        if *open >= most {
            return None;
        }
        *open += 1;
        let cell = new_cell();
        self.cells.insert(key.clone(), cell.clone());
        Some(cell)
    }

    pub(super) fn remove(&mut self, key: &RunKey) {
        if self.cells.remove(key).is_none() {
            return;
        }
        if let Some(open) = self.by_caller.get_mut(&key.instance) {
            *open -= 1;
            if *open == 0 {
                self.by_caller.remove(&key.instance);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_caller() {
        let mut runs = OpenRuns::default();
        let key = |caller: &str, n: usize| RunKey::new(caller, &n.to_string());
        assert!((0..3).all(|n| runs.enter(&key("user:ann", n), 3).is_some()));
        assert!(runs.enter(&key("user:ann", 3), 3).is_none(), "one too many");
        assert!(runs.enter(&key("user:ann", 2), 3).is_some(), "one that is open goes on");
        assert!(runs.enter(&key("user:bob", 0), 3).is_some(), "another caller's do not count");
        runs.remove(&key("user:ann", 1));
        runs.remove(&key("user:ann", 1));
        assert!(runs.enter(&key("user:ann", 3), 3).is_some());
        assert!(runs.enter(&key("user:ann", 4), 3).is_none());
        for n in [0, 2, 3] {
            runs.remove(&key("user:ann", n));
        }
        assert!(!runs.has("user:ann") && runs.has("user:bob"));
        assert_eq!(runs.len(), 1);
    }
}

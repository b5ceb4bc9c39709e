//! Runs that are in memory, counted by caller: each open run may take turns of the operator's programs and models, so one
//! caller has a limited number at a time.

use std::collections::HashMap;
use std::sync::Arc;

use super::run_state::RunKey;
use super::{RunCell, new_cell};

/// Open runs that one caller may have. More than a busy client asks for at once; the next is refused until one has ended.
pub(super) const MAX_RUNS: usize = 128;
/// Open runs that one caller may have for a message of another door to open one more. Lower, because its sender does not
/// wait for the answer and so is not slowed by it.
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

    /// The run under a key. A run that is not open counts for its caller from now on; none is opened beyond `most`.
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

//! A counted budget for comparing patterns, so that an expensive comparison is refused instead of blocking its thread.

use std::cell::Cell;

/// The remaining steps. A step is one cell of the comparison's table, a few nanoseconds.
#[derive(Debug)]
pub struct Steps {
    left: Cell<u64>,
}

impl Steps {
    /// A budget of this many steps.
    #[must_use]
    pub fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Uses steps; returns false if fewer are left, and from then on.
    pub fn spend(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps as u64);
        self.left.set(left.unwrap_or(0));
        left.is_some() && !self.is_spent()
    }

    /// Whether the budget is exhausted: results since then are meaningless.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

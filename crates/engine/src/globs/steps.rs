//! A counted budget for comparing patterns, so that the dearest comparison is refused instead of holding its thread.

use std::cell::Cell;

/// Steps that may still be taken. A step is one cell of the comparison's table, a few nanoseconds.
#[derive(Debug)]
pub struct Steps {
    left: Cell<u64>,
}

impl Steps {
    /// A budget of that many steps.
    #[must_use]
    pub fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Takes steps; false, from then on, if fewer are left.
    pub fn spend(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps as u64);
        self.left.set(left.unwrap_or(0));
        left.is_some() && !self.is_spent()
    }

    /// Whether the budget is used up: answers given since then say nothing.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

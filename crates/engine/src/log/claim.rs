//! Who has a command that waits in the queue: the writer, once it takes it up, or its caller, once it has waited too long.
//! Whichever comes first; the other finds it taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const TAKEN_UP: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The state of one command, shared by its caller and the writer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim(Arc<AtomicU8>);

impl Claim {
    /// The writer takes the command up; false if the caller was told that it will not be carried out. Asked again, it says
    /// the same.
    pub(crate) fn take_up(&self) -> bool {
        let taken = self.0.compare_exchange(WAITING, TAKEN_UP, Ordering::AcqRel, Ordering::Acquire);
        taken.map_or_else(|state| state == TAKEN_UP, |_| true)
    }

    /// The caller withdraws the command; false if the writer has it, so that it may be carried out.
    pub(crate) fn withdraw(&self) -> bool {
        self.0.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_two_has_it() {
        let claim = Claim::default();
        assert!(claim.take_up() && claim.take_up(), "a batch may be tried twice");
        assert!(!claim.withdraw());
        let claim = Claim::default();
        assert!(claim.withdraw() && !claim.take_up() && !claim.take_up());
    }
}

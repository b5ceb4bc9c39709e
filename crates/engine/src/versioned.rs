//! A cache whose entries hold for one version of what they were computed from, and the counters that give versions.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries of a cache that sets no capacity of its own.
const DEFAULT_CAPACITY: usize = 4_096;

/// A bounded cache of what was read from the database. The caller reads the version before it queries, such as
/// [`Engine::directory_version`](crate::Engine::directory_version); an entry of another version is a miss.
pub struct Versioned<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    capacity: usize,
}

struct Entry<V> {
    version: u64,
    value: V,
}

impl<K: Eq + Hash, V: Clone> Versioned<K, V> {
    /// A cache of at most this many entries. It is emptied when another would not fit.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { entries: Mutex::default(), capacity }
    }

    /// The value that was computed under this version.
    pub fn get(&self, version: u64, key: &K) -> Option<V> {
        self.lock().get(key).filter(|entry| entry.version == version).map(|entry| entry.value.clone())
    }

    /// Keeps a value. `version` is what the version was before the value was read.
    pub fn put(&self, version: u64, key: K, value: V) {
        let mut entries = self.lock();
        match entries.get_mut(&key) {
            // A slow reader must not replace what a later one found.
            Some(entry) if entry.version > version => {}
            Some(entry) => *entry = Entry { version, value },
            None => {
                if entries.len() >= self.capacity {
                    entries.clear();
                }
                entries.insert(key, Entry { version, value });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V: Clone> Default for Versioned<K, V> {
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY)
    }
}

/// Without the entries, which may hold secrets.
impl<K, V> fmt::Debug for Versioned<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// The version under which something was last found to hold.
#[derive(Debug, Default)]
pub struct VerifiedAt(AtomicU64);

impl VerifiedAt {
    /// Whether it was verified under this version.
    #[must_use]
    pub fn is(&self, version: u64) -> bool {
        self.0.load(Ordering::Acquire) == version
    }

    /// Notes that it was verified. `version` is what the version was before the check.
    pub fn set(&self, version: u64) {
        self.0.store(version, Ordering::Release);
    }
}

/// A version that rises with every change. No two counters of a process share a version, and none is zero.
#[derive(Debug)]
pub(crate) struct VersionCounter(AtomicU64);

impl VersionCounter {
    pub(crate) fn new() -> Self {
        // A realm that is closed and opened again gets a new counter, so nothing cached before counts after.
        static COUNTERS: AtomicU64 = AtomicU64::new(1);
        Self(AtomicU64::new(COUNTERS.fetch_add(1, Ordering::Relaxed) << 40))
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_a_miss() {
        let cache = Versioned::default();
        cache.put(7, "a", 1);
        assert_eq!(cache.get(7, &"a"), Some(1));
        assert_eq!(cache.get(8, &"a"), None);
        assert_eq!(cache.get(6, &"a"), None);
        assert_eq!(cache.get(7, &"b"), None);
    }

    #[test]
    fn value_read_before_a_change_is_not_served_after_it() {
        let (cache, version) = (Versioned::default(), VersionCounter::new());
        let before = version.get();
        // The change is committed while a reader still computes from the old state.
        version.increment();
        cache.put(before, "a", "old");
        assert_eq!(cache.get(version.get(), &"a"), None);
        cache.put(version.get(), "a", "new");
        cache.put(before, "a", "old");
        assert_eq!(cache.get(version.get(), &"a"), Some("new"));
    }

    #[test]
    fn cache_never_holds_more_than_its_capacity() {
        let cache = Versioned::new(3);
        for key in 0..100 {
            cache.put(1, key, key);
            assert!(cache.lock().len() <= 3);
            assert_eq!(cache.get(1, &key), Some(key));
        }
        let held = (0..100).filter(|key| cache.get(1, key).is_some()).count();
        // Another value for a key that is held needs no room.
        cache.put(2, 99, 0);
        assert_eq!((0..99).filter(|key| cache.get(1, key).is_some()).count(), held - 1);
    }

    #[test]
    fn counters_share_no_versions() {
        let (one, other) = (VersionCounter::new(), VersionCounter::new());
        assert_ne!(one.get(), 0);
        for _ in 0..1_000 {
            one.increment();
            other.increment();
            assert_ne!(one.get(), other.get());
        }
    }

    #[test]
    fn nothing_is_verified_at_first() {
        let verified = VerifiedAt::default();
        let version = VersionCounter::new();
        assert!(!verified.is(version.get()));
        verified.set(version.get());
        assert!(verified.is(version.get()));
        version.increment();
        assert!(!verified.is(version.get()));
    }

    #[test]
    fn debug_shows_no_entries() {
        let cache = Versioned::default();
        cache.put(1, "key", "secret");
        assert!(!format!("{cache:?}").contains("secret"));
    }
}

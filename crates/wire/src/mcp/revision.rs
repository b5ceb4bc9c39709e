//! Revisions of the protocol: which are known, and which one a handshake ends with.

/// A revision that the server speaks, oldest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Revision {
    /// The first one.
    V2024_11_05,
    /// Streamable HTTP.
    V2025_03_26,
    /// Without batches.
    V2025_06_18,
    /// The last one with sessions.
    V2025_11_25,
    /// Without sessions: each request says in `_meta` what it needs.
    V2026_07_28,
}

impl Revision {
    /// All of them, oldest first.
    pub const KNOWN: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision with a handshake.
    pub const NEWEST_WITH_SESSIONS: Self = Self::V2025_11_25;

    /// The first revision without sessions.
    pub const FIRST_WITHOUT_SESSIONS: Self = Self::V2026_07_28;

    /// Its date, as it is spelled on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that date, if it is known.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The dates of all known revisions.
    #[must_use]
    pub fn known_dates() -> Vec<String> {
        Self::KNOWN.iter().map(|revision| revision.as_str().to_owned()).collect()
    }

    /// The revision that a handshake ends with: the one asked for if it has a handshake, else the newest that has.
    #[must_use]
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested)
            .filter(|revision| *revision <= Self::NEWEST_WITH_SESSIONS)
            .unwrap_or(Self::NEWEST_WITH_SESSIONS)
    }

    /// Whether this date, known or not, is that of a revision without sessions. Dates compare as text.
    #[must_use]
    pub fn is_sessionless(date: &str) -> bool {
        date >= Self::FIRST_WITHOUT_SESSIONS.as_str()
    }
}

//! Errors of a mail directory, for the commands and the bridge.

use std::io;
use std::path::{Path, PathBuf};

use posthaste_wire::files::InvalidAgentName;

/// Why an operation on a mail directory failed. A failed operation leaves nothing behind.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// An agent name that could lead out of the directory.
    #[error(transparent)]
    BadAgent(#[from] InvalidAgentName),
    /// Not the name of a message's file.
    #[error("{0:?} is not the name of a message's file")]
    BadFile(String),
    /// A field with an unknown value.
    #[error("{given:?} is not a {field}: one of {}", .words.join(", "))]
    BadWord {
        /// The field.
        field: &'static str,
        /// The given value.
        given: String,
        /// The known values.
        words: &'static [&'static str],
    },
    /// A timestamp that cannot be read.
    #[error("{0:?} is not a timestamp: like 2026-03-05T10:30:00Z")]
    BadTimestamp(String),
    /// A message that is too large.
    #[error("the message is too large: {got} bytes, at most {limit}")]
    TooLarge {
        /// The message's size in bytes.
        got: usize,
        /// The largest size.
        limit: usize,
    },
    /// A mailbox that is a link or a file.
    #[error("{} is not a directory of its own", .0.display())]
    NotADirectory(PathBuf),
    /// No space left; earlier messages are safe.
    #[error("no space left for {}", .0.display())]
    NoSpace(PathBuf),
    /// The system reported an error.
    #[error("{}: {error}", .path.display())]
    Failed {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl FilesError {
    pub(crate) fn at(path: impl AsRef<Path>, error: impl Into<io::Error>) -> Self {
        let (path, error) = (path.as_ref().to_owned(), error.into());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace(path),
            io::ErrorKind::NotADirectory => Self::NotADirectory(path),
            // A link where a directory should be; it is not followed.
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Self::NotADirectory(path)
            }
            _ => Self::Failed { path, error },
        }
    }

    /// Whether the caller's input is at fault.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::BadAgent(_)
            | Self::BadFile(_)
            | Self::BadWord { .. }
            | Self::BadTimestamp(_)
            | Self::TooLarge { .. } => true,
            Self::NotADirectory(_) | Self::NoSpace(_) | Self::Failed { .. } => false,
        }
    }
}

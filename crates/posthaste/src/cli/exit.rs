//! How a command ends: its exit code, and the message on standard error.

use std::process::ExitCode;

use crate::config::ConfigError;
use posthaste_files::FilesError;
use posthaste_host::backup::BackupError;
use posthaste_wire::control::RefusalData;
use serde_json::value::RawValue;

/// The exit codes, which scripts rely on. The list is also in `posthaste --help`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Exit {
    Ok = 0,
    /// Something went wrong that none of the others names.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// The server cannot be reached.
    Unreachable = 3,
    /// The token is missing or wrong, or does not allow this.
    Denied = 4,
    /// Another process holds the data directory.
    Held = 5,
    /// A check found a problem: health, signatures, an overlap of reservations.
    Unhealthy = 6,
    /// There is no space left on the disk.
    Full = 7,
    /// What the command names does not exist.
    NotFound = 8,
    /// A rule of the server refuses the request: too large, taken, used before, no consent.
    Refused = 9,
    /// Ctrl-C, as shells count it.
    Interrupted = 130,
}

/// Why a command did not succeed. `?` turns any error into one with the exit code [`Exit::Failed`].
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub error: anyhow::Error,
}

/// Standard output cannot be written. A reader like `head` that closes the pipe is no failure; a broken pipe on any other
/// stream is one.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct OutputError(#[from] pub std::io::Error);

/// Ctrl-C in a command that leaves nothing behind.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// The command did its work, and reports a problem by its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Warning(String);

/// The server refused a call, for a reason that has a word of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refused {
    message: String,
    data: RefusalData,
}

impl Refused {
    /// The failure for an error of the server's own methods. Without data it is no refusal: the server does not know the
    /// method, or failed.
    pub(super) fn by(message: String, data: Option<&RawValue>) -> Failure {
        let data = data.and_then(|data| serde_json::from_str(data.get()).ok());
        let data = data.unwrap_or_else(|| RefusalData { refusal: String::new(), agent: None });
        Self::failure(message, data)
    }

    /// The failure for a refusal: a message for people, and the data that the exit code follows from.
    pub(super) fn failure(message: String, data: RefusalData) -> Failure {
        let exit = match data.refusal.as_str() {
            "not_allowed" | "unauthorized" | "participant_may_not" | "not_a_participant" => Exit::Denied,
            "disk_full" | "disk_nearly_full" => Exit::Full,
            "read_only" | "closing" | "busy" | "internal" | "" => Exit::Failed,
            word if word.starts_with("bad_") => Exit::Usage,
            word if word.starts_with("no_such_") => Exit::NotFound,
            _ => Exit::Refused,
        };
        Failure { exit, error: Self { message, data }.into() }
    }
}

impl Failure {
    /// The server's word for why it refused, if it did.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.error.downcast_ref::<Refused>().map(|refused| refused.data.refusal.as_str())
    }

    /// The agent that does not exist, if that is why the server refused.
    pub(super) fn missing_agent(&self) -> Option<&str> {
        let refused = self.error.downcast_ref::<Refused>()?;
        refused.data.agent.as_deref().filter(|_| refused.data.refusal == "no_such_agent")
    }

    pub fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}") }
    }

    /// Ctrl-C, with nothing more to say.
    pub fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, error: Interrupted.into() }
    }

    /// Whether Ctrl-C ended the command, which needs no message.
    pub fn is_plain_interrupt(&self) -> bool {
        self.error.is::<Interrupted>()
    }

    /// The command did its work, and found a problem.
    pub(super) fn warning(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, error: Warning(message.into()).into() }
    }

    /// The word before the message on standard error.
    pub(super) fn label(&self) -> &'static str {
        if self.error.is::<Warning>() { "warning" } else { "error" }
    }

    /// Whether the reader of standard output closed it.
    pub fn is_broken_pipe(&self) -> bool {
        let output = self.error.chain().find_map(|cause| cause.downcast_ref::<OutputError>());
        output.is_some_and(|OutputError(cause)| cause.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let exit = match error.downcast_ref::<FilesError>() {
            Some(FilesError::NoSpace(_)) => Exit::Full,
            Some(files) if files.is_usage() => Exit::Usage,
            _ if error.is::<ConfigError>() => Exit::Usage,
            _ if is_full(&error) => Exit::Full,
            _ => error.downcast_ref::<BackupError>().map_or(Exit::Failed, of_backup),
        };
        Self { exit, error }
    }
}

/// Whether an error comes from a disk that is full here.
fn is_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        let sqlite = cause.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
        let backup = match cause.downcast_ref::<BackupError>() {
            Some(BackupError::Io { error, .. }) => Some(error),
            _ => None,
        };
        io.or(backup).is_some_and(|error| error.kind() == std::io::ErrorKind::StorageFull)
            || sqlite == Some(rusqlite::ErrorCode::DiskFull)
    })
}

fn of_backup(error: &BackupError) -> Exit {
    match error {
        BackupError::Stopped => Exit::Interrupted,
        BackupError::Damaged { .. } => Exit::Unhealthy,
        BackupError::NotABackup { .. } | BackupError::Newer { .. } => Exit::Usage,
        BackupError::Io { .. } | BackupError::Database(_) => Exit::Failed,
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn refused(word: &str) -> Failure {
        let data = RefusalData { refusal: word.to_owned(), agent: None };
        Refused::failure(String::new(), data)
    }

    // F26: the list in `--help`, which is also in the manual page, has every code.
    #[test]
    fn help_lists_every_exit_code() {
        let listed: Vec<u8> = crate::cli::help::TOP_AFTER
            .split("Exit codes:\n")
            .nth(1)
            .unwrap()
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        use Exit::*;
        let all =
            [Ok, Failed, Usage, Unreachable, Denied, Held, Unhealthy, Full, NotFound, Refused, Interrupted];
        assert_eq!(listed, all.map(|exit| exit as u8));
    }

    // F26: tokens and rights, what does not exist, and rules have codes of their own.
    #[test]
    fn refusals_have_exit_codes_by_their_kind() {
        let exit = |word: &str| refused(word).exit;
        for (word, expected) in [
            ("not_allowed", Exit::Denied),
            ("unauthorized", Exit::Denied),
            ("no_such_agent", Exit::NotFound),
            ("no_such_token", Exit::NotFound),
            ("no_such_reservation", Exit::NotFound),
            ("too_large", Exit::Refused),
            ("agent_exists", Exit::Refused),
            ("key_reused", Exit::Refused),
            ("bad_query", Exit::Usage),
            ("busy", Exit::Failed),
            ("", Exit::Failed),
        ] {
            assert_eq!(exit(word), expected, "{word}");
        }
    }

    // F26: a full disk has its own exit code, at the server and here.
    #[test]
    fn a_full_disk_has_its_own_code() {
        for word in ["disk_full", "disk_nearly_full"] {
            assert_eq!(refused(word).exit, Exit::Full, "{word}");
        }
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).exit, Exit::Full);
        let error = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::from(BackupError::Io { what: "x".to_owned(), error }).exit, Exit::Full);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::NotFound)).exit, Exit::Failed);
    }

    #[test]
    fn only_standard_output_may_break() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::from(OutputError(pipe())).is_broken_pipe());
        assert!(!Failure::from(pipe()).is_broken_pipe());
        assert!(!Failure::from(OutputError(io::Error::from(io::ErrorKind::StorageFull))).is_broken_pipe());
    }
}

//! How a command ends: its exit code, and what is said on standard error.

use std::process::ExitCode;

use crate::config::ConfigError;
use posthaste_files::FilesError;
use posthaste_host::backup::BackupError;

/// The exit codes, which scripts rely on. The list is also in `posthaste --help`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Exit {
    Ok = 0,
    /// Something went wrong that none of the others names.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// The office cannot be reached.
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

/// Standard output is gone. A reader like `head` that has seen enough is no failure of ours, but only
/// there: a broken pipe on any other stream is one.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct OutputError(#[from] pub std::io::Error);

/// Ctrl-C in a command that leaves nothing behind.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// Something that was done, with a reservation that the exit code reports.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Warning(String);

/// The office said no, in a word that programs go by.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refused {
    message: String,
    word: String,
    /// The agent that does not exist, where that is the reason.
    agent: Option<String>,
}

impl Refused {
    /// A refusal as the office's own methods answer it: a sentence, and a word among the data.
    pub(super) fn failure(message: &str, data: Option<&serde_json::Value>) -> Failure {
        let word = data.and_then(|data| data["refusal"].as_str()).unwrap_or_default();
        let exit = match word {
            "not_allowed" | "unauthorized" | "participant_may_not" | "not_a_participant" => Exit::Denied,
            "disk_full" | "disk_nearly_full" => Exit::Full,
            // Without a word it is no refusal: the server does not know the method, or failed.
            "read_only" | "closing" | "busy" | "internal" | "" => Exit::Failed,
            word if word.starts_with("bad_") => Exit::Usage,
            word if word.starts_with("no_such_") => Exit::NotFound,
            _ => Exit::Refused,
        };
        let agent = data.and_then(|data| data["agent"].as_str()).map(str::to_owned);
        let refused = Self { message: message.to_owned(), word: word.to_owned(), agent };
        Failure { exit, error: refused.into() }
    }
}

impl Failure {
    /// The server's word for why it refused, if it did.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.error.downcast_ref::<Refused>().map(|refused| refused.word.as_str())
    }

    /// The agent that does not exist, if that is why the server refused.
    pub(super) fn missing_agent(&self) -> Option<&str> {
        let refused = self.error.downcast_ref::<Refused>()?;
        refused.agent.as_deref().filter(|_| refused.word == "no_such_agent")
    }

    pub fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}") }
    }

    /// Ctrl-C, with nothing more to say.
    pub fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, error: Interrupted.into() }
    }

    /// Whether Ctrl-C ended the command and nothing else is worth a message.
    pub fn is_plain_interrupt(&self) -> bool {
        self.error.is::<Interrupted>()
    }

    /// The command did its work, and found something that its caller should know.
    pub(super) fn warning(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, error: Warning(message.into()).into() }
    }

    /// What it is called on standard error.
    pub(super) fn label(&self) -> &'static str {
        if self.error.is::<Warning>() { "warning" } else { "error" }
    }

    /// Whether the reader of our output simply left.
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
        let exit = |word: &str| Refused::failure("", Some(&serde_json::json!({ "refusal": word }))).exit;
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
            let data = serde_json::json!({ "refusal": word });
            assert_eq!(Refused::failure("full", Some(&data)).exit, Exit::Full, "{word}");
        }
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).exit, Exit::Full);
        let error = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::from(BackupError::Io { what: "x".to_owned(), error }).exit, Exit::Full);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::NotFound)).exit, Exit::Failed);
    }

    #[test]
    fn only_our_own_output_may_break() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::from(OutputError(pipe())).is_broken_pipe());
        assert!(!Failure::from(pipe()).is_broken_pipe());
        assert!(!Failure::from(OutputError(io::Error::from(io::ErrorKind::StorageFull))).is_broken_pipe());
    }
}

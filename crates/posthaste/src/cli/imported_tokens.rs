//! Access tokens in a backup or an export: they are valid wherever the file is restored, so the commands report how many
//! there are and can leave them out.

use posthaste_engine::stamp;
use rusqlite::Connection;
use serde::Serialize;

use super::exit::Failure;
use super::output::Output;

/// Valid tokens in a realm's file.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct ImportedTokens {
    valid: i64,
    admins: i64,
    dropped: bool,
}

impl ImportedTokens {
    /// Counts the valid tokens; removes all tokens if `without` is set.
    pub(super) fn count(database: &Connection, without: bool) -> Result<Self, Failure> {
        let sql = "SELECT count(*), count(*) FILTER (WHERE role = 'admin') FROM tokens
                   WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1)";
        let (valid, admins) =
            database.query_row(sql, [stamp::now()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if without {
            database.execute("DELETE FROM tokens", [])?;
        }
        Ok(Self { valid, admins, dropped: without })
    }

    /// Reports them on standard error; `--json` has them in the answer.
    pub(super) fn tell(self, output: &Output) {
        let Self { valid, admins, dropped } = self;
        if valid == 0 || output.is_json() {
            return;
        }
        if dropped {
            eprintln!("{valid} tokens ({admins} of administrators) were left out");
        } else {
            eprintln!(
                "warning: {valid} tokens ({admins} of administrators) came along and open this realm; \
                 `posthaste token list` shows them, and --without-tokens leaves them out"
            );
        }
    }
}

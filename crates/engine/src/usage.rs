//! What each account has stored. An account is an owner with all its agents. It is counted in memory and written with each
//! commit, so that a message costs no statement of its own.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::account;
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, Caller};
use crate::store::{exec, one};
use crate::verbs::mail::Send;
use crate::verbs::{Command, Outcome};

/// What a message takes besides its text: its row, its event, its place in the indices.
const MESSAGE_BYTES: u64 = 512;
/// What each recipient of a message takes.
const RECIPIENT_BYTES: u64 = 128;
/// Other commands that are no longer than this are not counted: states and heartbeats are not mail.
const SMALL: usize = 512;
/// Accounts remembered at a time; beyond these all are read again.
const REMEMBERED: usize = 4_096;
/// The account that the whole realm is counted on; no agent has this name.
const REALM: &str = "";

/// The bytes that a command asks to have stored, by its text alone.
pub(crate) fn weight(command: &Command) -> u64 {
    let bytes = match command {
        Command::Send(send) => return letter(send),
        Command::SendSealed(sealed) => return letter(&sealed.letter),
        Command::Say(say) => {
            let meta = say.meta.as_ref().map_or(0, |meta| meta.as_str().len());
            return MESSAGE_BYTES + (say.content.as_str().len() + meta) as u64;
        }
        Command::Advance(advance) => return advance.weight() as u64,
        // These change what is there, or end it.
        Command::MarkDelivered(_)
        | Command::MarkRead(_)
        | Command::Dispatched(_)
        | Command::Release(_)
        | Command::Unregister(_)
        | Command::SetRules(_)
        | Command::Sweep(_) => return 0,
        other => serde_json::to_vec(other).map_or(0, |bytes| bytes.len()),
    };
    if bytes > SMALL { bytes as u64 } else { 0 }
}

fn letter(send: &Send) -> u64 {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let addresses = 32 * (send.to.len() + send.cc.len() + send.bcc.len());
    let bytes = send.kind.len()
        + send.body.as_str().len()
        + text(&send.subject)
        + text(&send.envelope)
        + send.meta.as_ref().map_or(0, |meta| meta.as_str().len())
        + addresses;
    MESSAGE_BYTES + bytes as u64
}

/// What carrying a command out has stored.
pub(crate) fn stored(weight: u64, outcome: &Outcome) -> u64 {
    let sent = match outcome {
        Outcome::Send(sent) => sent,
        Outcome::SendSealed(sealed) => &sealed.sent,
        _ => return weight,
    };
    match sent.repeated {
        true => 0,
        false => weight + RECIPIENT_BYTES * sent.receipts.len() as u64,
    }
}

/// What is remembered of the table.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// The accounts of agents that spoke lately.
    accounts: HashMap<AgentId, AgentId>,
    used: HashMap<String, Used>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    messages: u64,
    changed: bool,
}

impl Usage {
    /// Refuses what would go beyond the quota of the caller's account or of the realm. The operator has none.
    pub(crate) fn check(
        &mut self,
        books: &Connection,
        caller: &Caller,
        weight: u64,
        rules: &Rules,
    ) -> rusqlite::Result<Result<(), Refusal>> {
        if caller.rights.admin || weight == 0 {
            return Ok(Ok(()));
        }
        let account = self.account(books, &caller.agent)?;
        let quotas = [
            (account.as_str(), rules.mail_bytes_per_sender, "mail_bytes_per_sender"),
            (REALM, rules.mail_bytes_per_realm, "mail_bytes_per_realm"),
        ];
        for (name, limit, rule) in quotas {
            if limit > 0 && self.used(books, name)?.bytes.saturating_add(weight) > limit {
                let whose =
                    if name == REALM { "the realm".to_owned() } else { format!("the owner {account}") };
                return Ok(Err(Refusal::QuotaExceeded { whose, limit, rule }));
            }
        }
        Ok(Ok(()))
    }

    /// Counts what was stored.
    pub(crate) fn charge(&mut self, books: &Connection, caller: &Caller, bytes: u64) -> rusqlite::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let account = match caller.rights.admin {
            true => None,
            false => Some(self.account(books, &caller.agent)?),
        };
        for name in account.iter().map(AgentId::as_str).chain([REALM]) {
            let used = self.used(books, name)?;
            used.bytes = used.bytes.saturating_add(bytes);
            used.messages += 1;
            used.changed = true;
        }
        Ok(())
    }

    /// Forgets whose agents are whose, after a command that may have changed it.
    pub(crate) fn forget_accounts(&mut self) {
        self.accounts.clear();
    }

    pub(crate) fn forget(&mut self) {
        self.accounts.clear();
        self.used.clear();
    }

    /// Brings the table up to what is remembered.
    pub(crate) fn write_down(&mut self, books: &Connection) -> rusqlite::Result<()> {
        for (account, used) in self.used.iter_mut().filter(|(_, used)| used.changed) {
            let sql = "INSERT INTO usage(account, bytes, messages) VALUES(?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET bytes = ?2, messages = ?3";
            let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            exec(books, sql, (account, number(used.bytes), number(used.messages)))?;
            used.changed = false;
        }
        if self.used.len() > REMEMBERED || self.accounts.len() > REMEMBERED {
            self.forget();
        }
        Ok(())
    }

    fn account(&mut self, books: &Connection, agent: &AgentId) -> rusqlite::Result<AgentId> {
        if let Some(account) = self.accounts.get(agent) {
            return Ok(account.clone());
        }
        let account = account::of(books, agent)?;
        self.accounts.insert(agent.clone(), account.clone());
        Ok(account)
    }

    fn used(&mut self, books: &Connection, account: &str) -> rusqlite::Result<&mut Used> {
        if !self.used.contains_key(account) {
            let sql = "SELECT bytes, messages FROM usage WHERE account = ?1";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            let (bytes, messages) = one(books, sql, [account], read)?.unwrap_or((0, 0));
            let number = |count: i64| u64::try_from(count).unwrap_or(0);
            let used = Used { bytes: number(bytes), messages: number(messages), changed: false };
            self.used.insert(account.to_owned(), used);
        }
        Ok(self.used.entry(account.to_owned()).or_default())
    }
}

//! Stored bytes per account. An account is an owner with all its agents. Usage is counted in memory and written with
//! each commit, so that a message costs no extra statement.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::account;
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, Caller};
use crate::store::{Db, exec, one};
use crate::verbs::mail::SendMessage;
use crate::verbs::{Command, Outcome};

/// What a message takes besides its text: its row, its event, its index entries.
const MESSAGE_OVERHEAD_BYTES: u64 = 512;
/// What each recipient of a message adds.
const RECIPIENT_OVERHEAD_BYTES: u64 = 128;
/// Other commands of at most this size are not counted: states and heartbeats are not mail.
const MAX_UNCOUNTED_BYTES: usize = 512;
/// Entries that each cache may hold; when one is larger at a commit, all are cleared.
const MAX_CACHE_ENTRIES: usize = 4_096;
/// The account that counts the whole realm; no agent has this name.
const REALM_ACCOUNT: &str = "";

/// The bytes that a command asks to store, by its text alone.
pub(crate) fn weight(command: &Command) -> u64 {
    let bytes = match command {
        Command::SendMessage(_) | Command::SendSigned(_) | Command::RecordDelivered(_) => {
            return command.message().map_or(0, message_weight);
        }
        Command::Say(say) => {
            let meta = say.meta.as_ref().map_or(0, |meta| meta.as_str().len());
            return MESSAGE_OVERHEAD_BYTES + (say.content.as_str().len() + meta) as u64;
        }
        Command::Advance(advance) => return advance.weight() as u64,
        // These change or end existing entries.
        Command::MarkDelivered(_)
        | Command::MarkRead(_)
        | Command::Dispatched(_)
        | Command::Release(_)
        | Command::Unregister(_)
        | Command::SetRules(_)
        | Command::Sweep(_) => return 0,
        other => serde_json::to_vec(other).map_or(0, |bytes| bytes.len()),
    };
    if bytes > MAX_UNCOUNTED_BYTES { bytes as u64 } else { 0 }
}

fn message_weight(send: &SendMessage) -> u64 {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let addresses = 32 * (send.to.len() + send.cc.len() + send.bcc.len());
    let bytes = send.kind.len()
        + send.body.as_str().len()
        + text(&send.subject)
        + text(&send.envelope)
        + send.meta.as_ref().map_or(0, |meta| meta.as_str().len())
        + addresses;
    MESSAGE_OVERHEAD_BYTES + bytes as u64
}

/// The bytes that a command has stored, with its recipients.
pub(crate) fn stored(weight: u64, outcome: &Outcome) -> u64 {
    let sent = match outcome {
        Outcome::SendMessage(sent) | Outcome::RecordDelivered(sent) => sent,
        Outcome::SendSigned(signed) => &signed.sent,
        _ => return weight,
    };
    match sent.repeated {
        true => 0,
        false => weight + RECIPIENT_OVERHEAD_BYTES * sent.receipts.len() as u64,
    }
}

/// Cache of the table `usage`.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    realm: Option<Used>,
    accounts: Vec<(AgentId, Used)>,
    /// Index into `accounts`, by account.
    by_account: HashMap<AgentId, usize>,
    /// Index into `accounts`, by agents that sent recently: one lookup per message.
    by_agent: HashMap<AgentId, usize>,
    /// Number of active agents per account, counted once and kept up while agents are only added.
    agents: HashMap<AgentId, i64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    messages: u64,
    changed: bool,
}

impl Used {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages += 1;
        self.changed = true;
    }

    fn has_room(&self, weight: u64, limit: u64) -> bool {
        limit == 0 || self.bytes.saturating_add(weight) <= limit
    }
}

impl Usage {
    /// Refuses a command that would exceed the quota of the caller's account or of the realm. Administrators have no
    /// quota.
    pub(crate) fn check(
        &mut self,
        db: Db<'_>,
        caller: &Caller,
        weight: u64,
        rules: &Rules,
    ) -> rusqlite::Result<Result<(), Refusal>> {
        if caller.rights.admin || weight == 0 {
            return Ok(Ok(()));
        }
        let index = self.account_index(db, &caller.agent)?;
        let (account, used) = &self.accounts[index];
        if !used.has_room(weight, rules.mail_bytes_per_sender) {
            let (whose, limit) = (format!("the owner {account}"), rules.mail_bytes_per_sender);
            return Ok(Err(Refusal::QuotaExceeded { whose, limit, rule: "mail_bytes_per_sender" }));
        }
        if !self.realm(db)?.has_room(weight, rules.mail_bytes_per_realm) {
            let (whose, limit) = ("the realm".to_owned(), rules.mail_bytes_per_realm);
            return Ok(Err(Refusal::QuotaExceeded { whose, limit, rule: "mail_bytes_per_realm" }));
        }
        Ok(Ok(()))
    }

    /// Counts what was stored.
    pub(crate) fn charge(&mut self, db: Db<'_>, caller: &Caller, bytes: u64) -> rusqlite::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if !caller.rights.admin {
            let index = self.account_index(db, &caller.agent)?;
            self.accounts[index].1.add(bytes);
        }
        self.realm(db)?.add(bytes);
        Ok(())
    }

    /// Forgets which agent belongs to which account, after a command that may have changed it.
    pub(crate) fn forget_accounts(&mut self) {
        self.by_agent.clear();
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Number of active agents of an account, itself included.
    pub(crate) fn agents(&mut self, db: Db<'_>, account: &AgentId) -> rusqlite::Result<i64> {
        if let Some(count) = self.agents.get(account) {
            return Ok(*count);
        }
        let count = account::count_agents(db, account)?;
        self.agents.insert(account.clone(), count);
        Ok(count)
    }

    /// Counts an agent that was registered.
    pub(crate) fn note_agent(&mut self, account: &AgentId) {
        if let Some(count) = self.agents.get_mut(account) {
            *count += 1;
        }
    }

    /// Has agents counted again, after one left or changed its owner.
    pub(crate) fn forget_agents(&mut self) {
        self.agents.clear();
    }

    /// Writes changed counters to the table.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let realm = self.realm.iter_mut().map(|used| (REALM_ACCOUNT, used));
        let accounts = self.accounts.iter_mut().map(|(account, used)| (account.as_str(), used));
        for (account, used) in realm.chain(accounts).filter(|(_, used)| used.changed) {
            let sql = "INSERT INTO usage(account, bytes, messages) VALUES(?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET bytes = ?2, messages = ?3";
            let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            exec(db, sql, (account, number(used.bytes), number(used.messages)))?;
            used.changed = false;
        }
        if [self.accounts.len(), self.by_agent.len(), self.agents.len()]
            .into_iter()
            .any(|len| len > MAX_CACHE_ENTRIES)
        {
            self.forget();
        }
        Ok(())
    }

    /// The index of an agent's account in `accounts`.
    fn account_index(&mut self, db: Db<'_>, agent: &AgentId) -> rusqlite::Result<usize> {
        if let Some(index) = self.by_agent.get(agent) {
            return Ok(*index);
        }
        let account = account::of(db, agent)?;
        let index = match self.by_account.get(&account) {
            Some(index) => *index,
            None => {
                self.accounts.push((account.clone(), read(db, account.as_str())?));
                self.by_account.insert(account, self.accounts.len() - 1);
                self.accounts.len() - 1
            }
        };
        self.by_agent.insert(agent.clone(), index);
        Ok(index)
    }

    fn realm(&mut self, db: Db<'_>) -> rusqlite::Result<&mut Used> {
        let used = match self.realm {
            Some(used) => used,
            None => read(db, REALM_ACCOUNT)?,
        };
        Ok(self.realm.insert(used))
    }
}

fn read(db: Db<'_>, account: &str) -> rusqlite::Result<Used> {
    let sql = "SELECT bytes, messages FROM usage WHERE account = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (bytes, messages) = one(db, sql, [account], read)?.unwrap_or((0, 0));
    let number = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok(Used { bytes: number(bytes), messages: number(messages), changed: false })
}

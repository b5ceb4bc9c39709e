//! What each account has stored. An account is an owner with all its agents. It is counted in memory and written with each
//! commit, so that a message costs no statement of its own.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::account;
use crate::error::Refusal;
use crate::limits::Rules;
use crate::nouns::{AgentId, Caller};
use crate::store::{Db, exec, one};
use crate::verbs::mail::SendMessage;
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
        Command::SendMessage(_) | Command::SendSigned(_) | Command::RecordDelivered(_) => {
            return command.message().map_or(0, message);
        }
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

fn message(send: &SendMessage) -> u64 {
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
        Outcome::SendMessage(sent) | Outcome::RecordDelivered(sent) => sent,
        Outcome::SendSigned(signed) => &signed.sent,
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
    realm: Option<Used>,
    accounts: Vec<(AgentId, Used)>,
    /// The places of accounts in that list, by their names.
    by_account: HashMap<AgentId, usize>,
    /// The same by agents that spoke lately: one look-up for each message.
    by_agent: HashMap<AgentId, usize>,
    /// How many agents in force accounts have, counted once and kept up while agents are only entered.
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
    /// Refuses what would go beyond the quota of the caller's account or of the realm. The operator has none.
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
        let place = self.place(db, &caller.agent)?;
        let (account, used) = &self.accounts[place];
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
            let place = self.place(db, &caller.agent)?;
            self.accounts[place].1.add(bytes);
        }
        self.realm(db)?.add(bytes);
        Ok(())
    }

    /// Forgets whose agents are whose, after a command that may have changed it.
    pub(crate) fn forget_accounts(&mut self) {
        self.by_agent.clear();
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// How many agents in force an account has, itself included.
    pub(crate) fn agents(&mut self, db: Db<'_>, account: &AgentId) -> rusqlite::Result<i64> {
        if let Some(count) = self.agents.get(account) {
            return Ok(*count);
        }
        let count = account::count_agents(db, account)?;
        self.agents.insert(account.clone(), count);
        Ok(count)
    }

    /// Notes that an agent was entered.
    pub(crate) fn note_agent(&mut self, account: &AgentId) {
        if let Some(count) = self.agents.get_mut(account) {
            *count += 1;
        }
    }

    /// Has agents counted again, after one left or changed hands.
    pub(crate) fn forget_agents(&mut self) {
        self.agents.clear();
    }

    /// Brings the table up to what is remembered.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let realm = self.realm.iter_mut().map(|used| (REALM, used));
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
            .any(|len| len > REMEMBERED)
        {
            self.forget();
        }
        Ok(())
    }

    /// Where the account of an agent is in the list.
    fn place(&mut self, db: Db<'_>, agent: &AgentId) -> rusqlite::Result<usize> {
        if let Some(place) = self.by_agent.get(agent) {
            return Ok(*place);
        }
        let account = account::of(db, agent)?;
        let place = match self.by_account.get(&account) {
            Some(place) => *place,
            None => {
                self.accounts.push((account.clone(), read(db, account.as_str())?));
                self.by_account.insert(account, self.accounts.len() - 1);
                self.accounts.len() - 1
            }
        };
        self.by_agent.insert(agent.clone(), place);
        Ok(place)
    }

    fn realm(&mut self, db: Db<'_>) -> rusqlite::Result<&mut Used> {
        let used = match self.realm {
            Some(used) => used,
            None => read(db, REALM)?,
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

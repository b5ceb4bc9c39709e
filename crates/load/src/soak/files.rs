//! An agent that uses files only: writes messages into mailboxes, sometimes in two pieces, and removes its own.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_engine::stamp;
use posthaste_wire::files::{FileMessage, FileName, Kind, Stamp, Urgency};
use serde_json::{Map, Value};

use super::ledger::{Outcome, ReaderSession};
use super::own::LAST_READ_EVERY;
use super::rng::Rng;
use super::shared::{Shared, tick};
use super::tag::{Channel, Tag};
use posthaste_files::{Draft, FilesError, MailDir};

/// How long the server may take to read a file that was written in two pieces.
const FILE_TIMEOUT: Duration = Duration::from_secs(60);

struct Agent<'a> {
    shared: &'a Shared,
    me: u32,
    rng: Rng,
    mail: Arc<MailDir>,
    /// Files that it has read and that are still there.
    known: HashSet<String>,
    reader_sessions: ReaderSessions,
}

/// Which reads of a mailbox are one session. Messages not noted as delivered when the server was killed are written again at
/// the next start; a file that was removed in between may come again.
#[derive(Debug, Default)]
struct ReaderSessions {
    of: Option<(u64, ReaderSession)>,
}

impl ReaderSessions {
    /// The session of a read in this phase: reads during one run of the server are one session, and each read while it does not
    /// run is its own.
    fn at(&mut self, phase: u64, fresh: impl FnOnce() -> ReaderSession) -> ReaderSession {
        match self.of {
            Some((of, session)) if of == phase && phase.is_multiple_of(2) => session,
            _ => self.of.insert((phase, fresh())).1,
        }
    }
}

pub(super) async fn live(shared: Arc<Shared>, me: u32, mail: Arc<MailDir>) {
    let rng = shared.rng(me);
    let mut agent = Agent {
        shared: &shared,
        me,
        rng,
        mail,
        known: HashSet::new(),
        reader_sessions: ReaderSessions::default(),
    };
    while shared.rest(agent.rng.about(shared.pause)).await {
        match agent.rng.below(10) {
            0..=5 => agent.send().await,
            _ => agent.read().await,
        }
    }
    while shared.linger(LAST_READ_EVERY).await {
        agent.read().await;
    }
}

impl Agent<'_> {
    async fn send(&mut self) {
        let Some(&to) = self.rng.pick(&self.shared.plan.agent(self.me).recipients) else { return };
        let tag = self.shared.ledger.next(Channel::kept(self.me, to));
        let draft = Draft {
            from: self.shared.plan.name(self.me).to_owned(),
            to: self.shared.plan.name(to).to_owned(),
            kind: Kind::Coordination,
            urgency: Urgency::Normal,
            subject: tag.to_string(),
            body: self.rng.prose(),
            at: None,
            extra: Map::new(),
        };
        if self.rng.one_in(20) {
            return self.send_in_two(tag, &draft).await;
        }
        let mail = self.mail.clone();
        let sent = tokio::task::spawn_blocking(move || mail.send(&draft).map(drop)).await;
        match sent {
            Ok(Ok(())) => self.shared.settle(tag, Outcome::Acked, ""),
            Ok(Err(why)) => self.shared.settle(tag, Outcome::Refused, &why.to_string()),
            Err(why) => self.shared.settle(tag, Outcome::Refused, &why.to_string()),
        }
    }

    /// Writes a file in two pieces under its final name, as careless senders do.
    async fn send_in_two(&mut self, tag: Tag, draft: &Draft) {
        tick(&self.shared.actions.files_written_in_two);
        let now = Stamp::nearest(stamp::now_nanos());
        let message = FileMessage {
            from: draft.from.clone(),
            to: draft.to.clone(),
            kind: draft.kind.as_str().to_owned(),
            subject: draft.subject.clone(),
            body: Value::String(draft.body.clone()),
            timestamp: now.to_string(),
            read: false,
            priority: draft.urgency.as_str().to_owned(),
            extra: Map::new(),
        };
        let text = message.to_text();
        let path = self.shared.mail.join(&draft.to).join(FileName::write(now, &draft.from));
        let pause = self.rng.millis(20, 800);
        let written = tokio::task::spawn_blocking(move || -> std::io::Result<()> {
            if let Some(mailbox) = path.parent() {
                std::fs::create_dir_all(mailbox)?;
            }
            let (first, second) = text.as_bytes().split_at(text.len() / 2);
            let mut file = std::fs::File::create_new(path)?;
            file.write_all(first)?;
            file.sync_all()?;
            std::thread::sleep(pause);
            file.write_all(second)?;
            file.sync_all()
        });
        match written.await {
            Ok(Ok(())) => self.shared.settle(tag, Outcome::Acked, ""),
            _ => return self.shared.settle(tag, Outcome::Unknown, ""),
        }
        // It may be found later than one that is dropped whole after it; such files have no promised order.
        let end = Instant::now() + FILE_TIMEOUT;
        while !self.shared.ledger.is_in_database(tag) && Instant::now() < end {
            if !self.shared.linger(Duration::from_millis(50)).await {
                return;
            }
        }
        if !self.shared.ledger.is_in_database(tag) {
            self.shared.ledger.find("files: not found", format!("{tag} after {} s", FILE_TIMEOUT.as_secs()));
        }
    }

    /// Removes messages from its own mailbox, and from those that its messages to other doors have created.
    async fn read(&mut self) {
        let session = self.reader_sessions.at(self.shared.phase(), || self.shared.session());
        let mut boxes = vec![(self.me, true)];
        let recipients = &self.shared.plan.agent(self.me).recipients;
        boxes.extend(recipients.iter().filter(|of| self.shared.plan.reads_all(**of)).map(|of| (*of, false)));
        for (owner, own) in boxes {
            let (mail, name) = (self.mail.clone(), self.shared.plan.name(owner).to_owned());
            let looked = tokio::task::spawn_blocking(move || look(&mail, &name)).await;
            let Ok(Ok(found)) = looked else { continue };
            for (file, tag) in found {
                if own && !self.known.contains(&file) {
                    self.known.insert(file.clone());
                    if let Some(tag) = tag {
                        self.shared.ledger.at_reader(tag, session);
                    }
                }
                // A file that the server has not read yet stays.
                if tag.is_none_or(|tag| self.shared.ledger.is_in_database(tag)) {
                    let path = self.shared.mail.join(self.shared.plan.name(owner)).join(&file);
                    if tokio::fs::remove_file(path).await.is_ok() {
                        tick(&self.shared.actions.files_taken);
                    }
                    self.known.remove(&file);
                }
            }
        }
    }
}

/// The files of a mailbox, in the order of names. A listing during writes may have a later file and not an earlier one, so the
/// files up to the last one are listed again.
fn look(mail: &MailDir, agent: &str) -> Result<Vec<(String, Option<Tag>)>, FilesError> {
    let Some(mailbox) = mail.mailbox(agent)? else { return Ok(Vec::new()) };
    let Some(last) = mailbox.names()?.into_iter().max() else { return Ok(Vec::new()) };
    let entries = mail.inbox(agent)?.entries.into_iter().filter(|entry| entry.file <= last);
    let tag =
        |message: &FileMessage| Tag::find(&message.subject).or_else(|| Tag::find(&message.body.to_string()));
    Ok(entries.map(|entry| (tag(&entry.message), entry.file)).map(|(tag, file)| (file, tag)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_while_the_server_is_down_are_sessions_of_their_own() {
        let mut numbers = 0;
        let mut reader_sessions = ReaderSessions::default();
        let mut at = |phase| {
            reader_sessions.at(phase, || {
                numbers += 1;
                ReaderSession::Numbered(numbers)
            })
        };
        let sessions = [0, 0, 1, 1, 2, 2].map(&mut at);
        assert_eq!(sessions, [1, 1, 2, 3, 4, 4].map(ReaderSession::Numbered));
    }
}

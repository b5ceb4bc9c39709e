//! An agent that can only touch files: drops letters into mailboxes, sometimes in two pieces, and takes its own out.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_engine::stamp;
use posthaste_wire::files::{FileMessage, FileName, Kind, Stamp, Urgency};
use serde_json::{Map, Value};

use super::chance::Chance;
use super::field::{Field, tick};
use super::ledger::{Outcome, Sitting};
use super::mark::{Channel, Mark};
use super::own::LAST_LOOKS;
use posthaste_files::{Draft, FilesError, MailDir};

/// How long the office may take to find a file that was written in two pieces.
const FOUND: Duration = Duration::from_secs(60);

struct Agent<'a> {
    field: &'a Field,
    me: u32,
    chance: Chance,
    mail: Arc<MailDir>,
    /// Files that it has read and that are still there.
    known: HashSet<String>,
    readings: Readings,
}

/// Which looks into a mailbox are one reading. What was not noted as handed over when the office was killed is written
/// again, at a moment between the kill and when it is known to be open; a file taken in that time may come again in it.
#[derive(Debug, Default)]
struct Readings {
    of: Option<(u64, Sitting)>,
}

impl Readings {
    /// The reading that a look belongs to which begins in this phase of the office: looks of one open office are one
    /// reading, and every look at a dead one is its own.
    fn at(&mut self, phase: u64, fresh: impl FnOnce() -> Sitting) -> Sitting {
        match self.of {
            Some((of, sitting)) if of == phase && phase.is_multiple_of(2) => sitting,
            _ => self.of.insert((phase, fresh())).1,
        }
    }
}

pub(super) async fn live(field: Arc<Field>, me: u32, mail: Arc<MailDir>) {
    let chance = field.chance(me);
    let mut agent =
        Agent { field: &field, me, chance, mail, known: HashSet::new(), readings: Readings::default() };
    while field.rest(agent.chance.about(field.pause)).await {
        match agent.chance.below(10) {
            0..=5 => agent.send().await,
            _ => agent.read().await,
        }
    }
    while field.linger(LAST_LOOKS).await {
        agent.read().await;
    }
}

impl Agent<'_> {
    async fn send(&mut self) {
        let Some(&to) = self.chance.pick(&self.field.plan.agent(self.me).circle) else { return };
        let mark = self.field.ledger.next(Channel::kept(self.me, to));
        let draft = Draft {
            from: self.field.plan.name(self.me).to_owned(),
            to: self.field.plan.name(to).to_owned(),
            kind: Kind::Coordination,
            urgency: Urgency::Normal,
            subject: mark.to_string(),
            body: self.chance.prose(),
            at: None,
            extra: Map::new(),
        };
        if self.chance.one_in(20) {
            return self.send_in_two(mark, &draft).await;
        }
        let mail = self.mail.clone();
        let sent = tokio::task::spawn_blocking(move || mail.send(&draft).map(drop)).await;
        match sent {
            Ok(Ok(())) => self.field.settle(mark, Outcome::Acked, ""),
            Ok(Err(why)) => self.field.settle(mark, Outcome::Refused, &why.to_string()),
            Err(why) => self.field.settle(mark, Outcome::Refused, &why.to_string()),
        }
    }

    /// Writes under the final name, as careless senders do, and takes its time over it.
    async fn send_in_two(&mut self, mark: Mark, draft: &Draft) {
        tick(&self.field.deeds.files_written_in_two);
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
        let path = self.field.mail.join(&draft.to).join(FileName::write(now, &draft.from));
        let pause = self.chance.millis(20, 800);
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
            Ok(Ok(())) => self.field.settle(mark, Outcome::Acked, ""),
            _ => return self.field.settle(mark, Outcome::Unknown, ""),
        }
        // It may be found later than one that is dropped whole after it; order is not promised to the careless.
        let end = Instant::now() + FOUND;
        while !self.field.ledger.is_in_books(mark) && Instant::now() < end {
            if !self.field.linger(Duration::from_millis(50)).await {
                return;
            }
        }
        if !self.field.ledger.is_in_books(mark) {
            self.field.ledger.find("files: not found", format!("{mark} after {} s", FOUND.as_secs()));
        }
    }

    /// Takes letters out of its own mailbox, and out of those that its letters to other doors have made.
    async fn read(&mut self) {
        let sitting = self.readings.at(self.field.phase(), || self.field.sitting());
        let mut boxes = vec![(self.me, true)];
        let circle = &self.field.plan.agent(self.me).circle;
        boxes.extend(circle.iter().filter(|of| self.field.plan.reads_all(**of)).map(|of| (*of, false)));
        for (owner, own) in boxes {
            let (mail, name) = (self.mail.clone(), self.field.plan.name(owner).to_owned());
            let looked = tokio::task::spawn_blocking(move || look(&mail, &name)).await;
            let Ok(Ok(found)) = looked else { continue };
            for (file, mark) in found {
                if own && !self.known.contains(&file) {
                    self.known.insert(file.clone());
                    if let Some(mark) = mark {
                        self.field.ledger.at_reader(mark, sitting);
                    }
                }
                // One that the office has not seen yet is left, or it would never see it.
                if mark.is_none_or(|mark| self.field.ledger.is_in_books(mark)) {
                    let path = self.field.mail.join(self.field.plan.name(owner)).join(&file);
                    if tokio::fs::remove_file(path).await.is_ok() {
                        tick(&self.field.deeds.files_taken);
                    }
                    self.known.remove(&file);
                }
            }
        }
    }
}

/// What lies in a mailbox, in the order of names. A listing that is taken while files come may have a later one and not an
/// earlier one, so what the first look found is read with a second one.
fn look(mail: &MailDir, agent: &str) -> Result<Vec<(String, Option<Mark>)>, FilesError> {
    let Some(mailbox) = mail.mailbox(agent)? else { return Ok(Vec::new()) };
    let Some(last) = mailbox.names()?.into_iter().max() else { return Ok(Vec::new()) };
    let entries = mail.inbox(agent)?.entries.into_iter().filter(|entry| entry.file <= last);
    let mark = |message: &FileMessage| {
        Mark::find(&message.subject).or_else(|| Mark::find(&message.body.to_string()))
    };
    Ok(entries.map(|entry| (mark(&entry.message), entry.file)).map(|(mark, file)| (file, mark)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_from_a_dead_office_may_come_again_when_it_opens() {
        let mut numbers = 0;
        let mut readings = Readings::default();
        let mut at = |phase| {
            readings.at(phase, || {
                numbers += 1;
                Sitting::Number(numbers)
            })
        };
        let sittings = [0, 0, 1, 1, 2, 2].map(&mut at);
        assert_eq!(sittings, [1, 1, 2, 3, 4, 4].map(Sitting::Number));
    }
}

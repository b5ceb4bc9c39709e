//! The handle to one realm: the only way to its books, for every door.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::acl;
use crate::budget::{Bounds, Budget, Request, Waiting};
use crate::commit::{Poison, Writer};
use crate::disk::Disk;
use crate::error::{EngineError, Fault, Refusal};
use crate::files::Files;
use crate::hub::{Feed, Filter, Hub, MailboxStream, Start};
use crate::limits::Limits;
use crate::lock::DirectoryLock;
use crate::log::{self, Account, AnswerSlip, CallerQuota, Local, Part, Place, Record};
use crate::meter::Meter;
use crate::nouns::{Address, AgentId, Caller, RealmName};
use crate::office::WeakOffice;
use crate::presence::Presences;
use crate::stamp;
use crate::store::{Db, Inspection, inspect, open_reader};
use crate::usage;
use crate::verbs::{Command, Verb};
use crate::views::{View, Viewed};
use crate::vitals::{Reading, Vitals};

/// A realm that is open. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    queue: log::Sender,
    /// On whose share it draws; nobody counts what the office itself does.
    share: Option<Arc<CallerQuota>>,
    /// Whether its reads may take as long as the operator's.
    unhurried: bool,
}

#[derive(Debug)]
struct Shared {
    realm: RealmName,
    path: PathBuf,
    limits: Limits,
    hub: Arc<Hub>,
    meter: Arc<Meter>,
    poison: Poison,
    files: Arc<Files>,
    disk: Disk,
    presences: Presences,
    /// The office the realm is part of, if it is; knows the neighbours.
    office: Option<WeakOffice>,
    readers: Mutex<Vec<Connection>>,
    /// As many readers at once as there are connections.
    turnstile: Arc<Semaphore>,
    vitals: Arc<Vitals>,
    /// Set when the process is about to end: reads that are under way stop.
    closing: Arc<AtomicBool>,
}

/// A reader's place and what it takes of its caller's share. Held by the thread that reads, so that both are free when
/// the read ends, and not before, even if its caller has left.
#[derive(Debug)]
struct Turn {
    part: Option<Part>,
    _place: OwnedSemaphorePermit,
    _reading: Reading,
}

/// Patterns of a subscription, counted for as long as this is kept.
#[derive(Debug)]
pub struct Patterns {
    _part: Option<Part>,
}

/// A change that has been asked for and not yet been answered. It is carried out whether or not anyone waits; only a caller
/// that waits and is told that the office is busy knows that it is not.
#[derive(Debug)]
pub struct Pending<V> {
    answer: AnswerSlip,
    verb: PhantomData<fn() -> V>,
}

impl<V: Verb> Pending<V> {
    /// Waits until the answer is durable.
    ///
    /// # Errors
    /// A refusal is the caller's to mend, a fault is ours. `Busy` if the writer did not take the change up in time; it is
    /// not carried out then.
    pub async fn answer(self) -> Result<V::Outcome, EngineError> {
        let outcome = self.answer.wait().await?;
        V::from_outcome(outcome)
            .ok_or_else(|| Fault::Internal { reason: "an answer to another verb".to_owned() }.into())
    }
}

/// Owns the writer. When the engine's handles are gone, waiting for it makes sure that everything taken was answered.
#[derive(Debug)]
pub struct EngineGuard {
    writer: Option<JoinHandle<()>>,
}

impl EngineGuard {
    /// Waits until the writer has answered everything and closed the books. Every handle must have been dropped.
    pub fn join(mut self) {
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has already said so and poisoned the realm.
            drop(writer.join());
        }
    }
}

impl Engine {
    /// Opens the books of a realm at a path, making them if they are not there.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(path: &Path, realm: RealmName, limits: Limits) -> Result<(Self, EngineGuard), Fault> {
        Self::open_with(path, realm, limits, None, Writer::start)
    }

    /// Opens books in a directory that is held; the writer keeps hold of it until it ends.
    pub(crate) fn open_with(
        path: &Path,
        realm: RealmName,
        limits: Limits,
        held: Option<(Arc<DirectoryLock>, WeakOffice)>,
        start: impl FnOnce(Writer, Local) -> std::io::Result<JoinHandle<()>>,
    ) -> Result<(Self, EngineGuard), Fault> {
        let (held, office) = held.unzip();
        let closing = office.as_ref().and_then(WeakOffice::upgrade).map(|office| office.reads_end());
        let closing = closing.unwrap_or_default();
        let hub = Arc::new(Hub::new(&limits));
        let meter = Arc::new(Meter::new());
        let poison = Poison::default();
        let vitals = Vitals::new(limits.readers.max(1));
        let writer = Writer::open(
            path,
            realm.clone(),
            &limits,
            hub.clone(),
            meter.clone(),
            vitals.clone(),
            poison.clone(),
            held,
        )?;
        let files = writer.files();
        let readers: Vec<_> =
            (0..limits.readers.max(1)).map(|_| open_reader(path)).collect::<Result<_, _>>()?;
        let (queue, local) = log::local(&limits);
        let writer = start(writer, local).map_err(|error| Fault::Database { reason: error.to_string() })?;
        let disk = Disk::of(path, limits.disk_reserve);
        let shared = Shared {
            realm,
            path: path.to_owned(),
            turnstile: Arc::new(Semaphore::new(readers.len())),
            limits,
            hub,
            meter,
            poison,
            disk,
            files,
            presences: Presences::default(),
            office,
            readers: Mutex::new(readers),
            vitals,
            closing,
        };
        let engine = Self { shared: Arc::new(shared), queue, share: None, unhurried: false };
        Ok((engine, EngineGuard { writer: Some(writer) }))
    }

    /// The same realm for somebody who has no more than a share of it.
    #[must_use]
    pub fn with_caller_quota(&self, share: Arc<CallerQuota>) -> Self {
        Self { share: Some(share), ..self.clone() }
    }

    /// The same realm for the operator, whose reads may take longer than those of others.
    #[must_use]
    pub fn unhurried(&self) -> Self {
        Self { unhurried: true, ..self.clone() }
    }

    /// Asks for a change and waits until the answer is durable.
    ///
    /// # Errors
    /// A refusal is the caller's to mend, a fault is ours.
    pub async fn submit<V: Verb>(&self, caller: &Caller, verb: V) -> Result<V::Outcome, EngineError> {
        self.enqueue(caller, verb).await?.answer().await
    }

    /// Puts a change into the queue, where it has its place among all others, without waiting for the answer. Callers
    /// that keep several changes in flight and want them carried out in order post them one after the other.
    ///
    /// # Errors
    /// Refused if it is too large or the office is busy; a fault if the realm takes no writes.
    pub async fn enqueue<V: Verb>(&self, caller: &Caller, verb: V) -> Result<Pending<V>, EngineError> {
        let command = verb.into_command();
        self.meet_neighbours(&command).await?;
        let answer = self.put(Record::new(caller.clone(), command)).await?;
        Ok(Pending { answer, verb: PhantomData })
    }

    /// A letter to another realm of the same office makes the two neighbours.
    async fn meet_neighbours(&self, command: &Command) -> Result<(), EngineError> {
        let Some(send) = command.message() else { return Ok(()) };
        for address in send.to.iter().chain(&send.cc).chain(&send.bcc) {
            if let Address::Remote { realm, .. } = address
                && *realm != self.shared.realm
                && let Some(office) = self.shared.office.as_ref().and_then(WeakOffice::upgrade)
            {
                // Introducing submits a verb of its own, so the future must not contain itself.
                Box::pin(office.introduce(self, realm)).await?;
            }
        }
        Ok(())
    }

    /// Puts a stamped command into the queue and waits until the answer is durable.
    #[cfg(feature = "testing")]
    pub(crate) async fn submit_record(&self, record: Record) -> Result<crate::verbs::Outcome, EngineError> {
        self.put(record).await?.wait().await
    }

    async fn put(&self, record: Record) -> Result<AnswerSlip, EngineError> {
        let bytes = check_size(&record.command, &self.shared.limits)?;
        if let Some(reason) = self.shared.poison.get() {
            return Err(Fault::Poisoned { reason: reason.clone() }.into());
        }
        if !record.caller.rights.admin && usage::weight(&record.command) > 0 {
            self.shared.disk.check()?;
        }
        let account = self.account(&record.caller);
        if !record.command.sends() {
            return self.queue.put(record, bytes, account).await;
        }
        // Until it arrives, faster letters of the same sender must not overtake it.
        let (fast_path, sender) = (self.shared.hub.fast_path(), record.caller.agent.clone());
        fast_path.set_out(&sender);
        let put = self.queue.put(record, bytes, account).await;
        if put.is_err() {
            fast_path.arrived(&sender);
        }
        put
    }

    /// Waits until everything that was asked for so far is in the books, letters included that were handed round before.
    /// Whoever does not wait for answers and wants to read what it has written waits for this.
    pub async fn flush(&self) {
        self.queue.flush().await;
    }

    /// Reads the books as they are at one moment. The read is stopped when it has used up its time, and when this future
    /// is dropped.
    ///
    /// # Errors
    /// Whatever the view answers; refused if it takes too long, or if no reader is free for a while; a fault if the
    /// books cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static,
    ) -> Viewed<T> {
        let turn = tokio::time::timeout(self.shared.limits.queue_wait, self.turn());
        let turn = turn.await.map_err(|_| Refusal::Busy)??;
        self.read_in_turn(turn, look).await
    }

    /// As [`Engine::read`], for streams, which wait for a reader however long that takes instead of being refused.
    pub(crate) async fn read_patiently<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static,
    ) -> Viewed<T> {
        let turn = self.turn().await?;
        self.read_in_turn(turn, look).await
    }

    /// Waits for a reader: first for one of those that the caller may hold, then for a free one.
    async fn turn(&self) -> Result<Turn, EngineError> {
        let part = match &self.share {
            Some(share) => share.look().await,
            None => None,
        };
        let place = self.shared.turnstile.clone().acquire_owned().await.map_err(|_| Fault::Closing)?;
        Ok(Turn { part, _place: place, _reading: self.shared.vitals.read_begins() })
    }

    async fn read_in_turn<T: Send + 'static>(
        &self,
        turn: Turn,
        look: impl FnOnce(&View<'_>) -> Viewed<T> + Send + 'static,
    ) -> Viewed<T> {
        let limits = &self.shared.limits;
        let bounds = match self.unhurried {
            true => Bounds { cpu: limits.long_read_cpu, wall: limits.long_read_wall, bytes: u64::MAX },
            false => {
                let bytes = limits.answer_bytes.max(limits.page_bytes + limits.message_bytes * 4) as u64;
                Bounds { cpu: limits.read_cpu, wall: limits.read_wall, bytes }
            }
        };
        let request = Request::current();
        let (bounds, bytes) = match &request {
            Some(request) => request.next_read(bounds, limits)?,
            None => (bounds, limits.page_bytes),
        };
        let waiting = Waiting::default();
        let gone = waiting.gone();
        let shared = self.shared.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let budget = Budget::of(Some(bounds), bytes, gone, shared.closing.clone());
            let looked = shared.look(&budget, look);
            let cpu = budget.cpu();
            if let Some(part) = &turn.part {
                part.charge(cpu);
            }
            if let Some(request) = request {
                request.charge(cpu, budget.brought());
            }
            drop(turn);
            looked
        });
        let looked = looked.await.map_err(|error| Fault::Internal { reason: error.to_string() })?;
        drop(waiting);
        looked
    }

    /// Reads the books on this thread, however long it takes. For programs and tests that are not asynchronous.
    ///
    /// # Errors
    /// Whatever the view answers; a fault if the books cannot be read.
    pub fn read_blocking<T>(&self, look: impl FnOnce(&View<'_>) -> Viewed<T>) -> Viewed<T> {
        self.shared.look(&Budget::unbounded(&self.shared.limits), look)
    }

    /// Counts the patterns of a subscription towards what its caller may have in all, until the answer is dropped.
    ///
    /// # Errors
    /// Refused if the caller has too many already.
    pub fn hold_patterns(&self, count: usize) -> Result<Patterns, EngineError> {
        let Some(share) = &self.share else { return Ok(Patterns { _part: None }) };
        let limit = self.shared.limits.share_patterns as u64;
        let part = share
            .hold_patterns(count)
            .ok_or(Refusal::TooMany { what: "patterns in subscriptions of one token", limit })?;
        Ok(Patterns { _part: Some(part) })
    }

    /// Follows the history from a place, with as much as `buffer` events kept for a follower that holds the feed up.
    ///
    /// # Errors
    /// Refused for a place that this history has not reached.
    pub async fn follow(
        &self,
        caller: &Caller,
        filter: Filter,
        start: Start,
        buffer: usize,
    ) -> Result<Feed, EngineError> {
        // The head is read from the books: what is committed is there before it is announced.
        let asking = caller.agent.clone();
        let (head, bounded) =
            self.read(move |view| Ok((view.head()?, acl::of(view.db, &asking)?.is_some()))).await?;
        let place = match start {
            Start::Now => head,
            Start::After(place) if (0..=head).contains(&place) => place,
            Start::After(_) => return Err(Refusal::StaleCursor.into()),
        };
        Ok(Feed::new(self.clone(), caller.clone(), bounded, filter, place, buffer))
    }

    /// Waits for an agent's mail: what is kept for it and what comes.
    ///
    /// # Errors
    /// Refused for anybody but the agent, its owner, or those who run the office.
    pub async fn attach(&self, caller: &Caller, agent: &AgentId) -> Result<MailboxStream, EngineError> {
        let (asking, name) = (caller.clone(), agent.clone());
        self.read(move |view| view.mailbox(&asking, &name).map(drop)).await?;
        Ok(MailboxStream::open(self.clone(), caller.clone(), agent.clone(), 0))
    }

    /// Whether somebody waits for an agent's mail right now.
    #[must_use]
    pub fn is_attached(&self, agent: &AgentId) -> bool {
        self.shared.hub.is_attached(agent)
    }

    /// The doors by which an agent is connected right now: none if it is not.
    #[must_use]
    pub fn attached_by(&self, agent: &AgentId) -> Vec<String> {
        self.shared.hub.doors_of(agent)
    }

    /// Lets go of everyone who waits for an agent's mail: they get what is in their hands and nothing more.
    pub fn close_mailboxes(&self, agent: &AgentId) {
        self.shared.hub.close_mailboxes(agent);
    }

    /// Who is about.
    #[must_use]
    pub fn presences(&self) -> &Presences {
        &self.shared.presences
    }

    /// A number that changes before any change to an agent or a token is answered. Whoever remembers who somebody is
    /// takes it before asking the books, and asks again once it is another.
    #[must_use]
    pub fn directory_version(&self) -> u64 {
        self.shared.hub.fast_path().epoch()
    }

    /// How many names went from one holder to another since the realm was opened: given up and taken again, or lost to the
    /// bearer of the token that carries them. Counted before such a change is answered and before events that follow it are
    /// handed out: a door that remembers who holds a name asks again when the count is another.
    #[must_use]
    pub fn names_reassigned(&self) -> u64 {
        self.shared.hub.reassigned()
    }

    /// The realm's name.
    #[must_use]
    pub fn realm(&self) -> &RealmName {
        &self.shared.realm
    }

    /// Where the books are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// What the engine counts about itself.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.shared.meter
    }

    /// Commands waiting for the writer.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        self.queue.depth()
    }

    /// Agents whose mail somebody waits for, and followers of the history.
    #[must_use]
    pub fn listeners(&self) -> (usize, usize) {
        (self.shared.hub.attached(), self.shared.hub.followers())
    }

    /// Why the realm takes no writes, if it does not.
    #[must_use]
    pub fn poisoned(&self) -> Option<&str> {
        self.shared.poison.get().map(String::as_str)
    }

    /// What has been stuck for longer than `stuck_after`, if anything has. Waits for neither writer nor readers.
    #[must_use]
    pub fn stuck(&self) -> Option<String> {
        self.shared.vitals.stuck(self.shared.limits.stuck_after)
    }

    /// Stops the reads that are under way and those that come: the process is about to end.
    pub fn stop_reading(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    /// Looks whether the files are still those that were opened; the realm takes no more writes if not.
    pub fn check_files(&self) {
        if let Err(reason) = self.shared.files.check() {
            let reason = self.shared.poison.get_or_init(|| reason);
            tracing::error!(realm = %self.shared.realm, reason, "the files of the realm are damaged; it is read-only");
        }
    }

    /// Looks through the file for damage on this thread, for as long as `within`. A realm that is damaged takes no more
    /// writes: they could spread the damage, and a backup would be the older the longer it went on.
    pub fn inspect(&self, within: std::time::Duration) -> Inspection {
        let (start, closing) = (std::time::Instant::now(), self.shared.closing.clone());
        let go_on = move || !closing.load(Ordering::Acquire) && start.elapsed() < within;
        let found = inspect(&self.shared.path, go_on);
        if let Inspection::Damaged(why) = &found {
            let path = self.shared.path.display();
            let reason = format!(
                "{path} is damaged ({why}). Stop the server and restore a backup (`posthaste restore FILE --force`); \
                 `posthaste doctor` says more"
            );
            let reason = self.shared.poison.get_or_init(|| reason);
            tracing::error!(realm = %self.shared.realm, reason, "the database is damaged; the realm is read-only");
        }
        found
    }

    /// Lets the writer end once everything asked so far is answered. Handles that are left can still read.
    pub async fn close(&self) {
        self.queue.close().await;
    }

    /// Whether anyone besides the office itself holds this realm.
    pub(crate) fn is_idle(&self) -> bool {
        // One handle is the office's own; followers and mailslots hold handles too.
        Arc::strong_count(&self.shared) == 1 && self.queue.depth() == 0
    }

    /// A place in the queue for a caller's command of that size.
    pub(crate) async fn reserve(&self, caller: &Caller, bytes: usize) -> Result<Place<'_>, EngineError> {
        if !caller.rights.admin {
            self.shared.disk.check()?;
        }
        self.queue.reserve(bytes, self.account(caller)).await
    }

    fn account(&self, caller: &Caller) -> Account<'_> {
        match &self.share {
            Some(share) => Account::CallerQuota(share),
            None if caller.agent.is_office() => Account::House,
            None => Account::Guest,
        }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.shared.hub
    }
}

impl Shared {
    fn look<T>(&self, budget: &Arc<Budget>, look: impl FnOnce(&View<'_>) -> Viewed<T>) -> Viewed<T> {
        let kept = self.lock().pop();
        let mut db = match kept {
            Some(db) => db,
            // Blocking readers do not pass the turnstile, so there may be none left.
            None => open_reader(&self.path)?,
        };
        budget.watch(&mut db)?;
        let looked = self.look_at(&db, budget, look);
        Budget::unwatch(&mut db)?;
        let mut readers = self.lock();
        if readers.len() < self.limits.readers {
            readers.push(db);
        }
        looked
    }

    fn look_at<T>(
        &self,
        db: &Connection,
        budget: &Budget,
        look: impl FnOnce(&View<'_>) -> Viewed<T>,
    ) -> Viewed<T> {
        // One transaction, so that a view of several statements sees one moment.
        let moment = db.unchecked_transaction()?;
        let view = View { db: Db::new(&moment), limits: &self.limits, now: stamp::now(), budget };
        let looked = look(&view);
        // Whatever a view made of a statement that was stopped, it is not an answer. Rolled back when it is dropped.
        if let Some(verdict) = budget.verdict() {
            return Err(verdict);
        }
        // Not taken back: what a search laid out for itself is of use to the next one.
        moment.commit()?;
        looked
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses what is too large without troubling the writer; says how much room the command takes in the queue.
fn check_size(command: &Command, limits: &Limits) -> Result<usize, EngineError> {
    let send = match command {
        Command::SendMessage(send) => send,
        Command::SendSigned(signed) => &signed.message,
        Command::Advance(advance) => {
            return too_large("the letters of a turn", advance.weight(), limits.message_bytes);
        }
        // The most common command of this kind; its content is text already and need not be written down to be measured.
        Command::Say(say) => {
            let visible_to = say.visibility.as_ref();
            let bytes = 128
                + say.content.as_str().len()
                + say.content_type.len()
                + say.conversation.as_str().len()
                + say.meta.as_ref().map_or(0, |meta| meta.as_str().len())
                + visible_to.map_or(0, |to| serde_json::to_vec(to).map_or(0, |bytes| bytes.len()));
            return too_large("the command", bytes, limits.message_bytes);
        }
        // These are read again with every list of their kind, and for everyone who is written to.
        Command::Register(_)
        | Command::Update(_)
        | Command::CreateScope(_)
        | Command::Reserve(_)
        | Command::ReserveEach(_)
        | Command::Ask(_) => {
            let bytes = serde_json::to_vec(command).map_or(0, |bytes| bytes.len());
            return too_large("the entry", bytes, limits.entry_bytes);
        }
        other => {
            let bytes = serde_json::to_vec(other).map_or(0, |bytes| bytes.len());
            // Everything a verb holds together is bounded like a message.
            return too_large("the command", bytes, limits.message_bytes);
        }
    };
    let addresses = send.to.len() + send.cc.len() + send.bcc.len();
    if addresses > limits.addresses {
        return Err(Refusal::TooMany { what: "addresses", limit: limits.addresses as u64 }.into());
    }
    let roles = |address: &Address| match address {
        Address::Role { role, .. } => role.len(),
        Address::Remote { agent, .. } => agent.len(),
        _ => 0,
    };
    let visible_to = send.within.as_ref().and_then(|within| within.visibility.as_ref());
    let small = send.kind.len()
        + send.to.iter().chain(&send.cc).chain(&send.bcc).map(roles).sum::<usize>()
        + visible_to.map_or(0, |to| serde_json::to_vec(to).map_or(0, |bytes| bytes.len()))
        + send.subject.as_ref().map_or(0, String::len)
        + send.correlation.as_ref().map_or(0, String::len)
        + send.key.as_ref().map_or(0, String::len);
    too_large("kind, subject, correlation, key and addresses", small, limits.text_bytes)?;
    let bytes = small
        + send.body.as_str().len()
        + send.envelope.as_ref().map_or(0, String::len)
        + send.meta.as_ref().map_or(0, |meta| meta.as_str().len());
    too_large("the message", bytes, limits.message_bytes)
}

fn too_large(what: &'static str, got: usize, limit: usize) -> Result<usize, EngineError> {
    if got > limit { Err(Refusal::TooLarge { what, limit, got }.into()) } else { Ok(got) }
}

//! The handle to one realm: the only access to its database, for every door.

mod read;

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::acl;
use crate::commit::{Poison, Writer};
use crate::disk::Disk;
use crate::error::{EngineError, Fault, Refusal};
use crate::file_identity::DatabaseFiles;
use crate::hub::{Feed, Filter, Hub, MailboxStream, Start};
use crate::limits::Limits;
use crate::liveness::{Liveness, Reading};
use crate::lock::DirectoryLock;
use crate::log::{self, Account, Local, PendingAnswer, QueueSlot, Record};

use crate::meter::Meter;
use crate::nouns::{Address, AgentId, Caller, RealmName};
use crate::office::WeakOffice;
use crate::presence::Presences;
use crate::quota::{CallerQuota, QuotaPermit};
use crate::store::{Inspection, inspect, open_reader};
use crate::usage;
use crate::verbs::{Command, Verb};

/// An open realm. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    queue: log::Sender,
    /// The caller quota that its commands and reads are charged to; none for the server's own.
    share: Option<Arc<CallerQuota>>,
    /// Whether its reads get the longer limits of the operator.
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
    files: Arc<DatabaseFiles>,
    disk: Disk,
    presences: Presences,
    /// The office that the realm belongs to, if it does; knows the other realms.
    office: Option<WeakOffice>,
    readers: Mutex<Vec<Connection>>,
    /// One permit for each reader connection.
    turnstile: Arc<Semaphore>,
    liveness: Arc<Liveness>,
    /// Set when the process is about to end; reads in progress stop.
    closing: Arc<AtomicBool>,
}

/// A reader permit and the part of the caller's quota that the read uses. Held by the thread that reads, so that both
/// are released when the read ends, even if its caller has left earlier.
#[derive(Debug)]
struct Turn {
    part: Option<QuotaPermit>,
    _place: OwnedSemaphorePermit,
    _reading: Reading,
}

/// Patterns of a subscription, counted towards the caller's quota until this is dropped.
#[derive(Debug)]
pub struct Patterns {
    _part: Option<QuotaPermit>,
}

/// A change that was requested and not yet answered. It is applied whether or not the caller waits; only a caller that
/// waits and gets `Busy` knows that it was not.
#[derive(Debug)]
pub struct Pending<V> {
    answer: PendingAnswer,
    verb: PhantomData<fn() -> V>,
}

impl<V: Verb> Pending<V> {
    /// Waits until the change is durable and returns its result.
    ///
    /// # Errors
    /// A refusal can be fixed by the caller, a fault cannot. `Busy` if the writer did not start the change in time;
    /// then it is not applied.
    pub async fn answer(self) -> Result<V::Outcome, EngineError> {
        let outcome = self.answer.wait().await?;
        V::from_outcome(outcome)
            .ok_or_else(|| Fault::Internal { reason: "an answer to another verb".to_owned() }.into())
    }
}

/// Owns the writer thread. Joining it, after the engine's handles are dropped, makes sure that every accepted command
/// was answered.
#[derive(Debug)]
pub struct EngineGuard {
    writer: Option<JoinHandle<()>>,
}

impl EngineGuard {
    /// Waits until the writer has answered every command and closed the database. Every handle must have been dropped.
    pub fn join(mut self) {
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has logged that and poisoned the realm.
            drop(writer.join());
        }
    }
}

impl Engine {
    /// Opens the database of a realm at a path and creates it if it does not exist.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(path: &Path, realm: RealmName, limits: Limits) -> Result<(Self, EngineGuard), Fault> {
        Self::open_with(path, realm, limits, None, Writer::start)
    }

    /// Opens a database in a locked directory; the writer holds the lock until it ends.
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
        let liveness = Liveness::new(limits.readers.max(1));
        let writer = Writer::open(
            path,
            realm.clone(),
            &limits,
            hub.clone(),
            meter.clone(),
            liveness.clone(),
            poison.clone(),
            held,
        )?;
        let files = writer.files();
        let readers: Vec<_> =
            (0..limits.readers.max(1)).map(|_| open_reader(path)).collect::<Result<_, _>>()?;
        let (queue, local) = log::local(&limits);
        let writer = start(writer, local).map_err(|error| Fault::Database { reason: error.to_string() })?;
        let disk = Disk::new(path, limits.disk_reserve);
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
            liveness,
            closing,
        };
        let engine = Self { shared: Arc::new(shared), queue, share: None, unhurried: false };
        Ok((engine, EngineGuard { writer: Some(writer) }))
    }

    /// The same realm with its commands and reads charged to a caller quota.
    #[must_use]
    pub fn with_caller_quota(&self, share: Arc<CallerQuota>) -> Self {
        Self { share: Some(share), ..self.clone() }
    }

    /// The same realm for the operator, whose reads have longer limits.
    #[must_use]
    pub fn unhurried(&self) -> Self {
        Self { unhurried: true, ..self.clone() }
    }

    /// Requests a change and waits until it is durable.
    ///
    /// # Errors
    /// A refusal can be fixed by the caller, a fault cannot.
    pub async fn submit<V: Verb>(&self, caller: &Caller, verb: V) -> Result<V::Outcome, EngineError> {
        self.enqueue(caller, verb).await?.answer().await
    }

    /// Puts a change into the queue without waiting for the answer. Callers with several changes in flight that must be
    /// applied in order enqueue them one after the other.
    ///
    /// # Errors
    /// Refused if it is too large or the queue is full; a fault if the realm takes no writes.
    pub async fn enqueue<V: Verb>(&self, caller: &Caller, verb: V) -> Result<Pending<V>, EngineError> {
        let command = verb.into_command();
        self.meet_neighbours(&command).await?;
        let answer = self.put(Record::new(caller.clone(), command)).await?;
        Ok(Pending { answer, verb: PhantomData })
    }

    /// Registers two realms of the same office as peers when a message goes from one to the other.
    async fn meet_neighbours(&self, command: &Command) -> Result<(), EngineError> {
        let Some(send) = command.message() else { return Ok(()) };
        for address in send.to.iter().chain(&send.cc).chain(&send.bcc) {
            if let Address::Remote { realm, .. } = address
                && *realm != self.shared.realm
                && let Some(office) = self.shared.office.as_ref().and_then(WeakOffice::upgrade)
            {
                // `introduce` submits a verb itself, so its future is boxed: a future cannot contain itself.
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

    async fn put(&self, record: Record) -> Result<PendingAnswer, EngineError> {
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
        // Until it is in the database, fast-path messages of the same sender must not overtake it.
        let (fast_path, sender) = (self.shared.hub.fast_path(), record.caller.agent.clone());
        fast_path.set_out(&sender);
        let put = self.queue.put(record, bytes, account).await;
        if put.is_err() {
            fast_path.arrived(&sender);
        }
        put
    }

    /// Waits until everything that was requested so far is in the database, including messages that the fast path
    /// delivered earlier. For callers that do not wait for answers and want to read their own writes.
    pub async fn flush(&self) {
        self.queue.flush(self.own_account()).await;
    }

    /// Counts the patterns of a subscription towards the caller's quota until the result is dropped.
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

    /// Follows the event log from a seq. While the subscriber pauses the feed, up to `buffer` events are kept for it.
    ///
    /// # Errors
    /// Refused for a seq that the event log has not reached.
    pub async fn follow(
        &self,
        caller: &Caller,
        filter: Filter,
        start: Start,
        buffer: usize,
    ) -> Result<Feed, EngineError> {
        // The head is read from the database: events are committed before they are announced.
        let asking = caller.agent.clone();
        let (head, bounded) =
            self.read(move |view| Ok((view.head()?, acl::bounds_of(view.db, &asking)?.is_some()))).await?;
        let place = match start {
            Start::Now => head,
            Start::After(place) if (0..=head).contains(&place) => place,
            Start::After(_) => return Err(Refusal::StaleCursor.into()),
        };
        Ok(Feed::new(self.clone(), caller.clone(), bounded, filter, place, buffer))
    }

    /// Streams an agent's mail: waiting messages first, then new ones.
    ///
    /// # Errors
    /// Refused for callers other than the agent, its owner and administrators.
    pub async fn attach(&self, caller: &Caller, agent: &AgentId) -> Result<MailboxStream, EngineError> {
        let (asking, name) = (caller.clone(), agent.clone());
        self.read(move |view| view.mailbox(&asking, &name).map(drop)).await?;
        Ok(MailboxStream::open(self.clone(), caller.clone(), agent.clone(), 0))
    }

    /// Whether a stream for an agent's mail is open.
    #[must_use]
    pub fn is_attached(&self, agent: &AgentId) -> bool {
        self.shared.hub.is_attached(agent)
    }

    /// The doors by which an agent is connected; empty if it is not.
    #[must_use]
    pub fn attached_by(&self, agent: &AgentId) -> Vec<String> {
        self.shared.hub.doors_of(agent)
    }

    /// Closes all mail streams of an agent: they deliver what is already queued in them and nothing more.
    pub fn close_mailboxes(&self, agent: &AgentId) {
        self.shared.hub.close_mailboxes(agent);
    }

    /// The heartbeats of the realm's agents.
    #[must_use]
    pub fn presences(&self) -> &Presences {
        &self.shared.presences
    }

    /// Version of the agent and token directory, incremented before the response to any change is sent. Caches read it
    /// before querying and treat another version as a miss. Scopes, contacts, peers and rules count as well. No two
    /// openings of realms in a process share a version.
    #[must_use]
    pub fn directory_version(&self) -> u64 {
        self.shared.hub.fast_path().directory_version()
    }

    /// Version of who holds which name: rises when a name is reused after its agent left, or goes to the token that carries
    /// it. Incremented before such a change is answered and before later events are delivered, so that a door that knows who
    /// holds a name checks again under another version.
    #[must_use]
    pub fn names_reassigned(&self) -> u64 {
        self.shared.hub.reassigned()
    }

    /// The realm's name.
    #[must_use]
    pub fn realm(&self) -> &RealmName {
        &self.shared.realm
    }

    /// The path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// The engine's own counters.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.shared.meter
    }

    /// Commands waiting for the writer.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        self.queue.depth()
    }

    /// Number of agents with an open mail stream, and of event feeds.
    #[must_use]
    pub fn listeners(&self) -> (usize, usize) {
        (self.shared.hub.attached(), self.shared.hub.subscribers())
    }

    /// Why the realm takes no writes, if it does not.
    #[must_use]
    pub fn poisoned(&self) -> Option<&str> {
        self.shared.poison.get().map(String::as_str)
    }

    /// What has been stuck for longer than `stuck_after`, if anything. Waits for neither writer nor readers.
    #[must_use]
    pub fn stuck(&self) -> Option<String> {
        self.shared.liveness.stuck(self.shared.limits.stuck_after)
    }

    /// Stops the reads in progress and all later ones: the process is about to end.
    pub fn stop_reading(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    /// Checks that the files are still those that were opened; if not, the realm becomes read-only.
    pub fn check_files(&self) {
        if let Err(reason) = self.shared.files.check() {
            let reason = self.shared.poison.get_or_init(|| reason);
            tracing::error!(realm = %self.shared.realm, reason, "the files of the realm are damaged; it is read-only");
        }
    }

    /// Checks the file for damage on this thread, for at most `within`. A damaged realm becomes read-only: writes could
    /// spread the damage, and the last good backup would get older with each of them.
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

    /// Lets the writer end once every command so far is answered. Remaining handles can still read.
    pub async fn close(&self) {
        self.queue.close();
    }

    /// Whether no handle besides the office's own is in use.
    pub(crate) fn is_idle(&self) -> bool {
        // One handle is the office's own; feeds and mailbox streams hold handles too.
        Arc::strong_count(&self.shared) == 1 && self.queue.depth() == 0
    }

    /// Reserves room in the queue for a caller's command of this size.
    pub(crate) async fn reserve(&self, caller: &Caller, bytes: usize) -> Result<QueueSlot<'_>, EngineError> {
        if !caller.rights.admin {
            self.shared.disk.check()?;
        }
        self.queue.reserve(bytes, self.account(caller)).await
    }

    fn account(&self, caller: &Caller) -> Account<'_> {
        match self.own_account() {
            Account::Uncounted if caller.agent.is_office() => Account::Server,
            account => account,
        }
    }

    fn own_account(&self) -> Account<'_> {
        self.share.as_ref().map_or(Account::Uncounted, Account::Quota)
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.shared.hub
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses commands that are too large before they reach the writer; returns the bytes that the command takes in the
/// queue.
fn check_size(command: &Command, limits: &Limits) -> Result<usize, EngineError> {
    let send = match command {
        Command::SendMessage(send) => send,
        Command::SendSigned(signed) => &signed.message,
        Command::Advance(advance) => {
            return too_large("the messages of a turn", advance.weight(), limits.message_bytes);
        }
        // The most common command of this kind; its content is text already, so it is measured without serialising it.
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
        // Entries are read again with every list of their kind and for every message to them, so their limit is
        // smaller.
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
            // All other commands have the limit of a message.
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

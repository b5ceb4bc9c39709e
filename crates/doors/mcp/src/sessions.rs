//! The session registry: whose sessions are open, what each is notified of, and when it ends.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use posthaste_wire::rpc::{ErrorObject, INVALID_PARAMS, RequestId};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::Visitor;
use super::updates::Watch;

/// Sessions at once. Further clients are served without one, which costs them only notifications.
const MAX_SESSIONS: usize = 1_024;
/// Sessions of one token; the one that was not used for longest ends when another begins.
const MAX_SESSIONS_PER_TOKEN: usize = 64;
/// The longest handshake.
pub(super) const MAX_HANDSHAKE_BYTES: usize = 16 << 10;
/// How long a session is kept that has neither requests nor a stream.
const IDLE: Duration = Duration::from_secs(3600);
/// Ids of terminated sessions that are remembered, and answered 404 from then on; the oldest is forgotten first.
const MAX_TERMINATED: usize = 8_192;
/// Resources that one session or stream is told of.
pub(super) const MAX_WATCHED: usize = 64;
/// Notifications that a session keeps for a stream that is resumed. Not fewer than `MAX_WATCHED`: a change that no stream was
/// told of yet is noted once for each resource, so that none is lost.
const MAX_KEPT_EVENTS: usize = MAX_WATCHED;

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions(Arc<Mutex<Registry>>);

#[derive(Debug, Default)]
struct Registry {
    open: HashMap<String, Arc<Session>>,
    terminated: Terminated,
}

/// Ids of sessions that their clients ended by DELETE. Kept in memory only: after a restart every id is merely unknown.
#[derive(Debug, Default)]
struct Terminated {
    ids: HashSet<Arc<str>>,
    oldest_first: VecDeque<Arc<str>>,
}

impl Terminated {
    fn add(&mut self, id: &str) {
        let id: Arc<str> = id.into();
        if !self.ids.insert(id.clone()) {
            return;
        }
        self.oldest_first.push_back(id);
        if self.oldest_first.len() > MAX_TERMINATED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

impl Sessions {
    /// Whether the client has ended the session of that id.
    pub(super) fn is_terminated(&self, id: &[u8]) -> bool {
        std::str::from_utf8(id).is_ok_and(|id| lock(&self.0).terminated.ids.contains(id))
    }

    /// Opens a session, while there is room.
    pub(super) fn open(&self, owner: String, stop: &CancellationToken) -> Option<Arc<Session>> {
        let mut registry = lock(&self.0);
        registry.end_oldest_beyond(&owner);
        if registry.open.len() >= MAX_SESSIONS {
            return None;
        }
        let session = Arc::new(Session::new(owner, stop.child_token()));
        registry.open.insert(session.id.clone(), session.clone());
        tokio::spawn(end_when_idle(Arc::downgrade(&self.0), session.clone()));
        Some(session)
    }

    /// The session of that id, if it is open and this owner's. Counts as use of it.
    pub(super) fn find(&self, id: &str, owner: &str) -> Option<Arc<Session>> {
        let session = lock(&self.0).open.get(id).filter(|session| session.owner == owner).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session for its client.
    pub(super) fn terminate(&self, session: &Session) {
        let mut registry = lock(&self.0);
        registry.end(&session.id);
        registry.terminated.add(&session.id);
    }
}

impl Registry {
    fn end(&mut self, id: &str) {
        if let Some(session) = self.open.remove(id) {
            session.ended.cancel();
        }
    }

    /// Ends the session of an owner that was not used for longest, if it has as many as it may have.
    fn end_oldest_beyond(&mut self, owner: &str) {
        let theirs = self.open.values().filter(|session| session.owner == owner);
        if theirs.clone().count() >= MAX_SESSIONS_PER_TOKEN
            && let Some(oldest) = theirs.min_by_key(|session| lock(&session.activity).used)
        {
            let id = oldest.id.clone();
            self.end(&id);
        }
    }
}

async fn end_when_idle(registry: Weak<Mutex<Registry>>, session: Arc<Session>) {
    while let Some(left) = session.time_left(Instant::now()) {
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = session.ended.cancelled() => return,
        }
    }
    if let Some(registry) = registry.upgrade() {
        lock(&registry).end(&session.id);
    }
}

/// One client's session.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    /// The token that opened it. A name would not do, since realms may have equal ones.
    owner: String,
    activity: Mutex<Activity>,
    events: Mutex<Events>,
    /// Wakes the stream when an event was added.
    added: Notify,
    /// The resources it is told of. Dropping a guard ends the subscription.
    watched: Mutex<HashMap<String, DropGuard>>,
    /// Requests under way that can be cancelled, by the JSON text of their id.
    running: Mutex<HashMap<String, CancellationToken>>,
    /// Streams that answered requests so far; part of their event ids.
    answered: AtomicU64,
    ended: CancellationToken,
}

#[derive(Debug)]
struct Activity {
    used: Instant,
    streams: usize,
}

/// Notifications by index. Those that a stream was given stay until others take their room, so that a client that lost its
/// connection can go on after the last one that it saw.
#[derive(Debug, Default)]
struct Events {
    kept: VecDeque<(u64, String)>,
    next: u64,
    /// Events below this index were given to a stream.
    given: u64,
    /// The stream that notifications go to. Others that are opened meanwhile are kept open and get none.
    reader: Option<u64>,
    readers: u64,
}

impl Session {
    fn new(owner: String, ended: CancellationToken) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the id of a session is part of no command")]
        let id = uuid::Uuid::new_v4().to_string();
        Self {
            id,
            owner,
            activity: Mutex::new(Activity { used: Instant::now(), streams: 0 }),
            events: Mutex::default(),
            added: Notify::new(),
            watched: Mutex::default(),
            running: Mutex::default(),
            answered: AtomicU64::default(),
            ended,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Cancelled when the session or the server ends.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// The number of the next stream that answers a request.
    pub(super) fn next_stream(&self) -> u64 {
        self.answered.fetch_add(1, Ordering::Relaxed)
    }

    fn touch(&self) {
        lock(&self.activity).used = Instant::now();
    }

    /// How long the session may still be unused; `None` if its time is over.
    fn time_left(&self, now: Instant) -> Option<Duration> {
        let activity = lock(&self.activity);
        match activity.streams {
            0 => IDLE.checked_sub(now.duration_since(activity.used)).filter(|left| !left.is_zero()),
            _ => Some(IDLE),
        }
    }

    /// Tells the session of every change to a resource from now on.
    pub(super) fn watch(self: &Arc<Self>, uri: String, watch: Watch) -> Result<(), ErrorObject> {
        let stop = self.ended.child_token();
        {
            let mut watched = lock(&self.watched);
            if watched.len() >= MAX_WATCHED && !watched.contains_key(&uri) {
                let text = format!("a session watches {MAX_WATCHED} resources at most");
                return Err(ErrorObject::new(INVALID_PARAMS, text));
            }
            watched.insert(uri.clone(), stop.clone().drop_guard());
        }
        let session = self.clone();
        tokio::spawn(async move {
            let mut changes = watch.changes().boxed();
            while let Some(Some(())) = stop.run_until_cancelled(changes.next()).await {
                session.add(&uri);
            }
        });
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub(super) fn forget(&self, uri: &str) {
        lock(&self.watched).remove(uri);
    }

    fn add(&self, uri: &str) {
        {
            let mut events = lock(&self.events);
            let given = events.given;
            if events.kept.iter().any(|(index, known)| *index >= given && known == uri) {
                return;
            }
            let index = events.next;
            events.next += 1;
            events.kept.push_back((index, uri.to_owned()));
            if events.kept.len() > MAX_KEPT_EVENTS {
                events.kept.pop_front();
            }
        }
        self.added.notify_waiters();
    }

    /// Reads the notifications from an index on; `None` if there were not that many yet.
    pub(super) fn read_from(self: &Arc<Self>, index: u64) -> Option<Reader> {
        let mut events = lock(&self.events);
        if index > events.next {
            return None;
        }
        let number = events.readers;
        events.readers += 1;
        let next = events.reader.is_none().then_some(index);
        events.reader = events.reader.or(Some(number));
        lock(&self.activity).streams += 1;
        Some(Reader { session: self.clone(), number, next })
    }

    /// Notes a request that the client may cancel.
    pub(super) fn begin(self: &Arc<Self>, id: &RequestId) -> Running {
        let (id, cancelled) = (id.as_json().to_owned(), CancellationToken::new());
        lock(&self.running).insert(id.clone(), cancelled.clone());
        Running { session: self.clone(), id, cancelled }
    }

    /// Cancels a request under way.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(cancelled) = lock(&self.running).remove(id) {
            cancelled.cancel();
        }
    }
}

/// A stream's place in a session's notifications.
#[derive(Debug)]
pub(super) struct Reader {
    session: Arc<Session>,
    number: u64,
    /// The index of the next event to give; `None` while another stream gets them.
    next: Option<u64>,
}

impl Reader {
    /// The next notification: its index, and the address of the resource that changed.
    pub(super) async fn next(&mut self) -> (u64, String) {
        loop {
            let session = self.session.clone();
            // Made before looking, so that an event that is added meanwhile wakes it.
            let added = session.added.notified();
            if let Some(found) = self.take() {
                return found;
            }
            added.await;
        }
    }

    fn take(&mut self) -> Option<(u64, String)> {
        let next = self.next.as_mut()?;
        let mut events = lock(&self.session.events);
        let found = events.kept.iter().find(|(index, _)| index >= next).cloned()?;
        *next = found.0 + 1;
        events.given = events.given.max(*next);
        Some(found)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut events = lock(&self.session.events);
        events.reader = events.reader.filter(|number| *number != self.number);
        let mut activity = lock(&self.session.activity);
        activity.streams -= 1;
        activity.used = Instant::now();
    }
}

/// A request under way that can be cancelled.
#[derive(Debug)]
pub(super) struct Running {
    session: Arc<Session>,
    id: String,
    cancelled: CancellationToken,
}

impl Running {
    /// What a future gives, unless the request is cancelled first.
    pub(super) async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(future).await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.session.running).remove(&self.id);
    }
}

/// The token of a request's caller; administrators of the server are counted by name.
pub(super) fn owner_of(visitor: &Visitor) -> String {
    visitor.account.clone().unwrap_or_else(|| format!("operator//{}", visitor.identity.name))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(sessions: &Sessions, owner: &str) -> Arc<Session> {
        sessions.open(owner.to_owned(), &CancellationToken::new()).unwrap()
    }

    #[test]
    fn the_oldest_of_too_many_terminated_sessions_is_forgotten() {
        let mut terminated = Terminated::default();
        for number in 0..=MAX_TERMINATED {
            terminated.add(&format!("s{number}"));
            terminated.add("s1");
        }
        assert_eq!((terminated.ids.len(), terminated.oldest_first.len()), (MAX_TERMINATED, MAX_TERMINATED));
        assert!(!terminated.ids.contains("s0"));
        assert!(terminated.ids.contains("s2") && terminated.ids.contains("s8192"));
    }

    #[tokio::test]
    async fn the_session_used_least_recently_ends_when_a_token_has_too_many() {
        let sessions = Sessions::default();
        let start = Instant::now();
        let opened: Vec<_> = (0..MAX_SESSIONS_PER_TOKEN).map(|_| session(&sessions, "ann")).collect();
        for (second, session) in (1..).zip(&opened) {
            lock(&session.activity).used = start + Duration::from_secs(second);
        }
        assert!(sessions.find(opened[0].id(), "eve").is_none());
        lock(&opened[0].activity).used = start + Duration::from_secs(3600);
        session(&sessions, "ann");
        assert!(sessions.find(opened[1].id(), "ann").is_none() && opened[1].ended.is_cancelled());
        assert!(sessions.find(opened[0].id(), "ann").is_some());
        // Other tokens have sessions of their own, up to the limit for all.
        for number in 0..MAX_SESSIONS - MAX_SESSIONS_PER_TOKEN {
            session(&sessions, &format!("token {number}"));
        }
        assert!(sessions.open("bob".to_owned(), &CancellationToken::new()).is_none());
        assert!(sessions.open("ann".to_owned(), &CancellationToken::new()).is_some());
    }

    #[tokio::test]
    async fn a_session_is_idle_without_requests_and_streams() {
        let sessions = Sessions::default();
        let session = session(&sessions, "a");
        let used = lock(&session.activity).used;
        assert_eq!(session.time_left(used + IDLE / 4), Some(IDLE - IDLE / 4));
        assert_eq!(session.time_left(used + IDLE), None);
        let stream = session.read_from(0).unwrap();
        assert_eq!(session.time_left(used + IDLE * 9), Some(IDLE));
        drop(stream);
        assert_eq!(session.time_left(used + IDLE * 9), None);
    }

    #[tokio::test]
    async fn a_stream_goes_on_after_the_last_event_seen() {
        let session = session(&Sessions::default(), "a");
        assert!(session.read_from(1).is_none());
        let mut first = session.read_from(0).unwrap();
        session.add("x");
        session.add("x");
        session.add("y");
        assert_eq!(first.next().await, (0, "x".to_owned()));
        session.add("x");
        // While the first stream is open, others get nothing.
        let mut second = session.read_from(0).unwrap();
        assert!(second.take().is_none());
        drop(first);
        let mut resumed = session.read_from(1).unwrap();
        assert_eq!(resumed.next().await, (1, "y".to_owned()));
        assert_eq!(resumed.next().await, (2, "x".to_owned()));
        assert!(resumed.take().is_none());
        drop(resumed);
        // Changes that no stream was told of are kept for every resource that can be watched.
        for round in 0..3 {
            for number in 0..MAX_WATCHED {
                session.add(&format!("{number}"));
            }
            assert_eq!(lock(&session.events).next, 3 + MAX_WATCHED as u64, "{round}");
        }
        let mut late = session.read_from(3).unwrap();
        for number in 0..MAX_WATCHED {
            assert_eq!(late.next().await.1, number.to_string());
        }
    }
}

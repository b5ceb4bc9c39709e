//! Wakes subscribers when events are committed. A few are woken at once. Waking many costs each of them a task switch and a
//! packet, so they are woken at intervals, and events of the meantime share a wake-up. The interval is short, and long
//! under load: a long one saves a fifth of the server's CPU where 100 subscribers get 3,000 events a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::nouns::Seq;

/// Fewer subscribers than these are woken at once, whatever it costs.
const MANY_SUBSCRIBERS: usize = 16;
/// The time between two wake-ups of many subscribers. Timers add up to a millisecond.
const SHORT_INTERVAL: Duration = Duration::from_millis(1);
/// The same under load.
const LONG_INTERVAL: Duration = Duration::from_millis(4);
/// More deliveries than these are load: events that one wake-up brings, times subscribers, per millisecond since the last.
const LOAD_DELIVERIES_PER_MS: u128 = 250;

#[derive(Debug)]
pub(super) struct Wakeups {
    /// The head of the event log as subscribers know it. They sleep on it.
    head: Arc<watch::Sender<Seq>>,
    /// The head as it was committed. The task that wakes many subscribers sleeps on it.
    committed: watch::Sender<Seq>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Wakeups {
    pub(super) fn new() -> Self {
        Self {
            head: Arc::new(watch::Sender::new(0)),
            committed: watch::Sender::new(0),
            task: Mutex::default(),
        }
    }

    /// The event log has grown to `head`.
    pub(super) fn wake(&self, head: Seq) {
        if self.subscribers() < MANY_SUBSCRIBERS {
            announce(&self.head, head);
        } else {
            self.committed.send_replace(head);
        }
    }

    /// What a subscriber sleeps on. Must be called on a runtime.
    pub(super) fn subscribe(&self) -> watch::Receiver<Seq> {
        let subscriber = self.head.subscribe();
        if self.subscribers() >= MANY_SUBSCRIBERS {
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            // Its runtime may have ended before the engine.
            if task.as_ref().is_none_or(JoinHandle::is_finished) {
                *task = Some(tokio::spawn(wake_many(self.head.clone(), self.committed.subscribe())));
            }
        }
        subscriber
    }

    pub(super) fn subscribers(&self) -> usize {
        self.head.receiver_count()
    }
}

/// Wakes all subscribers as soon as there is news and the last wake-up is long enough ago, until the realm is closed.
async fn wake_many(head: Arc<watch::Sender<Seq>>, mut committed: watch::Receiver<Seq>) {
    let mut last = Instant::now();
    loop {
        let (known, new) = (*head.borrow(), *committed.borrow_and_update());
        let events = u64::try_from(new - known).unwrap_or_default();
        let interval = interval_after(events, head.receiver_count(), last.elapsed());
        last = Instant::now();
        announce(&head, new);
        if committed.changed().await.is_err() {
            return;
        }
        tokio::time::sleep_until(last + interval).await;
    }
}

/// The interval after a wake-up that brings events to subscribers, this long after the last one.
fn interval_after(events: u64, subscribers: usize, since_last: Duration) -> Duration {
    let deliveries = u128::from(events) * subscribers as u128;
    let is_load = deliveries * 1_000 > LOAD_DELIVERIES_PER_MS * since_last.as_micros();
    if is_load { LONG_INTERVAL } else { SHORT_INTERVAL }
}

/// Heads never go back: many subscribers may have become few between two calls.
fn announce(head: &watch::Sender<Seq>, new: Seq) {
    head.send_if_modified(|head| {
        let is_news = new > *head;
        *head = new.max(*head);
        is_news
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_long_under_load() {
        let ms = Duration::from_millis;
        assert_eq!(interval_after(5, 100, ms(2)), SHORT_INTERVAL, "250 deliveries a millisecond");
        assert_eq!(interval_after(6, 100, ms(2)), LONG_INTERVAL);
        assert_eq!(interval_after(15, 100, ms(5)), LONG_INTERVAL, "it stays long while the load lasts");
        assert_eq!(interval_after(8, 100, ms(5)), SHORT_INTERVAL);
        assert_eq!(interval_after(1, 10_000, ms(100)), SHORT_INTERVAL);
    }

    #[test]
    fn few_subscribers_are_woken_at_once() {
        let wakeups = Wakeups::new();
        let subscriber = wakeups.subscribe();
        for head in 1..=5 {
            wakeups.wake(head);
            assert_eq!(*subscriber.borrow(), head);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn first_event_after_a_pause_wakes_many_at_once() {
        let wakeups = Wakeups::new();
        let mut many: Vec<_> = (0..200).map(|_| wakeups.subscribe()).collect();
        tokio::time::sleep(LONG_INTERVAL * 2).await;
        let started = Instant::now();
        wakeups.wake(1);
        for subscriber in &mut many {
            subscriber.wait_for(|head| *head == 1).await.unwrap();
        }
        assert!(started.elapsed() < SHORT_INTERVAL, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn events_in_quick_succession_share_wakeups() {
        let wakeups = Wakeups::new();
        let mut many: Vec<_> = (0..200).map(|_| wakeups.subscribe()).collect();
        let mut subscriber = many.pop().unwrap();
        let counting = tokio::spawn(async move {
            let mut wakeups = 0;
            while *subscriber.borrow_and_update() < 100 {
                subscriber.changed().await.unwrap();
                wakeups += 1;
            }
            wakeups
        });
        // The paused clock moves in milliseconds.
        for head in 1..=100 {
            wakeups.wake(head);
            if head % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let woken = counting.await.unwrap();
        assert!((2..=20).contains(&woken), "{woken} wake-ups for 100 events in 10 ms");
        assert!(many.iter().all(|subscriber| *subscriber.borrow() == 100));
    }

    #[tokio::test(start_paused = true)]
    async fn events_before_the_task_runs_are_announced() {
        let wakeups = Wakeups::new();
        let many: Vec<_> = (0..MANY_SUBSCRIBERS).map(|_| wakeups.head.subscribe()).collect();
        wakeups.wake(7);
        assert_eq!(*many[0].borrow(), 0);
        let mut late = wakeups.subscribe();
        late.changed().await.unwrap();
        assert_eq!(*late.borrow(), 7);
        // Few are left, and the task knows an older head.
        drop((many, late));
        wakeups.wake(9);
        tokio::time::sleep(LONG_INTERVAL * 2).await;
        assert_eq!(*wakeups.head.borrow(), 9);
    }

    #[test]
    fn another_runtime_takes_over() {
        let wakeups = Wakeups::new();
        let mut many = Vec::new();
        for head in 1..=2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                many.extend((0..=MANY_SUBSCRIBERS).map(|_| wakeups.subscribe()));
                wakeups.wake(head);
                let subscriber = many.last_mut().unwrap();
                subscriber.wait_for(|known| *known >= head).await.unwrap();
            });
        }
    }
}

//! Calls out news to those who follow the history. A few hear of it at once. Where many follow, each round costs all of
//! them a turn and a packet, so once a round is through the next is put off for about twice as long as it took, and what
//! came meanwhile goes round together: however slow the machine, most of its time is left to those who bring news.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::nouns::Seq;

/// So many followers are a crowd.
const CROWD: usize = 16;
/// How long the next round is put off for each who follows, at least and up to [`USUAL`]: a round may seem shorter than it
/// is where several threads go round.
const PER_FOLLOWER: Duration = Duration::from_micros(40);
/// How long it is put off where a round takes no longer than it should.
const USUAL: Duration = Duration::from_millis(4);
/// No round is put off longer.
const LONGEST: Duration = Duration::from_millis(8);

#[derive(Debug)]
pub(super) struct Wakeups {
    /// The last place that was called out. Followers sleep on it.
    head: Arc<watch::Sender<Seq>>,
    /// The last place that is to be called out to a crowd. Who goes round sleeps on it.
    news: watch::Sender<Seq>,
    rounds: Mutex<Option<JoinHandle<()>>>,
}

impl Wakeups {
    pub(super) fn new() -> Self {
        Self { head: Arc::new(watch::Sender::new(0)), news: watch::Sender::new(0), rounds: Mutex::default() }
    }

    /// Says that the history has come to a place.
    pub(super) fn call(&self, last: Seq) {
        if self.followers() < CROWD {
            announce(&self.head, last);
        } else {
            self.news.send_replace(last);
        }
    }

    /// Where a follower hears how far the history is. Followers live on a runtime, and so does who goes round.
    pub(super) fn listen(&self) -> watch::Receiver<Seq> {
        let listener = self.head.subscribe();
        if self.followers() >= CROWD {
            let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
            // Its runtime may have ended, and the office serves another.
            if rounds.as_ref().is_none_or(JoinHandle::is_finished) {
                *rounds = Some(tokio::spawn(go_round(self.head.clone(), self.news.subscribe())));
            }
        }
        listener
    }

    pub(super) fn followers(&self) -> usize {
        self.head.receiver_count()
    }
}

/// Calls out what there is, and rests, until nobody brings news any more.
async fn go_round(head: Arc<watch::Sender<Seq>>, mut news: watch::Receiver<Seq>) {
    loop {
        let last = *news.borrow_and_update();
        let began = Instant::now();
        announce(&head, last);
        // Behind those who were just woken.
        tokio::task::yield_now().await;
        tokio::time::sleep(rest_after(began.elapsed(), head.receiver_count())).await;
        if news.changed().await.is_err() {
            return;
        }
    }
}

/// How long to rest after a round that took so long.
fn rest_after(round: Duration, crowd: usize) -> Duration {
    let crowd = u32::try_from(crowd).unwrap_or(u32::MAX);
    (round * 2).max(PER_FOLLOWER.saturating_mul(crowd).min(USUAL)).min(LONGEST)
}

/// What is called out never goes back: a crowd may have become a few between two calls.
fn announce(head: &watch::Sender<Seq>, last: Seq) {
    head.send_if_modified(|head| {
        let is_news = last > *head;
        *head = last.max(*head);
        is_news
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_hear_at_once() {
        let wakeups = Wakeups::new();
        let listener = wakeups.listen();
        for last in 1..=5 {
            wakeups.call(last);
            assert_eq!(*listener.borrow(), last);
        }
    }

    #[tokio::test]
    async fn a_crowd_hears_everything_in_fewer_rounds() {
        let wakeups = Wakeups::new();
        let mut crowd: Vec<_> = (0..200).map(|_| wakeups.listen()).collect();
        let mut listener = crowd.pop().unwrap();
        let hearing = tokio::spawn(async move {
            let mut rounds = 0;
            while *listener.borrow_and_update() < 100 {
                listener.changed().await.unwrap();
                rounds += 1;
            }
            rounds
        });
        for last in 1..=100 {
            wakeups.call(last);
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        let rounds = hearing.await.unwrap();
        assert!((2..=50).contains(&rounds), "{rounds} rounds");
        assert!(crowd.iter().all(|listener| *listener.borrow() == 100));
    }

    #[test]
    fn long_rounds_are_followed_by_long_rests() {
        let rest = |micros, crowd| rest_after(Duration::from_micros(micros), crowd).as_micros();
        assert_eq!(rest(0, 16), 640);
        assert_eq!((rest(0, 1_000), rest(1_900, 100)), (4_000, 4_000), "as usual");
        assert_eq!((rest(2_500, 100), rest(90_000, 100)), (5_000, 8_000), "twice as long, within reason");
    }

    #[tokio::test]
    async fn what_was_brought_before_anyone_went_round_is_called_out() {
        let wakeups = Wakeups::new();
        let crowd: Vec<_> = (0..CROWD).map(|_| wakeups.head.subscribe()).collect();
        wakeups.call(7);
        assert_eq!(*crowd[0].borrow(), 0);
        let mut late = wakeups.listen();
        late.changed().await.unwrap();
        assert_eq!(*late.borrow(), 7);
        // Those who are left are a few, and who went round before has older news.
        drop((crowd, late));
        wakeups.call(9);
        tokio::time::sleep(LONGEST * 2).await;
        assert_eq!(*wakeups.head.borrow(), 9);
    }

    #[test]
    fn another_runtime_goes_on() {
        let wakeups = Wakeups::new();
        let mut crowd = Vec::new();
        for last in 1..=2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                crowd.extend((0..=CROWD).map(|_| wakeups.listen()));
                wakeups.call(last);
                let listener = crowd.last_mut().unwrap();
                while *listener.borrow_and_update() < last {
                    listener.changed().await.unwrap();
                }
            });
        }
    }
}

//! Group commit: one sync serves many commands, and a command that fails does not affect the rest of its batch.

use std::sync::atomic::Ordering;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Address, Caller, ContactPolicy, MessageId, TurnId};
use posthaste_engine::stamp::Stamp;
use posthaste_engine::testing::submit_record;
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::agents::{Existing, Register};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::{SendMessage, SendReceipt};
use posthaste_engine::verbs::turns::Say;
use posthaste_engine::{EngineError, Fault, Filter, RECORD_VERSION, Record, Refusal};
use tokio::task::JoinHandle;

use crate::harness::{conversation, id, member, named, say};
use crate::pausable::PausableRealm;

type Answer<V> = JoinHandle<Result<<V as Verb>::Outcome, EngineError>>;

impl PausableRealm {
    /// Queues a command behind the waiting ones.
    async fn queue<V>(&self, caller: &Caller, verb: V) -> Answer<V>
    where
        V: Verb + std::marker::Send + 'static,
        V::Outcome: std::marker::Send + 'static,
    {
        let (engine, caller, waiting) = (self.engine.clone(), caller.clone(), self.engine.queue_depth());
        let answer = tokio::spawn(async move { engine.submit(&caller, verb).await });
        self.queued(waiting + 1).await;
        answer
    }

    fn batches(&self) -> u64 {
        self.engine.meter().batches.count()
    }

    /// The kinds of all events; asserts that the event log has no gap.
    async fn event_kinds(&self) -> Vec<&'static str> {
        let (caller, all) = (Caller::office(), Filter::everything());
        let replay =
            self.engine.read(move |view| view.events(&caller, 0, &all, 1_000)).await.expect("events");
        let seqs: Vec<i64> = replay.events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as i64).collect::<Vec<_>>(), "no gap");
        replay.events.iter().map(|event| event.fact.kind()).collect()
    }
}

fn message(subject: &str) -> SendMessage {
    SendMessage {
        subject: Some(subject.to_owned()),
        ..SendMessage::text(vec![Address::Agent(id("ann"))], "text")
    }
}

fn ok(sent: Result<SendReceipt, EngineError>) -> i64 {
    sent.expect("a receipt").message.seq
}

#[tokio::test]
async fn waiting_commands_share_one_transaction() {
    let mut realm = PausableRealm::new(Limits::default());
    let held = realm.hold().await;
    let mut answers = Vec::new();
    for n in 0..100 {
        let name = format!("agent-{n}");
        answers.push(realm.queue(&member(&name), named(&name)).await);
    }
    let before = realm.batches();
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for answer in answers {
        answer.await.unwrap().expect("a free name");
    }
    let batches = realm.batches() - before;
    assert!((2..=3).contains(&batches), "one for the held command, one or two for the hundred: {batches}");
    assert_eq!(realm.engine.meter().batches.sum(), 101);
}

#[tokio::test]
async fn commands_arriving_during_a_batch_join_it() {
    let mut realm = PausableRealm::gathering(Limits {
        batch_commands: 50,
        // The test holds the batch for longer than a batch is open otherwise.
        batch_open: std::time::Duration::from_secs(600),
        ..Limits::default()
    });
    let held = realm.hold().await;
    let mut answers = Vec::new();
    for n in 0..100 {
        let name = format!("agent-{n}");
        answers.push(realm.queue(&member(&name), named(&name)).await);
    }
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for answer in answers {
        answer.await.unwrap().expect("a free name");
    }
    assert_eq!(realm.batches(), 3, "49 with the held command, then 50, then the last");
    assert_eq!(realm.event_kinds().await.len(), 101);
}

#[tokio::test]
async fn batch_size_is_limited() {
    let mut realm = PausableRealm::new(Limits { batch_commands: 10, ..Limits::default() });
    let held = realm.hold().await;
    let mut answers = Vec::new();
    for n in 0..100 {
        let name = format!("agent-{n}");
        answers.push(realm.queue(&member(&name), named(&name)).await);
    }
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for answer in answers {
        answer.await.unwrap().expect("a free name");
    }
    assert_eq!(realm.batches(), 11);
}

#[tokio::test]
async fn refusal_waits_for_the_commit_it_depends_on() {
    let mut realm = PausableRealm::new(Limits::default());
    let held = realm.hold().await;
    let first = realm.queue(&member("ann"), named("ann")).await;
    let engine = realm.engine.clone();
    let second = tokio::spawn(async move {
        let refused = engine.submit(&member("eve"), named("ann")).await;
        // The row that caused the refusal must be visible by now.
        let seen = engine.read_blocking(|view| view.agent(&member("eve"), &id("ann")));
        (refused, seen.is_ok())
    });
    realm.queued(2).await;
    let tail = realm.queue_hold();
    realm.queued(3).await;
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    // Both are applied now and the writer is paused before the end of their batch.
    realm.stopped().await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!first.is_finished() && !second.is_finished(), "no answer is sent before the commit");
    realm.go_on();
    tail.await.unwrap().expect("an announcement");
    first.await.unwrap().expect("a free name");
    let (refused, seen) = second.await.unwrap();
    let taken = Refusal::AgentExists { agent: id("ann") };
    assert_eq!(refused.expect_err("a taken name").refusal(), Some(&taken));
    assert!(seen, "the refusal was sent before the row it depends on was committed");
}

#[tokio::test]
async fn failed_command_does_not_affect_the_rest_of_its_batch() {
    // A constraint violation and an SQL error; neither means that the file is damaged.
    for broken in ["SELECT RAISE(ABORT, 'tripped')", "SELECT json('{')"] {
        let trap = format!(
            "CREATE TRIGGER trap AFTER INSERT ON deliveries
             WHEN (SELECT subject FROM messages WHERE seq = NEW.message) = 'trip' BEGIN {broken}; END"
        );
        let mut realm = PausableRealm::with(Limits::default(), &trap);
        let ann = member("ann");
        realm.engine.submit(&ann, named("ann")).await.expect("a free name");
        let held = realm.hold().await;
        let before = realm.queue(&ann, message("before")).await;
        let trip = realm.queue(&ann, message("trip")).await;
        let between = realm.queue(&ann, message("between")).await;
        let again = realm.queue(&ann, message("trip")).await;
        let after = realm.queue(&ann, message("after")).await;
        let batches = realm.batches();
        realm.go_on();
        held.await.unwrap().expect("an announcement");
        for failing in [trip, again] {
            let failed = failing.await.unwrap().expect_err("a trap");
            assert!(matches!(failed, EngineError::Failed(Fault::Internal { .. })), "{broken}: {failed:?}");
        }
        let seqs = [ok(before.await.unwrap()), ok(between.await.unwrap()), ok(after.await.unwrap())];
        assert_eq!(seqs, [3, 4, 5], "failed commands use no seq");
        assert_eq!(realm.batches() - batches, 2, "still one transaction");
        assert_eq!(realm.engine.poisoned(), None);
        let sent = vec!["message.sent"; 3];
        assert_eq!(realm.event_kinds().await, [vec!["agent.registered", "announced"], sent].concat());
    }
}

#[tokio::test]
async fn buffered_writes_are_visible_to_later_commands_of_the_batch() {
    let mut realm = PausableRealm::new(Limits::default());
    let (ann, bob) = (member("ann"), member("bob"));
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    realm.engine.submit(&bob, named("bob")).await.expect("a free name");
    realm.engine.submit(&ann, conversation("c", &[])).await.expect("a conversation");
    let say = |in_reply_to| Say { in_reply_to, ..say("c", "so?") };
    let held = realm.hold().await;
    // What a command creates has the id of its stamp.
    let stamps = [Stamp::new(), Stamp::new()];
    let [sent, said] = stamps.map(|stamp| stamp.id);
    let commands = [message("first").into_command(), say(None).into_command()];
    let mut first = Vec::new();
    for (stamp, command) in stamps.into_iter().zip(commands) {
        let record = Record { v: RECORD_VERSION, stamp, caller: ann.clone(), command };
        let (engine, waiting) = (realm.engine.clone(), realm.engine.queue_depth());
        first.push(tokio::spawn(async move { submit_record(&engine, record).await }));
        realm.queued(waiting + 1).await;
    }
    let answer = SendMessage { in_reply_to: Some(MessageId(sent)), ..message("second") };
    let answer = realm.queue(&ann, answer).await;
    let back = realm.queue(&ann, say(Some(TurnId(said)))).await;
    let third = realm.queue(&ann, message("third")).await;
    let read = MarkRead { agent: id("ann"), message: MessageId(sent), unread: false };
    let read = realm.queue(&ann, read).await;
    let batches = realm.batches();
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for first in first {
        first.await.unwrap().expect("a message and a turn");
    }
    answer.await.unwrap().expect("a reply to a message of the same batch");
    back.await.unwrap().expect("a reply to a turn of the same batch");
    third.await.unwrap().expect("a receipt");
    read.await.unwrap().expect("a message of the same batch is marked read");
    assert_eq!(realm.batches() - batches, 2, "one for the held command, one for all others");
}

#[tokio::test]
async fn reply_check_sees_the_batch_and_applies_each_command_once() {
    let mut realm = PausableRealm::new(Limits::default());
    let (ann, bob) = (member("ann"), member("bob"));
    realm.engine.submit(&bob, named("bob")).await.expect("a free name");
    let asks = Register { contact_policy: Some(ContactPolicy::Contacts), ..named("ann") };
    realm.engine.submit(&ann, asks).await.expect("a free name");
    let to = |names: &[&str]| {
        SendMessage::text(names.iter().map(|name| Address::Agent(id(name))).collect(), "text")
    };
    let held = realm.hold().await;
    let question = realm.queue(&ann, to(&["bob"])).await;
    let answer = realm.queue(&bob, to(&["ann"])).await;
    let waits = realm.queue(&bob, to(&["bob"])).await;
    // Refused only after checking whether bob may reply to ann, for which the earlier message had to be written.
    let refused = realm.queue(&bob, to(&["ann", "missing"])).await;
    let applied = realm.applied.load(Ordering::Relaxed);
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    question.await.unwrap().expect("bob accepts messages from any sender");
    answer.await.unwrap().expect("a sender accepts replies");
    waits.await.unwrap().expect("a message to itself");
    let refused = refused.await.unwrap().expect_err("no agent has that name");
    assert!(matches!(refused.refusal(), Some(Refusal::NoSuchAgent { .. })), "{refused:?}");
    assert_eq!(realm.applied.load(Ordering::Relaxed) - applied, 4, "each is applied once");
}

#[tokio::test]
async fn record_submitted_twice_is_applied_once() {
    let realm = PausableRealm::new(Limits::default());
    let ann = member("ann");
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    let stamp = Stamp::new();
    let record = Record { v: RECORD_VERSION, stamp, caller: ann, command: message("once").into_command() };
    submit_record(&realm.engine, record.clone()).await.expect("a receipt");
    let again = submit_record(&realm.engine, record).await;
    assert!(matches!(again, Err(EngineError::Failed(Fault::Internal { .. }))), "{again:?}");
    assert_eq!(realm.event_kinds().await, ["agent.registered", "message.sent"]);
}

#[tokio::test]
async fn late_refusal_leaves_no_trace() {
    let mut realm = PausableRealm::new(Limits::default());
    let ann = member("ann");
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let before = realm.queue(&ann, message("before")).await;
    // The new name is written before the bad state is detected.
    let late = Register {
        name: Some("Anna".to_owned()),
        state: Some(String::new()),
        existing: Existing::TakeOver,
        ..named("ann")
    };
    let late = realm.queue(&ann, late).await;
    let after = realm.queue(&ann, message("after")).await;
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    let refused = late.await.unwrap().expect_err("a bad state");
    assert!(matches!(refused.refusal(), Some(Refusal::BadValue { field: "state", .. })), "{refused:?}");
    assert_eq!([ok(before.await.unwrap()), ok(after.await.unwrap())], [3, 4]);
    let found = realm.engine.read(|view| view.agent(&member("ann"), &id("ann"))).await.expect("an agent");
    assert_eq!((found.name, found.created_at), (None, found.updated_at));
    assert_eq!(realm.event_kinds().await, ["agent.registered", "announced", "message.sent", "message.sent"]);
}

#[tokio::test]
async fn batch_of_late_refusals_is_applied_at_most_twice() {
    let mut realm = PausableRealm::new(Limits::default());
    let ann = member("ann");
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let mut late = Vec::new();
    for n in 0..200 {
        let name = Some(format!("Anna {n}"));
        let verb =
            Register { name, state: Some(String::new()), existing: Existing::TakeOver, ..named("ann") };
        late.push(realm.queue(&ann, verb).await);
    }
    let before = realm.applied.load(Ordering::Relaxed);
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for refused in late {
        refused.await.unwrap().expect_err("a bad state");
    }
    let applied = realm.applied.load(Ordering::Relaxed) - before;
    assert!(applied <= 2 * 200, "200 commands were applied {applied} times");
}

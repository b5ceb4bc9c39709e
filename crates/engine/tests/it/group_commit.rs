//! One sync serves many commands; what cannot be carried out does not stand in the way of the rest.

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
use crate::watched::Watched;

type Answer<V> = JoinHandle<Result<<V as Verb>::Outcome, EngineError>>;

impl Watched {
    /// Queues a command behind those already there.
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

    /// Every place of the history, which must have no gap.
    async fn history(&self) -> Vec<&'static str> {
        let (everyone, all) = (Caller::office(), Filter::everything());
        let replay =
            self.engine.read(move |view| view.events(&everyone, 0, &all, 1_000)).await.expect("events");
        let places: Vec<i64> = replay.events.iter().map(|event| event.seq).collect();
        assert_eq!(places, (1..=places.len() as i64).collect::<Vec<_>>(), "no gap");
        replay.events.iter().map(|event| event.fact.kind()).collect()
    }
}

fn letter(subject: &str) -> SendMessage {
    SendMessage {
        subject: Some(subject.to_owned()),
        ..SendMessage::text(vec![Address::Agent(id("ann"))], "text")
    }
}

fn ok(sent: Result<SendReceipt, EngineError>) -> i64 {
    sent.expect("a letter").message.seq
}

#[tokio::test]
async fn commands_that_wait_together_share_one_transaction() {
    let mut realm = Watched::new(Limits::default());
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
    assert!((2..=3).contains(&batches), "the one that was held, and one or two for the hundred: {batches}");
    assert_eq!(realm.engine.meter().batches.sum(), 101);
}

#[tokio::test]
async fn what_comes_while_a_batch_is_applied_goes_with_it() {
    let mut realm = Watched::gathering(Limits { batch_commands: 50, ..Limits::default() });
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
    assert_eq!(realm.batches(), 3, "forty-nine with the one that was held, fifty, and the last");
    assert_eq!(realm.history().await.len(), 101);
}

#[tokio::test]
async fn a_batch_is_not_larger_than_its_limit() {
    let mut realm = Watched::new(Limits { batch_commands: 10, ..Limits::default() });
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
async fn a_refusal_that_rests_on_a_row_leaves_only_when_that_row_is_committed() {
    let mut realm = Watched::new(Limits::default());
    let held = realm.hold().await;
    let first = realm.queue(&member("ann"), named("ann")).await;
    let engine = realm.engine.clone();
    let second = tokio::spawn(async move {
        let refused = engine.submit(&member("eve"), named("ann")).await;
        // What the refusal rests on must be there for all to see by now.
        let seen = engine.read_blocking(|view| view.agent(&member("eve"), &id("ann")));
        (refused, seen.is_ok())
    });
    realm.queued(2).await;
    let tail = realm.queue_hold();
    realm.queued(3).await;
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    // Now both are applied and the writer stands before the end of their batch.
    realm.stopped().await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!first.is_finished() && !second.is_finished(), "nothing leaves before the commit");
    realm.go_on();
    tail.await.unwrap().expect("an announcement");
    first.await.unwrap().expect("a free name");
    let (refused, seen) = second.await.unwrap();
    let taken = Refusal::AgentExists { agent: id("ann") };
    assert_eq!(refused.expect_err("a taken name").refusal(), Some(&taken));
    assert!(seen, "the refusal left before the row it rests on");
}

#[tokio::test]
async fn a_command_that_fails_inside_is_left_out_and_the_rest_of_its_batch_goes_on() {
    // The first breaks a constraint, the second is an error in a statement; neither says that the file is bad.
    for broken in ["SELECT RAISE(ABORT, 'tripped')", "SELECT json('{')"] {
        let trap = format!(
            "CREATE TRIGGER trap AFTER INSERT ON deliveries
             WHEN (SELECT subject FROM messages WHERE seq = NEW.message) = 'trip' BEGIN {broken}; END"
        );
        let mut realm = Watched::with(Limits::default(), &trap);
        let ann = member("ann");
        realm.engine.submit(&ann, named("ann")).await.expect("a free name");
        let held = realm.hold().await;
        let before = realm.queue(&ann, letter("before")).await;
        let trip = realm.queue(&ann, letter("trip")).await;
        let between = realm.queue(&ann, letter("between")).await;
        let again = realm.queue(&ann, letter("trip")).await;
        let after = realm.queue(&ann, letter("after")).await;
        let batches = realm.batches();
        realm.go_on();
        held.await.unwrap().expect("an announcement");
        for failing in [trip, again] {
            let failed = failing.await.unwrap().expect_err("a trap");
            assert!(matches!(failed, EngineError::Failed(Fault::Internal { .. })), "{broken}: {failed:?}");
        }
        let places = [ok(before.await.unwrap()), ok(between.await.unwrap()), ok(after.await.unwrap())];
        assert_eq!(places, [3, 4, 5], "those left out take no place in the history");
        assert_eq!(realm.batches() - batches, 2, "still one transaction");
        assert_eq!(realm.engine.poisoned(), None);
        let sent = vec!["message.sent"; 3];
        assert_eq!(realm.history().await, [vec!["agent.registered", "announced"], sent].concat());
    }
}

#[tokio::test]
async fn what_waits_to_be_written_is_there_for_whoever_looks_at_it() {
    let mut realm = Watched::new(Limits::default());
    let (ann, bob) = (member("ann"), member("bob"));
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    realm.engine.submit(&bob, named("bob")).await.expect("a free name");
    realm.engine.submit(&ann, conversation("c", &[])).await.expect("a conversation");
    let say = |in_reply_to| Say { in_reply_to, ..say("c", "so?") };
    let held = realm.hold().await;
    // A command names what it makes by its own id.
    let stamps = [Stamp::new(), Stamp::new()];
    let [sent, said] = stamps.map(|stamp| stamp.id);
    let commands = [letter("first").into_command(), say(None).into_command()];
    let mut first = Vec::new();
    for (stamp, command) in stamps.into_iter().zip(commands) {
        let record = Record { v: RECORD_VERSION, stamp, caller: ann.clone(), command };
        let (engine, waiting) = (realm.engine.clone(), realm.engine.queue_depth());
        first.push(tokio::spawn(async move { submit_record(&engine, record).await }));
        realm.queued(waiting + 1).await;
    }
    let answer = SendMessage { in_reply_to: Some(MessageId(sent)), ..letter("second") };
    let answer = realm.queue(&ann, answer).await;
    let back = realm.queue(&ann, say(Some(TurnId(said)))).await;
    let third = realm.queue(&ann, letter("third")).await;
    let read = MarkRead { agent: id("ann"), message: MessageId(sent), unread: false };
    let read = realm.queue(&ann, read).await;
    let batches = realm.batches();
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for first in first {
        first.await.unwrap().expect("a letter and a turn");
    }
    answer.await.unwrap().expect("an answer to a letter of the same batch");
    back.await.unwrap().expect("an answer to a turn of the same batch");
    third.await.unwrap().expect("a letter");
    read.await.unwrap().expect("a letter of the same batch is read");
    assert_eq!(realm.batches() - batches, 2, "the one that was held, and one for all of them");
}

#[tokio::test]
async fn whether_somebody_may_answer_is_known_within_a_batch_and_costs_it_nothing() {
    let mut realm = Watched::new(Limits::default());
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
    // Refused after it was looked up whether bob may answer ann, for which the letter before had to be written.
    let refused = realm.queue(&bob, to(&["ann", "nobody"])).await;
    let applied = realm.applied.load(Ordering::Relaxed);
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    question.await.unwrap().expect("bob takes letters from anybody");
    answer.await.unwrap().expect("who writes takes answers");
    waits.await.unwrap().expect("a letter to oneself");
    let refused = refused.await.unwrap().expect_err("nobody is called that");
    assert!(matches!(refused.refusal(), Some(Refusal::NoSuchAgent { .. })), "{refused:?}");
    assert_eq!(realm.applied.load(Ordering::Relaxed) - applied, 4, "each is applied once");
}

#[tokio::test]
async fn a_command_that_comes_twice_from_the_log_is_carried_out_once() {
    let realm = Watched::new(Limits::default());
    let ann = member("ann");
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    let stamp = Stamp::new();
    let record = Record { v: RECORD_VERSION, stamp, caller: ann, command: letter("once").into_command() };
    submit_record(&realm.engine, record.clone()).await.expect("a letter");
    let again = submit_record(&realm.engine, record).await;
    assert!(matches!(again, Err(EngineError::Failed(Fault::Internal { .. }))), "{again:?}");
    assert_eq!(realm.history().await, ["agent.registered", "message.sent"]);
}

#[tokio::test]
async fn a_late_refusal_leaves_no_trace() {
    let mut realm = Watched::new(Limits::default());
    let ann = member("ann");
    realm.engine.submit(&ann, named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let before = realm.queue(&ann, letter("before")).await;
    // The new name is written before the bad state is found out.
    let late = Register {
        name: Some("Anna".to_owned()),
        state: Some(String::new()),
        existing: Existing::TakeOver,
        ..named("ann")
    };
    let late = realm.queue(&ann, late).await;
    let after = realm.queue(&ann, letter("after")).await;
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    let refused = late.await.unwrap().expect_err("a bad state");
    assert!(matches!(refused.refusal(), Some(Refusal::BadValue { field: "state", .. })), "{refused:?}");
    assert_eq!([ok(before.await.unwrap()), ok(after.await.unwrap())], [3, 4]);
    let found = realm.engine.read(|view| view.agent(&member("ann"), &id("ann"))).await.expect("an agent");
    assert_eq!((found.name, found.created_at), (None, found.updated_at));
    assert_eq!(realm.history().await, ["agent.registered", "announced", "message.sent", "message.sent"]);
}

#[tokio::test]
async fn a_batch_full_of_late_refusals_is_tried_twice_and_not_once_for_each() {
    let mut realm = Watched::new(Limits::default());
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

//! Waiting for mail: what was kept first, then what comes, each letter once and in order.

use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, DeliveryState, Seq};
use posthaste_engine::verbs::agents::{Register, Unregister, Update};
use posthaste_engine::views::TurnQuery;
use posthaste_engine::{Dispatch, Engine, EngineError, MailboxStream, Refusal};

use crate::chance::Chance;
use crate::harness::{Realm, id, letter, member, say, talk};

/// What has not come by then will never come.
const DEADLINE: Duration = Duration::from_secs(20);

async fn attach(engine: &Engine, caller: &Caller, agent: &str) -> MailboxStream {
    engine.attach(caller, &id(agent)).await.expect("a mailslot")
}

async fn texts(slot: &mut MailboxStream, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..count {
        let letter = tokio::time::timeout(DEADLINE, slot.next()).await.expect("a letter in time");
        found.push(letter.expect("a letter").message.body.as_str().to_owned());
    }
    found
}

async fn assert_silent(slot: &mut MailboxStream) {
    let more = tokio::time::timeout(Duration::from_millis(20), slot.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn what_was_kept_comes_first_and_then_what_is_sent() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    for text in ["1", "2", "3"] {
        realm.send(&ann, "bob", text).await;
    }
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    realm.send(&ann, "bob", "4").await;
    assert_eq!(texts(&mut slot, 4).await, ["1", "2", "3", "4"]);
    realm.send(&ann, "ann", "not for bob").await;
    realm.send(&ann, "bob", "5").await;
    assert_eq!(texts(&mut slot, 1).await, ["5"]);
    assert_silent(&mut slot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_letter_comes_once_and_in_order_however_small_the_slot_and_however_often_asking_is_given_up() {
    for (mailbox_messages, page) in [(1, 1_000), (3, 7), (256, 1_000)] {
        let realm = Realm::with(Limits { mailbox_messages, page, ..Limits::default() });
        let bob = realm.agent("bob").await;
        const SENDERS: usize = 4;
        const EACH: usize = 50;
        let mut senders = Vec::new();
        for n in 0..SENDERS {
            let caller = realm.agent(&format!("sender-{n}")).await;
            // Some are kept from before.
            for _ in 0..EACH / 2 {
                realm.send(&caller, "bob", "early").await;
            }
            senders.push(caller);
        }
        let mut slot = attach(&realm.engine, &bob, "bob").await;
        let writing: Vec<_> = senders
            .into_iter()
            .map(|caller| {
                let engine = realm.engine.clone();
                tokio::spawn(async move {
                    let to = vec![posthaste_engine::nouns::Address::Agent(id("bob"))];
                    let letter = posthaste_engine::verbs::mail::SendMessage::text(to, "late");
                    let mut sent = Vec::new();
                    for _ in 0..EACH / 2 {
                        sent.push(
                            engine.submit(&caller, letter.clone()).await.expect("a letter").message.seq,
                        );
                    }
                    sent
                })
            })
            .collect();
        let mut chance = Chance::new(mailbox_messages as u64);
        let (mut got, started) = (Vec::<Seq>::new(), std::time::Instant::now());
        while got.len() < SENDERS * EACH {
            let patience = Duration::from_micros(chance.below(1_000) as u64);
            if let Ok(letter) = tokio::time::timeout(patience, slot.next()).await {
                got.push(letter.expect("a letter").message.seq);
            }
            assert!(started.elapsed() < DEADLINE, "only {} letters came", got.len());
        }
        assert!(got.is_sorted_by(|a, b| a < b), "each once, in order: {got:?}");
        for task in writing {
            for seq in task.await.expect("letters") {
                assert!(got.binary_search(&seq).is_ok(), "{seq} never came");
            }
        }
        assert_silent(&mut slot).await;
    }
}

#[tokio::test]
async fn a_backlog_longer_than_a_page_comes_whole() {
    let realm = Realm::with(Limits { page: 5, ..Limits::default() });
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    let all: Vec<String> = (0..23).map(|n| n.to_string()).collect();
    for text in &all {
        realm.send(&ann, "bob", text).await;
    }
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    assert_eq!(texts(&mut slot, 23).await, all);
}

#[tokio::test]
async fn receipts_say_delivered_only_while_somebody_has_the_letter_in_hand() {
    let realm = Realm::with(Limits { mailbox_messages: 2, ..Limits::default() });
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    let state = async |text: &str| realm.send(&ann, "bob", text).await.receipts[0].state;
    assert!(!realm.engine.is_attached(&id("bob")));
    assert_eq!(state("nobody waits").await, DeliveryState::Queued);
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    assert!(realm.engine.is_attached(&id("bob")));
    assert_eq!(realm.engine.listeners().0, 1);
    assert_eq!(state("it has not looked yet").await, DeliveryState::Queued);
    assert_eq!(texts(&mut slot, 2).await.len(), 2);
    assert_silent(&mut slot).await;
    assert_eq!(state("one").await, DeliveryState::Delivered);
    assert_eq!(state("two").await, DeliveryState::Delivered);
    assert_eq!(state("no room").await, DeliveryState::Queued);
    assert_eq!(texts(&mut slot, 3).await, ["one", "two", "no room"]);
    assert_silent(&mut slot).await;
    assert_eq!(state("room again").await, DeliveryState::Delivered);
    drop(slot);
    assert!(!realm.engine.is_attached(&id("bob")));
    assert_eq!(realm.engine.listeners().0, 0);
    assert_eq!(state("gone").await, DeliveryState::Queued);
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    assert_eq!(texts(&mut slot, 7).await.len(), 7, "nothing was marked, so everything is still kept");
}

/// Before, 256 messages of any size waited in memory for each connected agent: 20 agents that did not read held 3 GB.
#[tokio::test]
async fn what_waits_in_memory_for_connected_agents_is_bounded_in_bytes() {
    let realm =
        Realm::with(Limits { mailbox_bytes: 10_000, all_mailboxes_bytes: 18_000, ..Limits::default() });
    let ann = realm.agent("ann").await;
    let (bob, cyd) = (realm.agent("bob").await, realm.agent("cyd").await);
    let state =
        async |to: &str, bytes: usize| realm.send(&ann, to, &"x".repeat(bytes)).await.receipts[0].state;
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    assert_silent(&mut slot).await;
    let mut other = attach(&realm.engine, &cyd, "cyd").await;
    assert_silent(&mut other).await;
    assert_eq!(state("bob", 12_000).await, DeliveryState::Delivered, "one alone may be larger");
    assert_eq!(state("bob", 1_000).await, DeliveryState::Queued, "no room in its own queue");
    assert_eq!(state("cyd", 4_000).await, DeliveryState::Delivered);
    assert_eq!(state("cyd", 4_000).await, DeliveryState::Queued, "no room in all of them together");
    let lengths = |texts: Vec<String>| texts.iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(lengths(texts(&mut slot, 2).await), [12_000, 1_000], "the rest waits in the database");
    drop(slot);
    assert_eq!(lengths(texts(&mut other, 2).await), [4_000, 4_000]);
    assert_silent(&mut other).await;
    assert_eq!(state("cyd", 9_000).await, DeliveryState::Delivered, "what was read makes room");
}

#[tokio::test]
async fn two_who_wait_for_one_agent_both_get_its_mail() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    let mut mailboxes = [attach(&realm.engine, &bob, "bob").await, attach(&realm.engine, &bob, "bob").await];
    realm.send(&ann, "bob", "both").await;
    for slot in &mut mailboxes {
        assert_eq!(texts(slot, 1).await, ["both"]);
    }
    let [first, mut second] = mailboxes;
    drop(first);
    assert!(realm.engine.is_attached(&id("bob")), "one is still there");
    realm.send(&ann, "bob", "one").await;
    assert_eq!(texts(&mut second, 1).await, ["one"]);
}

#[tokio::test]
async fn only_the_agent_its_owner_and_those_who_run_the_office_may_wait_for_its_mail() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let eve = realm.agent("eve").await;
    let bot = Register { id: Some(id("bot")), ..Register::default() };
    realm.engine.submit(&ann, bot).await.expect("a free name");
    for allowed in [&ann, &member("bot"), &Caller::office()] {
        attach(&realm.engine, allowed, "bot").await;
    }
    for denied in [&eve, &Caller::stranger(id("bot"), "test"), &Caller::observer(id("eve"), "test")] {
        let refused = realm.engine.attach(denied, &id("bot")).await.expect_err("not its mail");
        assert!(matches!(refused.refusal(), Some(Refusal::NoSuchAgent { .. })), "{refused:?}");
    }
    assert_eq!(realm.engine.listeners().0, 0);
}

fn is_gone<T>(answer: Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Refused(Refusal::NoSuchAgent { .. })))
}

#[tokio::test]
async fn one_who_gave_an_agent_away_gets_none_of_its_later_mail() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let cat = realm.agent("cat").await;
    let bot = Register { id: Some(id("bot")), ..Register::default() };
    realm.engine.submit(&ann, bot).await.expect("a free name");
    let mut slot = attach(&realm.engine, &ann, "bot").await;
    realm.send(&cat, "bot", "for ann's bot").await;
    assert_eq!(texts(&mut slot, 1).await, ["for ann's bot"]);
    // It waits while the agent changes hands.
    let waiting = tokio::spawn(async move { slot.next().await });
    let given = Update { owner: Some(id("cat")), ..Update::of(id("bot")) };
    realm.engine.submit(&ann, given).await.expect("hers to give");
    realm.send(&cat, "bot", "for cat's bot").await;
    assert!(is_gone(waiting.await.unwrap()));
    let mut slot = attach(&realm.engine, &cat, "bot").await;
    assert_eq!(texts(&mut slot, 2).await.last().map(String::as_str), Some("for cat's bot"));
}

#[tokio::test]
async fn one_who_waited_for_an_agent_that_left_gets_none_of_its_successors_mail() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let cat = realm.agent("cat").await;
    let bot = || Register { id: Some(id("bot")), ..Register::default() };
    realm.engine.submit(&ann, bot()).await.expect("a free name");
    let mut slot = attach(&realm.engine, &ann, "bot").await;
    assert_silent(&mut slot).await;
    realm
        .engine
        .submit(&ann, Unregister { agent: id("bot"), reason: None, cause: None })
        .await
        .expect("hers");
    realm.engine.submit(&cat, bot()).await.expect("a free name");
    let sent = realm.send(&cat, "bot", "for cat's bot").await;
    assert_eq!(sent.receipts[0].state, DeliveryState::Queued, "nobody has it who may");
    assert!(is_gone(slot.next().await));
    assert!(is_gone(slot.next().await), "and it stays so");
}

#[tokio::test]
async fn an_agent_that_changes_keeps_getting_its_mail() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let mut slot = attach(&realm.engine, &ann, "ann").await;
    for round in ["1", "2", "3"] {
        let renamed = Update { name: Some(round.to_owned()), ..Update::of(id("ann")) };
        realm.engine.submit(&ann, renamed).await.expect("hers");
        realm.send(&ann, "ann", round).await;
        assert_eq!(texts(&mut slot, 1).await, [round]);
    }
    assert_silent(&mut slot).await;
}

#[tokio::test]
async fn whoever_is_let_go_of_gets_what_it_has_and_nothing_more() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    realm.send(&ann, "bob", "first").await;
    assert_eq!(texts(&mut slot, 1).await, ["first"]);
    let held = realm.send(&ann, "bob", "in its hands").await;
    assert_eq!(held.receipts[0].state, DeliveryState::Delivered);
    realm.engine.close_mailboxes(&id("bob"));
    assert!(!realm.engine.is_attached(&id("bob")));
    let kept = realm.send(&ann, "bob", "kept").await;
    assert_eq!(kept.receipts[0].state, DeliveryState::Queued);
    assert_eq!(texts(&mut slot, 1).await, ["in its hands"]);
    assert!(slot.next().await.is_err());
    let mut again = attach(&realm.engine, &bob, "bob").await;
    assert!(texts(&mut again, 3).await.contains(&"kept".to_owned()), "what was not noted comes again");
}

/// Letters that are handed round are written behind, and nobody waits for what is posted here.
#[tokio::test]
async fn whoever_waits_for_the_books_finds_all_it_has_written() {
    let realm = Realm::new();
    let (ann, bob) = (realm.agent("ann").await, realm.agent("bob").await);
    let mut slot = attach(&realm.engine, &bob, "bob").await;
    // Until the slot has looked into the books nothing is handed round.
    assert_silent(&mut slot).await;
    realm.talk(&ann, "talk", &[]).await;
    let all = TurnQuery { limit: 100, ..TurnQuery::default() };
    for n in 1..=20 {
        let sent = realm.engine.dispatch(&ann, letter("bob", "handed")).await.unwrap();
        assert!(matches!(sent, Dispatch::Delivered(_)), "{sent:?}");
        drop(realm.engine.enqueue(&ann, say("talk", "posted")).await.unwrap());
        realm.engine.flush().await;
        let turns = realm.see(|view| view.turns(&ann, &talk("talk"), &all));
        assert_eq!((realm.inbox("bob").len(), turns.items.len()), (n, n));
    }
    // With nothing to wait for nobody waits.
    tokio::time::timeout(DEADLINE, realm.engine.flush()).await.unwrap();
}

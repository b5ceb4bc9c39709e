//! The views behind dashboards: their results are correct and bounded, and they page without gaps.

use posthaste_engine::Filter;
use posthaste_engine::nouns::{AgentKind, Audience, DeliveryState, ReservationStatus, Seq, TaskStatus};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkRead};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::Sweep;
use posthaste_engine::verbs::reservations::{Release, Renew, Reserve, Which};
use posthaste_engine::verbs::tasks::{CreateTask, UpdateTask};
use posthaste_engine::views::{SearchQuery, TaskQuery};
use posthaste_engine::{Refusal, stamp};

use crate::harness::{Realm, admin, conversation_id, id, later, member, message, observer, soon};

#[tokio::test]
async fn rate_counts_messages_by_door() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    for n in 0..5 {
        realm.send(&anna, "bert", &format!("message {n}")).await;
    }
    let by_other_door = posthaste_engine::nouns::Caller::member(id("anna"), "pigeon");
    realm.send(&by_other_door, "bert", "by another door").await;
    let minutes = realm.see(|view| view.rate(&anna, 60));
    assert_eq!(minutes.len(), 60);
    assert!(minutes.windows(2).all(|pair| pair[1].from - pair[0].from == 60_000));
    let sum = |via: &str| minutes.iter().filter_map(|minute| minute.messages.get(via)).sum::<i64>();
    assert_eq!((sum(&anna.via), sum("pigeon")), (5, 1));
    let head = realm.see(|view| view.head());
    assert_eq!(minutes.iter().map(|minute| minute.events).sum::<i64>(), head, "every event once");
    assert!(minutes.iter().all(|minute| minute.exact));
    assert_eq!(realm.see(|view| view.rate(&anna, 0)).len(), 1, "within bounds");
    assert_eq!(realm.see(|view| view.rate(&anna, usize::MAX)).len(), 1_440, "within bounds");
}

#[tokio::test]
async fn earlier_events_are_paged_completely() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    for n in 0..25 {
        realm.send(if n % 5 == 0 { &bert } else { &anna }, "bert", &format!("{n}")).await;
    }
    let filter = Filter::Kinds(vec!["message.sent".into()]);
    let (mut before, mut seen) = (Seq::MAX, Vec::new());
    loop {
        let page = realm.see(|view| view.earlier(&admin(), before, &filter, 7));
        assert!(page.events.is_sorted_by_key(|event| event.seq) && page.events.len() <= 7);
        let mut seqs: Vec<Seq> = page.events.iter().map(|event| event.seq).collect();
        seqs.extend(seen);
        seen = seqs;
        if !page.more {
            break;
        }
        before = page.cursor;
    }
    let all = realm.see(|view| view.events(&admin(), 0, &filter, 99));
    assert_eq!(seen, all.events.iter().map(|event| event.seq).collect::<Vec<_>>());
    assert!(realm.see(|view| view.earlier(&admin(), 0, &filter, 7)).events.is_empty());
    assert!(realm.see(|view| view.earlier(&admin(), -9, &filter, 7)).events.is_empty());
}

#[tokio::test]
async fn requested_ack_is_outstanding_until_given() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let mut asked = Vec::new();
    for n in 0..5 {
        realm.send(&anna, "bert", "needs no ack").await;
        let sent =
            realm.ask(&anna, SendMessage { ack_required: true, ..message("bert", &format!("{n}")) }).await;
        asked.push(sent.message);
    }
    let outstanding = |before: Option<Seq>, limit: usize| {
        let page = realm.see(|view| view.unacknowledged(&bert, &id("bert"), None, before, limit));
        (page.items.iter().map(|item| item.message.seq).collect::<Vec<_>>(), page.next)
    };
    let seqs: Vec<Seq> = asked.iter().rev().map(|message| message.seq).collect();
    assert_eq!(outstanding(None, 99), (seqs.clone(), None));
    let (first, next) = outstanding(None, 2);
    assert_eq!(first, seqs[..2]);
    assert_eq!(outstanding(next, 99).0, seqs[2..], "the next page continues where the first ended");
    // Marking as read does not acknowledge.
    realm.ask(&bert, MarkRead { agent: id("bert"), message: asked[0].id, unread: false }).await;
    realm.ask(&bert, Acknowledge { agent: id("bert"), message: asked[4].id, response: None }).await;
    assert_eq!(outstanding(None, 99).0, seqs[1..]);
    let late =
        |time| realm.see(|view| view.unacknowledged(&bert, &id("bert"), Some(time), None, 99)).items.len();
    assert_eq!((late(asked[0].at - 1), late(later())), (0, 4));
    let hidden = realm.hidden(|view| view.unacknowledged(&anna, &id("bert"), None, None, 9));
    assert!(matches!(hidden, Refusal::NoSuchAgent { .. }));
}

#[tokio::test]
async fn undelivered_messages_are_visible_to_their_parties() {
    let realm = Realm::new();
    let [anna, bert, cleo] = realm.agents(["anna", "bert", "cleo"]).await;
    let end = soon();
    realm.ask(&anna, SendMessage { expires_at: Some(end), ..message("bert", "too late") }).await;
    realm.send(&anna, "bert", "in time").await;
    assert!(realm.see(|view| view.failed_deliveries(&anna, None, 9)).items.is_empty());
    realm.passed(end).await;
    realm.ask(&admin(), Sweep {}).await;
    for caller in [&anna, &bert, &admin()] {
        let dead = realm.see(|view| view.failed_deliveries(caller, None, 9)).items;
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].delivery.state, DeliveryState::Expired);
    }
    assert!(realm.see(|view| view.failed_deliveries(&cleo, None, 9)).items.is_empty());
}

#[tokio::test]
async fn task_events_exclude_turns() {
    let realm = Realm::new();
    let [anna, _, cleo] = realm.agents(["anna", "bert", "cleo"]).await;
    let task = |name: &str| CreateTask {
        id: Some(conversation_id(name)),
        title: Some(name.into()),
        description: None,
        status: None,
        owner: None,
        assignee: Some(id("bert")),
        participants: Vec::new(),
        audience: Audience::Parties,
        meta: None,
    };
    realm.ask(&anna, task("first")).await;
    realm.ask(&anna, task("second")).await;
    realm.say(&anna, "first", "a word").await;
    let status = Some(TaskStatus::InProgress);
    realm.ask(&anna, UpdateTask { status, ..UpdateTask::of(conversation_id("first")) }).await;
    let words = realm.see(|view| view.course(&anna, &conversation_id("first"), 0, 99));
    let words: Vec<&str> = words.iter().map(|event| event.fact.kind()).collect();
    assert!(words.contains(&"task.created") && words.contains(&"task.status"), "{words:?}");
    assert!(!words.contains(&"turn.added"), "{words:?}");
    let hidden = realm.hidden(|view| view.course(&cleo, &conversation_id("first"), 0, 99));
    assert!(matches!(hidden, Refusal::NoSuchConversation { .. }));
    let newest = TaskQuery { newest_first: true, limit: 1, ..TaskQuery::default() };
    let page = realm.see(|view| view.tasks(&anna, &newest));
    assert_eq!(page.items[0].id, conversation_id("second"));
    let older = TaskQuery { after: page.next.expect("another"), ..newest };
    assert_eq!(realm.see(|view| view.tasks(&anna, &older)).items[0].id, conversation_id("first"));
}

fn reserve(key: &str, paths: &[&str], exclusive: bool, expires_at: i64) -> Reserve {
    Reserve {
        key: Some(key.into()),
        scope: "repo".into(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        exclusive,
        reason: None,
        issued_at: None,
        expires_at,
        audience: Audience::Observers,
        meta: None,
    }
}

#[tokio::test]
async fn conflicts_list_each_pair_once() {
    let realm = Realm::new();
    let [anna, bert, cleo] = realm.agents(["anna", "bert", "cleo"]).await;
    realm.ask(&anna, reserve("a", &["src/**", "doc/x"], true, later())).await;
    realm.ask(&bert, reserve("b", &["src/main.rs"], false, later())).await;
    realm.ask(&cleo, reserve("c", &["test/*"], true, later())).await;
    let clashes = realm.see(|view| view.clashes(&observer("cleo"), 9));
    assert_eq!(clashes.len(), 1);
    assert_eq!((clashes[0].reservation.key.as_str(), clashes[0].with.key.as_str()), ("b", "a"));
    assert_eq!(
        (clashes[0].with.path.as_str(), clashes[0].with.held_path.as_str()),
        ("src/main.rs", "src/**")
    );
    assert_eq!(realm.see(|view| view.in_force(&cleo, 9)).len(), 3);
    realm.ask(&anna, Release { which: vec![Which::Key("a".into())], owner: None }).await;
    assert!(realm.see(|view| view.clashes(&cleo, 9)).is_empty());
    assert_eq!(realm.see(|view| view.in_force(&cleo, 9)).len(), 2);
}

#[tokio::test]
async fn expired_reservation_cannot_be_renewed_after_release() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let end = soon();
    for key in ["kept", "gone"] {
        realm.ask(&anna, reserve(key, &["x"], false, end)).await;
    }
    realm.passed(end).await;
    realm.ask(&admin(), Sweep {}).await;
    let gone = Release { which: vec![Which::Key("gone".into())], owner: Some(id("anna")) };
    assert_eq!(realm.ask(&admin(), gone).await[0].status, ReservationStatus::Released);
    let renew = |key: &str| Renew { which: Which::Key(key.into()), expires_at: later() };
    assert_eq!(realm.refused(&anna, renew("gone")).await, Refusal::NoSuchReservation);
    assert_eq!(realm.ask(&anna, renew("kept")).await.reservation.status, ReservationStatus::Active);
}

#[tokio::test]
async fn agent_groups_and_links_are_counted() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "cleo"]).await;
    realm.send(&anna, "bert", "one").await;
    realm.send(&anna, "bert", "two").await;
    realm.send(&bert, "cleo", "three").await;
    let groups = realm.see(|view| view.agent_groups(&admin()));
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].kind, groups[0].count), (AgentKind::Agent, 3));
    assert_eq!(realm.see(|view| view.agent_groups(&anna)), groups, "all agents are public here");
    let links = |caller: &posthaste_engine::nouns::Caller| {
        let links = realm.see(|view| view.links(caller, 9));
        links.iter().map(|link| format!("{}>{} {}", link.from, link.to, link.messages)).collect::<Vec<_>>()
    };
    assert_eq!(links(&admin()), ["anna>bert 2", "bert>cleo 1"]);
    assert_eq!(links(&anna), ["anna>bert 2"], "only what the caller may see");
    let traces = realm.see(|view| view.recent_activity(&admin(), &id("anna")));
    assert_eq!(traces.partners, [(id("bert"), 2)]);
    assert!(traces.last_sent.is_some_and(|at| at <= stamp::now()));
    let from_outside = realm.see(|view| view.recent_activity(&member("cleo"), &id("anna")));
    assert_eq!((from_outside.last_sent, from_outside.partners.len()), (None, 0));
    assert_eq!(realm.see(|view| view.unread_up_to(&bert, &id("bert"), 9)), 2);
    assert_eq!(realm.see(|view| view.unread_up_to(&bert, &id("bert"), 1)), 1, "not more than the limit");
}

#[tokio::test]
async fn snippet_markers_are_configurable() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.send(&anna, "bert", "a [red] fox").await;
    let snippet = |marks| {
        let query = SearchQuery { text: "fox".into(), marks, limit: 9, ..SearchQuery::default() };
        realm.see(|view| view.search(&anna, &query)).hits[0].snippet.clone()
    };
    assert_eq!(snippet(None), "a [red] [fox]");
    assert_eq!(snippet(Some(('<', '>'))), "a [red] <fox>");
}

//! Runs: opened, advanced, ended and opened again; each step is atomic and visible only to its parties.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Address, AgentKind, Caller, DeliveryState, MessageId, PeerKind, Priority, RunPhase, Taken, TaskStatus,
};
use posthaste_engine::verbs::deliveries::Dispatched;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::peers::PutPeer;
use posthaste_engine::verbs::runs::{Advance, Opening, RunMessage};
use posthaste_engine::views::{SearchQuery, TurnQuery};
use posthaste_engine::{Filter, Refusal};
use uuid::Uuid;

use crate::harness::{Realm, admin, conversation_id, id, json, member, message, realm as named};

pub(crate) fn run_message(n: u128, from: &str, to: &str, body: &str) -> RunMessage {
    RunMessage {
        id: MessageId(Uuid::from_u128(n)),
        from: id(from),
        from_kind: AgentKind::User,
        addressed: vec![Address::Agent(id(to))],
        to: vec![id(to)],
        away: Vec::new(),
        kind: "request".into(),
        subject: "subject".into(),
        body: body.into(),
        priority: Priority::HIGH,
        correlation: None,
        key: None,
        meta: None,
        in_reply_to: None,
        elsewhere: None,
    }
}

pub(crate) fn opening(name: &str) -> Advance {
    Advance { open: Some(Opening { owner: "user:insider@here".into(), title: None }), ..step(name) }
}

fn step(name: &str) -> Advance {
    Advance {
        instance: "user:insider".into(),
        name: name.into(),
        open: None,
        agent: id("hand"),
        took: Vec::new(),
        forget: false,
        gave_up: Vec::new(),
        note: None,
        messages: Vec::new(),
        steps: 0,
        phase: None,
        result: None,
        state: None,
        contributors: Vec::new(),
    }
}

fn taken(agent: &str, n: u128) -> Vec<Taken> {
    vec![Taken { agent: id(agent), message: MessageId(Uuid::from_u128(n)) }]
}

#[tokio::test]
async fn run_is_a_task_and_a_conversation_of_its_parties() {
    let realm = Realm::new();
    let [user, hand, out] = realm.agents(["insider", "hand", "out"]).await;
    let message = run_message(1, "insider", "hand", "marzipan");
    let opened = realm.ask(&admin(), Advance { messages: vec![message], ..opening("r") }).await;
    assert!(opened.opened && opened.run.phase == RunPhase::Running);
    let end = RunMessage { to: Vec::new(), ..run_message(2, "hand", "insider", "done") };
    let last = Advance {
        took: taken("hand", 1),
        note: Some(json("{\"did\":1}")),
        messages: vec![end],
        steps: 1,
        phase: Some(RunPhase::Ended),
        result: Some(json("\"done\"")),
        ..step("r")
    };
    let ended = realm.ask(&admin(), last.clone()).await;
    assert_eq!((ended.run.phase, ended.run.steps, ended.run.notes), (RunPhase::Ended, 1, 1));

    for caller in [&user, &hand] {
        let task = realm.see(|view| view.task(caller, &conversation_id("r")));
        assert_eq!((task.status, task.owner.as_str()), (TaskStatus::Completed, "user:insider@here"));
        let turns = realm.see(|view| {
            view.turns(caller, &conversation_id("r"), &TurnQuery { limit: 9, ..TurnQuery::default() })
        });
        assert_eq!(turns.items.len(), 2, "its messages are turns");
        let found = SearchQuery { text: "marzipan".into(), limit: 9, ..SearchQuery::default() };
        assert_eq!(realm.see(|view| view.search(caller, &found)).hits.len(), 1);
    }
    assert_eq!(
        realm.hidden(|view| view.task(&out, &conversation_id("r"))),
        Refusal::NoSuchTask { task: conversation_id("r") }
    );
    assert!(realm.see(|view| view.run(&out, "user:insider", "r")).is_none());

    let record = realm.see(|view| view.run_record(&user, &conversation_id("r"), 0, 99));
    let deliveries: Vec<_> =
        record.messages[0].deliveries.iter().map(|(_, state, kept)| (*state, *kept)).collect();
    assert_eq!(deliveries, [(DeliveryState::Read, true)]);
    assert_eq!(record.notes.len(), 1);
    assert!(
        record.notes[0].before <= record.messages[1].message.seq,
        "the note precedes the message that results from it"
    );

    // Too late, and it leaves nothing behind.
    assert_eq!(realm.refused(&admin(), step("r")).await, Refusal::TaskEnded { task: conversation_id("r") });
    assert_eq!(realm.see(|view| view.run_record(&user, &conversation_id("r"), 0, 99)), record);
}

#[tokio::test]
async fn message_is_taken_once() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let message = run_message(1, "insider", "hand", "x");
    realm.ask(&admin(), Advance { messages: vec![message], ..opening("r") }).await;
    let take = Advance { took: taken("hand", 1), forget: true, ..step("r") };
    realm.ask(&admin(), take.clone()).await;
    assert_eq!(realm.refused(&admin(), take).await, Refusal::NoSuchMessage);
    let record = realm.see(|view| view.run_record(&admin(), &conversation_id("r"), 0, 99));
    assert_eq!(
        record.messages[0].deliveries,
        [(id("hand"), DeliveryState::Read, false)],
        "taken, and forgotten"
    );
}

#[tokio::test]
async fn run_message_with_the_same_key_is_stored_once() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let message = |n| RunMessage { key: Some("far/1".into()), ..run_message(n, "insider", "hand", "x") };
    let first = realm.ask(&admin(), Advance { messages: vec![message(1)], ..opening("r") }).await;
    let second = realm.ask(&admin(), Advance { messages: vec![message(2)], ..opening("r") }).await;
    assert!(!first.repeated && second.repeated);
    assert_eq!(realm.see(|view| view.run_record(&admin(), &conversation_id("r"), 0, 99)).messages.len(), 1);
}

#[tokio::test]
async fn same_name_in_two_instances_is_two_tasks() {
    let realm = Realm::new();
    let [one, _, other] = realm.agents(["insider", "hand", "other"]).await;
    let first = Advance { messages: vec![run_message(1, "insider", "hand", "mine")], ..opening("r") };
    realm.ask(&admin(), first).await;
    let second = Advance {
        instance: "user:other".into(),
        messages: vec![run_message(2, "other", "hand", "theirs")],
        ..opening("r")
    };
    let second = realm.ask(&admin(), second).await;
    assert_eq!(second.run.task, conversation_id("r~user:other"));
    for (caller, own, foreign) in [(&one, "r", "r~user:other"), (&other, "r~user:other", "r")] {
        assert_eq!(realm.see(|view| view.run_record(caller, &conversation_id(own), 0, 9)).messages.len(), 1);
        let none = Refusal::NoSuchTask { task: conversation_id(foreign) };
        assert_eq!(realm.hidden(|view| view.run_record(caller, &conversation_id(foreign), 0, 9)), none);
    }
    assert_eq!(realm.see(|view| view.instances(&admin(), "user:")), 2);
    assert_eq!(realm.see(|view| view.instances(&admin(), "admin:")), 0);
}

#[tokio::test]
async fn reopened_run_continues_with_new_counts() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let first = Advance { messages: vec![run_message(1, "insider", "hand", "a")], steps: 3, ..opening("r") };
    realm.ask(&admin(), first).await;
    realm.ask(&admin(), Advance { phase: Some(RunPhase::Ended), ..step("r") }).await;
    assert!(realm.see(|view| view.live_runs(&admin(), 0, 9)).is_empty());
    let again = Advance { messages: vec![run_message(2, "insider", "hand", "b")], ..opening("r") };
    let again = realm.ask(&admin(), again).await;
    assert_eq!((again.opened, again.run.phase, again.run.steps), (false, RunPhase::Running, 0));
    assert_eq!(realm.see(|view| view.task(&admin(), &conversation_id("r"))).status, TaskStatus::InProgress);
    assert_eq!(realm.see(|view| view.live_runs(&admin(), 0, 9)).len(), 1);
}

#[tokio::test]
async fn messages_for_a_peer_wait_in_the_outbox() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let away = RunMessage {
        to: Vec::new(),
        away: vec![(named("north"), id("x@north"))],
        ..run_message(1, "hand", "insider", "over there")
    };
    let go = Advance { messages: vec![away.clone()], ..opening("r") };
    assert_eq!(realm.refused(&admin(), go.clone()).await, Refusal::NoSuchPeer { peer: "north".into() });
    let peer = PutPeer {
        name: named("north"),
        kind: PeerKind::Server,
        url: Some("http://north".into()),
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    realm.ask(&admin(), peer).await;
    realm.ask(&admin(), go).await;
    assert_eq!(realm.see(|view| view.awaited_peers(&admin())).len(), 1);
    let waiting = realm.see(|view| view.outbound_to(&admin(), &named("north"), 9));
    assert_eq!(waiting.iter().map(|(_, agent)| agent.clone()).collect::<Vec<_>>(), [id("x@north")]);
    let done = Dispatched { peer: named("north"), agent: id("x@north"), message: away.id, failure: None };
    realm.ask(&admin(), done).await;
    assert!(realm.see(|view| view.outbound_to(&admin(), &named("north"), 9)).is_empty());
    assert!(realm.see(|view| view.awaited_peers(&admin())).is_empty());
}

#[tokio::test]
async fn only_admin_may_advance_runs() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let refused = realm.refused(&member("insider"), opening("r")).await;
    assert_eq!(refused, Refusal::NotAllowed { need: "to run the office" });
}

#[tokio::test]
async fn message_to_another_conversation_is_no_turn_of_the_run() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let go = Advance { messages: vec![run_message(1, "insider", "hand", "please")], ..opening("r") };
    let opened = realm.ask(&admin(), go).await;
    let answer = RunMessage {
        in_reply_to: Some(opened.messages[0].0.id),
        elsewhere: Some(crate::harness::conversation_id("other")),
        ..run_message(2, "hand", "insider", "done")
    };
    let done = realm.ask(&admin(), Advance { messages: vec![answer], ..step("r") }).await;
    let sent = &done.messages[0].0;
    assert_eq!(sent.conversation, Some(crate::harness::conversation_id("other")));
    assert_eq!(
        (sent.task.as_ref(), sent.in_reply_to),
        (Some(&opened.run.task), Some(opened.messages[0].0.id))
    );
    assert_eq!(realm.mail("insider"), ["done"]);
    let conversation = realm.see(|view| view.conversation(&admin(), &opened.run.task));
    assert_eq!(conversation.turn_count, 1);
    let record = realm.see(|view| view.run_record(&admin(), &opened.run.task, 0, 10));
    assert_eq!(record.messages.len(), 1);
}

/// The steps of a task that is opened, worked on by two agents and ended.
fn complete_run() -> Vec<Advance> {
    let ask = run_message(1, "insider", "hand", "marzipan");
    let pass = RunMessage { from_kind: AgentKind::Agent, ..run_message(2, "hand", "helper", "almonds") };
    let late = RunMessage { from_kind: AgentKind::Agent, ..run_message(3, "hand", "helper", "too late") };
    let end = RunMessage { to: Vec::new(), ..run_message(4, "helper", "insider", "done") };
    vec![
        Advance { messages: vec![ask], state: Some(json("1")), ..opening("r") },
        Advance {
            took: taken("hand", 1),
            note: Some(json("{\"did\":1}")),
            messages: vec![pass, late],
            steps: 1,
            ..step("r")
        },
        Advance {
            agent: id("helper"),
            took: taken("helper", 2),
            forget: true,
            gave_up: taken("helper", 3),
            note: Some(json("{\"did\":2}")),
            messages: vec![end],
            steps: 1,
            phase: Some(RunPhase::Ended),
            result: Some(json("\"done\"")),
            state: Some(json("2")),
            ..step("r")
        },
    ]
}

#[tokio::test]
async fn steps_of_several_agents_add_up_to_a_complete_run() {
    let realm = Realm::new();
    realm.agents(["insider", "hand", "helper"]).await;
    for step in complete_run() {
        realm.ask(&admin(), step).await;
    }
    let record = realm.see(|view| view.run_record(&admin(), &conversation_id("r"), 0, 99));
    let states: Vec<_> = record
        .messages
        .iter()
        .map(|row| row.deliveries.iter().map(|(_, state, kept)| (*state, *kept)).collect::<Vec<_>>())
        .collect();
    let expected = [
        vec![(DeliveryState::Read, true)],
        vec![(DeliveryState::Read, false)],
        vec![(DeliveryState::Failed, true)],
        vec![],
    ];
    assert_eq!(states, expected, "handled, handled and forgotten, given up, and the end");
    assert_eq!(record.notes.iter().map(|note| note.n).collect::<Vec<_>>(), [1, 2]);
    let (run, task) = realm.see(|view| view.run(&admin(), "user:insider", "r")).expect("a run");
    assert_eq!((run.phase, run.steps, run.notes), (RunPhase::Ended, 2, 2));
    assert_eq!((task.status, task.ended_at.is_some()), (TaskStatus::Completed, true));
    assert_eq!(task.result.as_ref().map(|json| json.as_str()), Some("\"done\""));
    let conversation = realm.see(|view| view.conversation(&admin(), &conversation_id("r")));
    assert_eq!((conversation.participant_count, conversation.turn_count), (3, 4));
    let replay = realm.see(|view| view.events(&admin(), 0, &Filter::everything(), 1_000));
    let end = replay.events.last().expect("an event log");
    assert_eq!((end.fact.kind(), end.actor.as_str()), ("task.completed", "helper"));
}

#[tokio::test]
async fn message_cannot_be_taken_twice_in_one_step() {
    let realm = Realm::new();
    realm.agents(["insider", "hand"]).await;
    let message = run_message(1, "insider", "hand", "x");
    realm.ask(&admin(), Advance { messages: vec![message], ..opening("r") }).await;
    let twice = Advance { took: [taken("hand", 1), taken("hand", 1)].concat(), ..step("r") };
    assert_eq!(realm.refused(&admin(), twice).await, Refusal::NoSuchMessage);
    realm.ask(&admin(), Advance { took: taken("hand", 1), ..step("r") }).await;
}

#[tokio::test]
async fn reach_rule_applies_only_inside_runs() {
    let realm = Realm::new();
    let [_, hand, ..] = realm.agents(["insider", "hand", "helper", "boss"]).await;
    let reach = [(id("hand"), [id("boss")].into())].into();
    realm.rules(Rules { reach, ..Rules::default() }).await;
    let ask = run_message(1, "insider", "hand", "marzipan");
    realm.ask(&admin(), Advance { messages: vec![ask], ..opening("r") }).await;
    let within = |name: &str, join: JoinMode| ConversationRef {
        conversation: conversation_id(name),
        thread: None,
        reply_to: None,
        visibility: None,
        join,
    };
    let kind = || "agent-task".to_owned();
    let entries = [
        JoinMode::IfAllowed,
        JoinMode::Open { kind: kind() },
        JoinMode::PartiesOnly { kind: kind() },
        JoinMode::NameOnly { kind: kind() },
    ];
    for join in entries {
        let send = |to: &str| SendMessage { within: Some(within("r", join.clone())), ..message(to, "x") };
        let why = realm.refused(&hand, send("helper")).await;
        assert!(matches!(why, Refusal::NotAllowed { .. }), "{why:?}");
        realm.ask(&hand, send("boss")).await;
        // The user of the run may always be answered.
        realm.ask(&hand, send("insider")).await;
    }
    assert_eq!(realm.inbox("helper").len(), 0);
    let apart = SendMessage {
        within: Some(within("apart", JoinMode::Open { kind: kind() })),
        ..message("helper", "x")
    };
    realm.ask(&hand, apart).await;
    realm.ask(&hand, message("helper", "ordinary message")).await;
    assert_eq!(realm.inbox("helper").len(), 2);
}

#[tokio::test]
async fn messages_of_others_under_the_name_of_a_run_are_not_in_its_record() {
    let realm = Realm::new();
    let [user, hand, anna, _, _] = realm.agents(["insider", "hand", "anna", "bert", "boss"]).await;
    let ask = run_message(1, "insider", "hand", "marzipan");
    realm.ask(&admin(), Advance { messages: vec![ask], ..opening("r") }).await;
    let join = JoinMode::NameOnly { kind: "thread".into() };
    let within = ConversationRef {
        conversation: conversation_id("r"),
        thread: None,
        reply_to: None,
        visibility: None,
        join,
    };
    let under = |to: &str| SendMessage { within: Some(within.clone()), ..message(to, "under the same name") };
    realm.ask(&anna, under("bert")).await;
    realm.ask(&anna, under("insider")).await;
    realm.ask(&hand, under("boss")).await;
    let count = |caller: &Caller| {
        realm.see(|view| view.run_record(caller, &conversation_id("r"), 0, 99)).messages.len()
    };
    assert_eq!((count(&user), count(&admin())), (1, 1));
    // Messages between its participants are.
    realm.ask(&hand, under("insider")).await;
    assert_eq!(count(&user), 2);
}

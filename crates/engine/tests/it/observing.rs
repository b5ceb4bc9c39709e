//! Messages and conversations with audience `Observers`: callers with the observe right see them through every view and
//! feed, other members do not.

use posthaste_engine::nouns::{Address, Audience, Caller, MessageId, Seq, TurnId};
use posthaste_engine::verbs::conversations::Create;
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkRead};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::scopes::CreateScope;
use posthaste_engine::verbs::tasks::{CreateTask, UpdateTask};
use posthaste_engine::verbs::turns::{FirstTurn, OpenThread};
use posthaste_engine::views::{
    ConversationQuery, InboxQuery, Part, SearchQuery, TaskQuery, TurnQuery, View, Viewed,
};
use posthaste_engine::{EngineError, Filter, Start};

use crate::harness::{Realm, conversation, conversation_id, id, json, member, message, observer, scope};

/// Everything that is hidden from other members contains this word.
const OPEN: &str = "walrus";

struct Open {
    message: MessageId,
    at: Seq,
    turn: TurnId,
}

/// Creates one item of each kind between anna and bert, open to observers.
async fn fill(realm: &Realm) -> Open {
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let sent = realm
        .ask(
            &anna,
            SendMessage {
                audience: Audience::Observers,
                correlation: Some("walrus".into()),
                ..message("bert", "walrus")
            },
        )
        .await;
    let sent_id = sent.message.id;
    realm.ask(&bert, MarkRead { agent: id("bert"), message: sent_id, unread: false }).await;
    let response = Some("walrus".into());
    realm.ask(&bert, Acknowledge { agent: id("bert"), message: sent_id, response }).await;
    realm.scope(&anna, "square", CreateScope::default(), &["anna", "bert"]).await;
    let to_scope = SendMessage::text(vec![Address::Scope(scope("square"))], "walrus for the square");
    realm.ask(&anna, SendMessage { audience: Audience::Observers, ..to_scope }).await;
    let create = Create {
        subject: Some("walrus".into()),
        audience: Audience::Observers,
        first: Some(FirstTurn {
            content_type: "text".into(),
            content: json(r#"{"text":"walrus"}"#),
            visibility: None,
        }),
        meta: Some(json(r#"{"walrus":1}"#)),
        ..conversation("walrus-chat", &["bert"])
    };
    realm.ask(&anna, create).await;
    let turn = realm.say(&bert, "walrus-chat", "walrus said").await.id;
    let thread = OpenThread {
        conversation: conversation_id("walrus-chat"),
        root: turn,
        parent: None,
        subject: Some("walrus".into()),
    };
    realm.ask(&anna, thread).await;
    let within = ConversationRef {
        conversation: conversation_id("walrus-chat"),
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::IfAllowed,
    };
    let recorded = SendMessage { within: Some(within), ..message("bert", "walrus recorded") };
    realm.ask(&anna, SendMessage { audience: Audience::Observers, ..recorded }).await;
    let task = CreateTask {
        id: Some(conversation_id("walrus-task")),
        title: Some("walrus".into()),
        description: None,
        status: None,
        owner: None,
        assignee: Some(id("bert")),
        participants: Vec::new(),
        audience: Audience::Observers,
        meta: None,
    };
    realm.ask(&anna, task).await;
    let done =
        UpdateTask { result: Some(json("\"walrus\"")), ..UpdateTask::of(conversation_id("walrus-task")) };
    realm.ask(&bert, done).await;
    Open { message: sent_id, at: sent.message.seq, turn }
}

type Look = fn(&View<'_>, &Caller, &Open) -> Viewed<String>;

/// The views that show open items to observers.
fn looks() -> Vec<(&'static str, Look)> {
    fn told<T: std::fmt::Debug>(found: Viewed<T>) -> Viewed<String> {
        found.map(|found| format!("{found:?}"))
    }
    fn turns() -> TurnQuery {
        TurnQuery { limit: 99, ..TurnQuery::default() }
    }
    vec![
        ("message", |view, who, open| told(view.message(who, open.message))),
        ("message_at", |view, who, open| told(view.message_at(who, open.at))),
        ("correspondence", |view, who, _| {
            told(view.correspondence(who, &conversation_id("walrus-chat"), 0, 99))
        }),
        ("conversation", |view, who, _| told(view.conversation(who, &conversation_id("walrus-chat")))),
        ("conversations", |view, who, _| {
            told(view.conversations(who, &ConversationQuery { limit: 99, ..Default::default() }))
        }),
        ("participants", |view, who, _| {
            told(view.participants(who, &conversation_id("walrus-chat"), true, None, 99))
        }),
        ("threads", |view, who, _| told(view.threads(who, &conversation_id("walrus-chat"), None, 0, 99))),
        ("turns", |view, who, _| told(view.turns(who, &conversation_id("walrus-chat"), &turns()))),
        ("turn", |view, who, open| told(view.turn(who, &conversation_id("walrus-chat"), open.turn))),
        ("summary", |view, who, _| {
            told(view.summary(who, &conversation_id("walrus-chat"), &Part::default(), false))
        }),
        ("course", |view, who, _| told(view.course(who, &conversation_id("walrus-chat"), 0, 99))),
        ("task", |view, who, _| told(view.task(who, &conversation_id("walrus-task")))),
        ("tasks", |view, who, _| told(view.tasks(who, &TaskQuery { limit: 99, ..Default::default() }))),
        ("search", |view, who, _| {
            told(view.search(who, &SearchQuery { text: OPEN.into(), limit: 99, ..Default::default() }))
        }),
        ("events", |view, who, _| {
            told(view.events(who, 0, &Filter::everything(), 999).map(|replay| replay.events))
        }),
        ("earlier", |view, who, _| {
            told(view.earlier(who, Seq::MAX, &Filter::everything(), 999).map(|replay| replay.events))
        }),
    ]
}

#[tokio::test]
async fn open_items_are_visible_to_observers_and_not_to_other_members() {
    let realm = Realm::new();
    realm.agent("out").await;
    let open = fill(&realm).await;
    let query = InboxQuery { limit: 99, ..InboxQuery::default() };
    for (name, look) in looks() {
        let ask = |who: Caller| realm.engine.read_blocking(|view| look(view, &who, &open));
        let shown = ask(observer("out"));
        assert!(shown.is_ok_and(|text| text.contains(OPEN)), "an observer sees nothing through {name}");
        for who in [member("out"), Caller::stranger(id("anna"), "test")] {
            match ask(who.clone()) {
                Ok(text) => assert!(!text.contains(OPEN), "{who:?} through {name}: {text}"),
                Err(EngineError::Refused(why)) => {
                    let said = format!("{why:?}");
                    let unknown = said.starts_with("NoSuch") || !who.rights.member;
                    assert!(unknown, "{who:?} through {name}: {said}");
                }
                Err(fault) => panic!("{name}: {fault}"),
            }
        }
    }
    // The observe right does not open mailboxes.
    let inbox = realm.engine.read_blocking(|view| view.inbox(&observer("out"), &id("bert"), &query));
    assert!(inbox.is_err());
}

#[tokio::test]
async fn a_feed_shows_open_things_to_observers_and_not_to_other_members() {
    let realm = Realm::new();
    realm.agent("out").await;
    let follow = |who: Caller, start| {
        let engine = realm.engine.clone();
        async move { engine.follow(&who, Filter::everything(), start, 999).await.expect("a feed") }
    };
    let mut live = [follow(member("out"), Start::Now).await, follow(observer("out"), Start::Now).await];
    fill(&realm).await;
    let mut past =
        [follow(member("out"), Start::After(0)).await, follow(observer("out"), Start::After(0)).await];
    for feeds in [&mut live, &mut past] {
        let [plain, observing] = feeds;
        let shown = realm.drain(plain, &member("out")).await;
        let words: Vec<_> = shown.iter().map(|event| event.fact.kind()).collect();
        assert!(
            words.iter().all(|word| word.starts_with("agent.") || word.starts_with("scope.")),
            "only the agent directory: {words:?}"
        );
        let shown = realm.drain(observing, &observer("out")).await;
        for word in ["message.sent", "message.acked", "turn.added", "conversation.created", "task.created"] {
            assert!(shown.iter().any(|event| event.fact.kind() == word), "{word}");
        }
    }
}

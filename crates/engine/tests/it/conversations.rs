//! Conversations: created atomically, joined and left by the rules, every permission enforced.

use posthaste_engine::nouns::{
    Audience, Caller, ConversationStatus, Permissions, PermissionsPatch, Seq, TurnVisibility,
};
use posthaste_engine::verbs::agents::SetState;
use posthaste_engine::verbs::conversations::{Close, Create, Invite, Invitee, Join, Leave, Remove, Reopen};
use posthaste_engine::verbs::turns::{FirstTurn, OpenThread};
use posthaste_engine::views::{ConversationQuery, TurnQuery};
use posthaste_engine::{Filter, Refusal, Start};

use crate::harness::{Realm, admin, conversation, conversation_id, id, invitee, json, member, observer, say};

fn join(name: &str) -> Join {
    Join { conversation: conversation_id(name), role: None }
}

fn leave(name: &str) -> Leave {
    Leave { conversation: conversation_id(name), reason: None }
}

fn close(name: &str) -> Close {
    Close { conversation: conversation_id(name), status: None, reason: None }
}

fn invite(name: &str, whom: &str) -> Invite {
    Invite { conversation: conversation_id(name), invitee: invitee(whom) }
}

fn remove(name: &str, whom: &str) -> Remove {
    Remove { conversation: conversation_id(name), agent: id(whom), reason: None }
}

fn none(name: &str) -> Refusal {
    Refusal::NoSuchConversation { conversation: conversation_id(name) }
}

fn may_not(need: &'static str) -> Refusal {
    Refusal::ParticipantMayNot { conversation: conversation_id("c"), need }
}

fn with(name: &str, permissions: PermissionsPatch) -> Invitee {
    Invitee { permissions, ..invitee(name) }
}

fn open(name: &str) -> Create {
    Create { audience: Audience::Observers, ..conversation(name, &[]) }
}

#[tokio::test]
async fn conversation_is_created_with_participants_and_first_turn() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let first =
        FirstTurn { content_type: "text".into(), content: json(r#"{"text":"hi"}"#), visibility: None };
    let given = Create { first: Some(first), ..conversation("c", &["bert", "bert", "anna"]) };
    let created = realm.ask(&anna, given).await;
    assert_eq!(created.participant.role, "initiator");
    assert_eq!(created.participant.permissions, Permissions::for_role("initiator"));
    let found = realm.see(|view| view.conversation(&bert, &conversation_id("c")));
    assert_eq!(found, created.conversation);
    assert_eq!((found.participant_count, found.turn_count), (2, 1), "each participant is counted once");
    let turns = realm.see(|view| {
        view.turns(&bert, &conversation_id("c"), &TurnQuery { limit: 9, ..TurnQuery::default() })
    });
    assert_eq!(turns.items, [created.first.expect("a first turn")]);
    let words: Vec<_> = realm.replayed(&anna).into_iter().filter(|w| !w.starts_with("agent.")).collect();
    assert_eq!(words, ["conversation.created", "participant.joined", "participant.joined", "turn.added"]);
    assert_eq!(
        realm.refused(&bert, conversation("c", &[])).await,
        Refusal::ConversationExists { conversation: conversation_id("c") }
    );
}

#[tokio::test]
async fn refused_creation_leaves_nothing_behind() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let first = |content_type: &str, visibility| {
        Some(FirstTurn { content_type: content_type.into(), content: json("{}"), visibility })
    };
    let head = realm.see(|view| view.head());
    type Expected = fn(&Refusal) -> bool;
    let cases: Vec<(Create, Expected)> = vec![
        (Create { first: first("text/plain", None), ..conversation("c", &["bert"]) }, |why| {
            matches!(why, Refusal::BadContentType { .. })
        }),
        (
            Create {
                first: first("text", Some(TurnVisibility::Agents(vec![id("carl")]))),
                ..conversation("c", &["bert"])
            },
            |why| matches!(why, Refusal::NoSuchParticipant { .. }),
        ),
        (Create { parent: Some(conversation_id("nowhere")), ..conversation("c", &[]) }, |why| {
            matches!(why, Refusal::NoSuchConversation { .. })
        }),
        (Create { kind: String::new(), ..conversation("c", &[]) }, |why| {
            matches!(why, Refusal::BadValue { field: "kind", .. })
        }),
        (
            Create {
                participants: vec![Invitee { role: Some(String::new()), ..invitee("bert") }],
                ..conversation("c", &[])
            },
            |why| matches!(why, Refusal::BadValue { field: "role", .. }),
        ),
    ];
    for (given, expected) in cases {
        let why = realm.refused(&anna, given).await;
        assert!(expected(&why), "{why:?}");
        assert_eq!(realm.hidden(|view| view.conversation(&anna, &conversation_id("c"))), none("c"));
    }
    assert_eq!(realm.see(|view| view.head()), head);
}

#[tokio::test]
async fn creator_of_an_open_conversation_gets_its_events() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let mut live = realm.engine.follow(&anna, Filter::everything(), Start::Now, 64).await.expect("a feed");
    realm.ask(&anna, open("c")).await;
    let words: Vec<_> = realm.drain(&mut live, &anna).await.iter().map(|event| event.fact.kind()).collect();
    assert_eq!(words, ["conversation.created", "participant.joined"]);
}

#[tokio::test]
async fn observers_may_join_open_conversations_and_see_no_others() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "eye"]).await;
    realm.ask(&anna, open("c")).await;
    realm.conversation(&anna, "private", &[]).await;
    let eye = observer("eye");
    assert_eq!(realm.refused(&member("eye"), join("c")).await, none("c"), "without the observe right");
    assert_eq!(realm.refused(&eye, join("private")).await, none("private"));
    assert_eq!(realm.refused(&eye, join("nowhere")).await, none("nowhere"));
    let joined = realm.ask(&eye, Join { role: Some("moderator".into()), ..join("c") }).await;
    assert!(
        !joined.participant.permissions.can_invite,
        "choosing a leading role gives no additional permissions"
    );
    assert_eq!(joined.conversation.participant_count, 2);
    assert_eq!(realm.refused(&eye, join("c")).await, Refusal::AlreadyJoined { agent: id("eye") });
}

#[tokio::test]
async fn participant_that_left_returns_with_the_same_permissions() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let quiet = PermissionsPatch { can_send: Some(false), ..PermissionsPatch::default() };
    realm.ask(&anna, Create { participants: vec![with("bert", quiet)], ..conversation("c", &[]) }).await;
    let left = realm.ask(&bert, leave("c")).await;
    assert!(left.left_at.is_some());
    assert_eq!(realm.hidden(|view| view.conversation(&bert, &conversation_id("c"))), none("c"));
    assert_eq!(realm.refused(&bert, leave("c")).await, none("c"));
    let former = realm.see(|view| view.participants(&anna, &conversation_id("c"), true, None, 9)).items;
    assert_eq!(former.len(), 2);
    assert_eq!(
        realm.see(|view| view.participants(&anna, &conversation_id("c"), false, None, 9)).items.len(),
        1
    );
    let back = realm.ask(&bert, join("c")).await;
    assert!(!back.participant.permissions.can_send);
    assert_eq!(realm.refused(&bert, say("c", "hello")).await, may_not("canSend"));
}

#[tokio::test]
async fn removed_participant_returns_only_by_invitation() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &["bert"]).await;
    realm.ask(&anna, remove("c", "bert")).await;
    assert_eq!(realm.refused(&bert, join("c")).await, none("c"));
    assert_eq!(
        realm.refused(&anna, remove("c", "bert")).await,
        Refusal::NoSuchParticipant { agent: id("bert") }
    );
    realm.ask(&anna, invite("c", "bert")).await;
    realm.say(&bert, "c", "back").await;
    realm.ask(&bert, leave("c")).await;
    realm.ask(&bert, join("c")).await;
    realm.ask(&anna, open("o")).await;
    realm.agent("eye").await;
    let eye = observer("eye");
    realm.ask(&eye, join("o")).await;
    realm.ask(&anna, remove("o", "eye")).await;
    assert_eq!(realm.refused(&eye, join("o")).await, Refusal::NotAllowed { need: "to be invited again" });
}

#[tokio::test]
async fn every_permission_is_enforced() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "carl"]).await;
    let nothing = PermissionsPatch {
        can_send: Some(false),
        can_create_threads: Some(false),
        ..PermissionsPatch::default()
    };
    realm.ask(&anna, Create { participants: vec![with("bert", nothing)], ..conversation("c", &[]) }).await;
    let root = realm.say(&anna, "c", "root").await.id;
    let thread = OpenThread { conversation: conversation_id("c"), root, parent: None, subject: None };
    assert_eq!(realm.refused(&bert, say("c", "x")).await, may_not("canSend"));
    assert_eq!(realm.refused(&bert, invite("c", "carl")).await, may_not("canInvite"));
    assert_eq!(realm.refused(&bert, remove("c", "anna")).await, may_not("canRemove"));
    assert_eq!(realm.refused(&bert, thread.clone()).await, may_not("canCreateThreads"));
    realm.ask(&anna, thread).await;
    let all =
        PermissionsPatch { can_invite: Some(true), can_remove: Some(true), ..PermissionsPatch::default() };
    realm.ask(&anna, Invite { conversation: conversation_id("c"), invitee: with("carl", all) }).await;
    let carl = member("carl");
    realm.ask(&carl, remove("c", "bert")).await;
    realm.ask(&carl, invite("c", "bert")).await;
    assert_eq!(realm.refused(&carl, invite("c", "bert")).await, Refusal::AlreadyJoined { agent: id("bert") });
}

#[tokio::test]
async fn participant_without_can_observe_may_speak_and_leave_but_not_read() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let blind = PermissionsPatch { can_observe: Some(false), ..PermissionsPatch::default() };
    realm.ask(&anna, Create { participants: vec![with("bert", blind)], ..open("c") }).await;
    let eye = observer("bert");
    let mut live = realm.engine.follow(&eye, Filter::everything(), Start::Now, 64).await.expect("a feed");
    realm.say(&anna, "c", "for readers").await;
    realm.say(&bert, "c", "blind").await;
    let query = TurnQuery { limit: 9, ..TurnQuery::default() };
    assert_eq!(realm.hidden(|view| view.turns(&eye, &conversation_id("c"), &query)), may_not("canObserve"));
    assert_eq!(realm.hidden(|view| view.conversation(&eye, &conversation_id("c"))), may_not("canObserve"));
    assert!(realm.drain(&mut live, &eye).await.iter().all(|event| event.actor != id("anna")));
    realm.ask(&bert, leave("c")).await;
}

#[tokio::test]
async fn closed_conversation_refuses_changes_until_reopened() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    realm.conversation(&anna, "c", &["bert"]).await;
    let root = realm.say(&anna, "c", "root").await.id;
    assert_eq!(realm.refused(&carl, close("c")).await, none("c"));
    let ended = realm.ask(&bert, close("c")).await;
    assert_eq!(ended.status, ConversationStatus::Completed);
    assert!(ended.closed_at.is_some());
    let closed = Refusal::ConversationClosed { conversation: conversation_id("c") };
    assert_eq!(realm.refused(&anna, close("c")).await, closed);
    assert_eq!(realm.refused(&anna, say("c", "x")).await, closed);
    assert_eq!(realm.refused(&anna, invite("c", "carl")).await, closed);
    let thread = OpenThread { conversation: conversation_id("c"), root, parent: None, subject: None };
    assert_eq!(realm.refused(&anna, thread).await, closed);
    realm.ask(&bert, leave("c")).await;
    assert_eq!(realm.refused(&bert, join("c")).await, closed);
    let reopened = realm.ask(&anna, Reopen { conversation: conversation_id("c") }).await;
    assert_eq!((reopened.status, reopened.closed_at), (ConversationStatus::Active, None));
    realm.say(&anna, "c", "on we go").await;
    let failed = Close { status: Some(ConversationStatus::Failed), ..close("c") };
    assert_eq!(realm.ask(&admin(), failed).await.status, ConversationStatus::Failed);
}

#[tokio::test]
async fn observer_is_not_a_participant() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "eye"]).await;
    realm.ask(&anna, open("c")).await;
    let root = realm.say(&anna, "c", "root").await.id;
    let eye = observer("eye");
    let not_in = Refusal::NotAParticipant { conversation: conversation_id("c") };
    assert_eq!(realm.refused(&eye, say("c", "x")).await, not_in);
    assert_eq!(realm.refused(&eye, close("c")).await, not_in);
    assert_eq!(realm.refused(&eye, leave("c")).await, not_in);
    assert_eq!(realm.refused(&eye, invite("c", "eye")).await, not_in);
    let thread = OpenThread { conversation: conversation_id("c"), root, parent: None, subject: None };
    assert_eq!(realm.refused(&eye, thread).await, not_in);
    assert_eq!(realm.see(|view| view.own_part(&eye, &conversation_id("c"))), None);
}

#[tokio::test]
async fn suspended_agent_cannot_speak() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &[]).await;
    realm.ask(&admin(), SetState::suspend(id("anna"))).await;
    let paused = Refusal::WrongState { agent: id("anna"), state: "suspended".into() };
    assert_eq!(realm.refused(&anna, say("c", "x")).await, paused);
}

#[tokio::test]
async fn conversation_list_pages_both_ways_and_respects_visibility() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    for n in 0..20 {
        let others: &[&str] = if n % 2 == 0 { &["bert"] } else { &[] };
        realm
            .ask(
                &anna,
                Create { kind: ["x", "y"][n / 10].into(), ..conversation(&format!("c{n:02}"), others) },
            )
            .await;
        if n % 4 == 0 {
            realm.ask(&anna, close(&format!("c{n:02}"))).await;
        }
    }
    let all = |caller: &Caller, query: ConversationQuery| -> Vec<String> {
        let mut query = ConversationQuery { limit: 3, ..query };
        let mut found = Vec::new();
        loop {
            let page = realm.see(|view| view.conversations(caller, &query));
            found.extend(page.items.iter().map(|c| c.id.to_string()));
            query.cursor = page.next;
            if query.cursor.is_none() {
                return found;
            }
        }
    };
    let named = |fit: fn(usize) -> bool| -> Vec<String> {
        (0..20).filter(|n| fit(*n)).map(|n| format!("c{n:02}")).collect()
    };
    let plain = ConversationQuery::default;
    assert_eq!(all(&bert, plain()), named(|n| n % 2 == 0));
    let mut backwards = named(|n| n % 2 == 0);
    backwards.reverse();
    assert_eq!(all(&bert, ConversationQuery { newest_first: true, ..plain() }), backwards);
    let active = vec![ConversationStatus::Active, ConversationStatus::Active];
    assert_eq!(all(&bert, ConversationQuery { statuses: active, ..plain() }), named(|n| n % 4 == 2));
    let kinds = vec!["y".into()];
    assert_eq!(all(&anna, ConversationQuery { kinds, ..plain() }), named(|n| n >= 10));
    let participant = Some(id("bert"));
    assert_eq!(
        all(&anna, ConversationQuery { participant: participant.clone(), ..plain() }),
        named(|n| n % 2 == 0)
    );
    let other = realm.agent("carl").await;
    assert!(all(&other, ConversationQuery { participant, ..plain() }).is_empty());
}

#[tokio::test]
async fn conversation_stats_count_turns_participants_and_threads() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &["bert"]).await;
    let root = realm.say(&anna, "c", "one").await.id;
    realm
        .ask(&bert, posthaste_engine::verbs::turns::Say { content_type: "x-plan".into(), ..say("c", "two") })
        .await;
    realm
        .ask(&bert, OpenThread { conversation: conversation_id("c"), root, parent: None, subject: None })
        .await;
    let stats = realm.see(|view| view.conversation_stats(&anna, &conversation_id("c")));
    assert_eq!((stats.turns, stats.participants, stats.threads), (2, 2, 1));
    assert_eq!(stats.by_content_type, [("text".to_owned(), 1), ("x-plan".to_owned(), 1)]);
    let parts = realm.see(|view| view.participants(&anna, &conversation_id("c"), false, None, 1));
    assert_eq!(parts.next, Some(id("anna")));
    assert!(parts.items[0].joined > 0 as Seq);
}

//! Messages within a conversation: recorded as turns if the rules allow, or adding their parties as participants.

use posthaste_engine::Refusal;
use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Audience, Body, PermissionsPatch, RecipientKind, ThreadId, TurnSource, TurnVisibility,
};
use posthaste_engine::verbs::conversations::{Close, Create, Invitee, Join, Leave, Remove, Reopen};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::turns::OpenThread;
use posthaste_engine::views::{SearchQuery, TurnQuery};

use crate::harness::{
    Realm, admin, conversation, conversation_id, id, invitee, json, member, message, names, observer, to,
};

fn within(join: JoinMode) -> ConversationRef {
    ConversationRef {
        conversation: conversation_id("c"),
        thread: None,
        reply_to: None,
        visibility: None,
        join,
    }
}

fn open_mode() -> JoinMode {
    JoinMode::Open { kind: "thread".into() }
}

fn recorded(name: &str) -> SendMessage {
    SendMessage { within: Some(within(JoinMode::IfAllowed)), ..message(name, "recorded") }
}

fn opening(names: &[&str]) -> SendMessage {
    SendMessage {
        within: Some(within(open_mode())),
        ..SendMessage::text(names.iter().map(|name| to(name)).collect(), "joined")
    }
}

fn parts(realm: &Realm, who: &str) -> Vec<String> {
    let page = realm.see(|view| view.participants(&member(who), &conversation_id("c"), false, None, 99));
    page.items.iter().map(|part| part.agent.to_string()).collect()
}

fn count(realm: &Realm, who: &str) -> i64 {
    realm.see(|view| view.count_turns(&member(who), &conversation_id("c"), &TurnQuery::default()))
}

#[tokio::test]
async fn message_to_many_recipients_is_one_turn() {
    let realm = Realm::new();
    let [anna, _, _] = realm.agents(["anna", "bert", "carl"]).await;
    realm.conversation(&anna, "c", &[]).await;
    let payload = Body::Json(json(r#"{"n":1.50}"#));
    let sent = realm
        .ask(&anna, SendMessage { to: vec![to("bert"), to("carl")], body: payload, ..recorded("bert") })
        .await;
    let page = realm.see(|view| {
        view.turns(&anna, &conversation_id("c"), &TurnQuery { limit: 9, ..TurnQuery::default() })
    });
    assert_eq!(page.items.len(), 1);
    let turn = &page.items[0];
    assert_eq!(Some(turn.id), sent.turn);
    assert_eq!(turn.source, TurnSource::Intercepted(sent.message.id));
    assert_eq!((turn.content_type.as_str(), turn.content.as_str()), ("data", r#"{"n":1.50}"#));
    assert_eq!(sent.message.conversation, Some(conversation_id("c")));
    assert_eq!(parts(&realm, "anna"), ["anna"], "recipients do not become participants");
}

#[tokio::test]
async fn message_that_cannot_be_recorded_is_still_sent() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let mute = PermissionsPatch { can_send: Some(false), ..PermissionsPatch::default() };
    let given = Create {
        participants: vec![Invitee { permissions: mute, ..invitee("bert") }],
        ..conversation("c", &[])
    };
    realm.ask(&anna, given).await;
    let none = Refusal::NoSuchConversation { conversation: conversation_id("c") };
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("c"), need: "canSend" };
    let lost = ConversationRef { thread: Some(ThreadId(Default::default())), ..within(JoinMode::IfAllowed) };
    let cases = [
        (&carl, recorded("anna"), none),
        (&bert, recorded("anna"), may_not),
        (&anna, SendMessage { within: Some(lost), ..message("anna", "recorded") }, Refusal::NoSuchThread),
    ];
    for (n, (from, given, why)) in cases.into_iter().enumerate() {
        let sent = realm.ask(from, given).await;
        assert_eq!((sent.turn, sent.unrecorded), (None, Some(why)));
        assert_eq!(
            (&sent.message.conversation, sent.message.thread),
            (&Some(conversation_id("c")), None),
            "the conversation is still named"
        );
        assert_eq!(realm.mail("anna").len(), n + 1);
    }
    realm.ask(&anna, Close { conversation: conversation_id("c"), status: None, reason: None }).await;
    let sent = realm.ask(&anna, recorded("bert")).await;
    assert_eq!(sent.unrecorded, Some(Refusal::ConversationClosed { conversation: conversation_id("c") }));
    assert_eq!(count(&realm, "anna"), 0);
}

#[tokio::test]
async fn open_mode_creates_the_conversation_and_adds_all_but_bcc() {
    let realm = Realm::new();
    let [anna, bert, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    let given = SendMessage { cc: vec![to("carl")], bcc: vec![to("dora")], ..opening(&["bert"]) };
    let sent = realm.ask(&anna, given).await;
    assert_eq!(sent.receipts.iter().filter(|r| r.copy == RecipientKind::Bcc).count(), 1);
    assert_eq!(parts(&realm, "bert"), ["anna", "bert", "carl"]);
    let own = realm.see(|view| view.own_part(&anna, &conversation_id("c"))).expect("a part");
    assert_eq!(own.role, "initiator");
    realm.ask(&bert, opening(&["anna"])).await;
    assert_eq!(
        (count(&realm, "anna"), count(&realm, "carl")),
        (2, 1),
        "the turn of a message is visible to its parties"
    );
    assert!(matches!(
        realm.hidden(|view| view.conversation(&member("dora"), &conversation_id("c"))),
        Refusal::NoSuchConversation { .. }
    ));
}

#[tokio::test]
async fn knowing_a_conversation_id_does_not_join_it() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &[]).await;
    let refused = realm.refused(&bert, opening(&["anna"])).await;
    assert_eq!(refused, Refusal::NotAParticipant { conversation: conversation_id("c") });
    assert!(realm.mail("anna").is_empty(), "a refused message is not sent at all");
}

#[tokio::test]
async fn open_mode_reopens_a_closed_conversation() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, opening(&["bert"])).await;
    realm.ask(&anna, Close { conversation: conversation_id("c"), status: None, reason: None }).await;
    realm.ask(&bert, Leave { conversation: conversation_id("c"), reason: None }).await;
    realm.ask(&bert, opening(&["anna"])).await;
    assert_eq!(parts(&realm, "bert"), ["anna", "bert"], "a participant that left returns with its message");
}

#[tokio::test]
async fn open_mode_respects_permissions() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let mute = PermissionsPatch { can_send: Some(false), ..PermissionsPatch::default() };
    let given = Create {
        participants: vec![Invitee { permissions: mute, ..invitee("bert") }],
        ..conversation("c", &[])
    };
    realm.ask(&anna, given).await;
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("c"), need: "canSend" };
    assert_eq!(realm.refused(&bert, opening(&["anna"])).await, may_not);
    realm.ask(&bert, Leave { conversation: conversation_id("c"), reason: None }).await;
    assert_eq!(realm.refused(&bert, opening(&["anna"])).await, may_not, "also after leaving");
    realm.ask(&bert, Join { conversation: conversation_id("c"), role: None }).await;
    realm.ask(&anna, Remove { conversation: conversation_id("c"), agent: id("bert"), reason: None }).await;
    let out = Refusal::NotAParticipant { conversation: conversation_id("c") };
    assert_eq!(realm.refused(&bert, opening(&["anna"])).await, out);
    let sent = realm.ask(&anna, opening(&["bert"])).await;
    assert_eq!(
        names(sent.receipts.iter().map(|r| &r.agent)),
        ["bert"],
        "a removed participant still gets messages"
    );
    assert_eq!(parts(&realm, "anna"), ["anna"], "but does not rejoin");
}

#[tokio::test]
async fn open_mode_keeps_thread_and_visibility() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl"]).await;
    let first = realm.ask(&anna, opening(&["bert", "carl"])).await.turn.expect("a turn");
    let open = OpenThread { conversation: conversation_id("c"), root: first, parent: None, subject: None };
    let thread = realm.ask(&anna, open).await.id;
    let place = ConversationRef {
        thread: Some(thread),
        reply_to: Some(first),
        visibility: Some(TurnVisibility::Agents(vec![id("bert")])),
        ..within(open_mode())
    };
    let sent = realm.ask(&anna, SendMessage { within: Some(place), ..message("bert", "for bert") }).await;
    let turn = realm.see(|view| view.turn(&anna, &conversation_id("c"), sent.turn.expect("a turn")));
    assert_eq!((turn.thread, turn.in_reply_to), (Some(thread), Some(first)));
    assert_eq!(sent.message.thread, Some(thread));
    assert_eq!((count(&realm, "bert"), count(&realm, "carl")), (2, 1));
    let lost = ConversationRef { thread: Some(ThreadId(Default::default())), ..within(open_mode()) };
    let refused = realm.refused(&anna, SendMessage { within: Some(lost), ..message("bert", "x") }).await;
    assert_eq!(refused, Refusal::NoSuchThread);
    assert_eq!(realm.mail("bert").len(), 2);
}

#[tokio::test]
async fn message_to_oneself_enters_its_sender_once() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, opening(&["anna", "bert"])).await;
    let opened = realm.see(|view| view.conversation(&anna, &conversation_id("c")));
    assert_eq!(opened.participant_count, 2);
    let joined = realm.replayed(&anna).into_iter().filter(|word| *word == "participant.joined").count();
    assert_eq!(joined, 2);
}

#[tokio::test]
async fn unrecorded_message_leaves_no_conversation_behind() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl"]).await;
    realm.rules(Rules { participants: 2, ..Rules::default() }).await;
    let join = JoinMode::PartiesOnly { kind: "thread".into() };
    let both = SendMessage { to: vec![to("bert"), to("carl")], ..under(join, "bert", "for both") };
    let sent = realm.ask(&anna, both).await;
    assert!(matches!(sent.unrecorded, Some(Refusal::TooManyParticipants { .. })), "{:?}", sent.unrecorded);
    assert_eq!((sent.turn, sent.receipts.len()), (None, 2));
    let refusal = realm.hidden(|view| view.conversation(&admin(), &conversation_id("c")));
    assert!(matches!(refusal, Refusal::NoSuchConversation { .. }), "{refusal}");
}

#[tokio::test]
async fn recorded_message_is_found_by_readers_of_the_conversation() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.conversation(&anna, "c", &["carl"]).await;
    let sent = realm.ask(&anna, recorded("bert")).await;
    let find = |who: &str| {
        let query = SearchQuery { text: "recorded".into(), limit: 9, ..SearchQuery::default() };
        realm.see(|view| view.search(&member(who), &query)).hits
    };
    assert_eq!(find("bert")[0].message.as_ref().map(|m| m.id), Some(sent.message.id));
    let hits = find("carl");
    assert_eq!((hits.len(), hits[0].turn.as_ref().map(|t| t.id)), (1, sent.turn));
    assert!(hits[0].message.is_none(), "the message was not for carl");
    assert!(find("dora").is_empty());
}

fn name_only() -> JoinMode {
    JoinMode::NameOnly { kind: "thread".into() }
}

fn under(join: JoinMode, to: &str, text: &str) -> SendMessage {
    SendMessage { within: Some(within(join)), ..message(to, text) }
}

/// The turn authors, search hits and turn events of "c" that an agent can see.
fn visible_in_c(realm: &Realm, who: &str) -> (Vec<String>, usize, usize) {
    let query = TurnQuery { limit: 99, ..TurnQuery::default() };
    let turns = realm.engine.read_blocking(|view| view.turns(&member(who), &conversation_id("c"), &query));
    let turns = turns.map(|page| page.items).unwrap_or_default();
    let query = SearchQuery { text: "secret".into(), limit: 99, ..SearchQuery::default() };
    let hits = realm.see(|view| view.search(&member(who), &query)).hits.len();
    let events = realm.replayed(&member(who)).iter().filter(|word| **word == "turn.added").count();
    (turns.iter().map(|turn| turn.author.to_string()).collect(), hits, events)
}

#[tokio::test]
async fn adding_participants_does_not_let_the_creator_read_their_messages() {
    for join in
        [name_only(), open_mode(), JoinMode::PartiesOnly { kind: "thread".into() }, JoinMode::IfAllowed]
    {
        let realm = Realm::new();
        let [mallory, anna, bert, _] = realm.agents(["mallory", "anna", "bert", "dora"]).await;
        realm.conversation(&mallory, "c", &["anna", "bert"]).await;
        realm.ask(&anna, under(join.clone(), "bert", "a secret")).await;
        realm.ask(&bert, under(join.clone(), "anna", "a secret answer")).await;
        assert_eq!(visible_in_c(&realm, "mallory"), (vec![], 0, 0), "{join:?}");
        assert_eq!(visible_in_c(&realm, "anna"), (vec!["anna".into(), "bert".into()], 2, 2), "{join:?}");
    }
}

#[tokio::test]
async fn name_only_mode_does_not_reveal_other_messages_to_the_creator() {
    let realm = Realm::new();
    let [mallory, anna, bert, _] = realm.agents(["mallory", "anna", "bert", "dora"]).await;
    // Mallory's own message makes the two participants as well.
    realm.ask(&mallory, SendMessage { cc: vec![to("bert")], ..under(name_only(), "anna", "hello") }).await;
    let sent = realm.ask(&anna, under(name_only(), "dora", "a secret")).await;
    assert_eq!(sent.message.conversation, Some(conversation_id("c")));
    realm.ask(&bert, under(name_only(), "anna", "a secret")).await;
    assert_eq!(parts(&realm, "mallory"), ["anna", "bert", "mallory"], "dora was not added");
    assert_eq!(visible_in_c(&realm, "mallory"), (vec!["mallory".into()], 0, 1));
}

#[tokio::test]
async fn used_conversation_id_still_works_as_a_name_for_others() {
    let realm = Realm::new();
    let [mallory, anna, bert] = realm.agents(["mallory", "anna", "bert"]).await;
    realm.conversation(&mallory, "c", &[]).await;
    let sent = realm.ask(&anna, under(name_only(), "bert", "a secret")).await;
    assert_eq!((sent.message.conversation.clone(), sent.turn), (Some(conversation_id("c")), None));
    let answer =
        SendMessage { in_reply_to: Some(sent.message.id), ..under(name_only(), "anna", "a secret answer") };
    realm.ask(&bert, answer).await;
    let seen = |who: &str| {
        realm.see(|view| view.correspondence(&member(who), &conversation_id("c"), 0, 9)).items.len()
    };
    assert_eq!((seen("anna"), seen("bert"), seen("mallory")), (2, 2, 0));
    assert_eq!(parts(&realm, "mallory"), ["mallory"]);
    assert_eq!(realm.see(|view| view.conversation(&mallory, &conversation_id("c"))).turn_count, 0);
}

#[tokio::test]
async fn added_participant_is_recorded_for_all_after_joining_or_speaking() {
    let realm = Realm::new();
    let [anna, bert, carl, _] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.conversation(&anna, "c", &["bert", "carl"]).await;
    realm.ask(&bert, recorded("dora")).await;
    assert_eq!((count(&realm, "anna"), count(&realm, "bert")), (0, 1), "only added");
    realm.say(&bert, "c", "here I am").await;
    realm.ask(&bert, recorded("dora")).await;
    assert_eq!(count(&realm, "anna"), 2, "it has spoken");
    let join = Join { conversation: conversation_id("c"), role: None };
    realm.ask(&carl, join.clone()).await;
    assert_eq!(realm.refused(&carl, join).await, Refusal::AlreadyJoined { agent: id("carl") });
    realm.ask(&carl, recorded("dora")).await;
    assert_eq!(count(&realm, "anna"), 3, "it has joined");
    let joined = realm.replayed(&anna).into_iter().filter(|word| *word == "participant.joined").count();
    assert_eq!(joined, 3, "confirming emits no second join event");
}

#[tokio::test]
async fn participant_that_joined_as_observer_may_only_speak() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "eye"]).await;
    let open = Create { audience: Audience::Observers, ..conversation("c", &["bert"]) };
    realm.ask(&anna, open).await;
    let eye = observer("eye");
    realm.ask(&eye, Join { conversation: conversation_id("c"), role: Some("moderator".into()) }).await;
    realm.say(&eye, "c", "a word").await;
    let close = Close { conversation: conversation_id("c"), status: None, reason: None };
    let guest =
        Refusal::ParticipantMayNot { conversation: conversation_id("c"), need: "to have been invited" };
    assert_eq!(realm.refused(&eye, close.clone()).await, guest);
    realm.ask(&bert, close).await;
    assert_eq!(realm.refused(&eye, Reopen { conversation: conversation_id("c") }).await, guest);
    let sent = realm.ask(&eye, under(name_only(), "anna", "open up")).await;
    assert_eq!(sent.unrecorded, Some(guest.clone()), "also not by a message");
    realm.ask(&eye, Leave { conversation: conversation_id("c"), reason: None }).await;
    realm.ask(&anna, Reopen { conversation: conversation_id("c") }).await;
    realm.ask(&eye, Join { conversation: conversation_id("c"), role: None }).await;
    let close = Close { conversation: conversation_id("c"), status: None, reason: None };
    assert_eq!(realm.refused(&eye, close).await, guest, "rejoining gives no additional permissions");
}

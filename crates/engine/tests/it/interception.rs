//! Letters that are part of a conversation: recorded if the rules allow, or gathering those they concern.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{
    Audience, Body, PermissionsPatch, RecipientKind, ThreadId, TurnSource, TurnVisibility,
};
use posthaste_engine::verbs::conversations::{Close, Create, Invitee, Join, Leave, Remove, Reopen};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::turns::OpenThread;
use posthaste_engine::views::{SearchQuery, TurnQuery};

use crate::harness::{
    Realm, conversation, conversation_id, id, invitee, json, member, message, names, observer, to,
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

fn gather() -> JoinMode {
    JoinMode::Open { kind: "thread".into() }
}

fn noted(name: &str) -> SendMessage {
    SendMessage { within: Some(within(JoinMode::IfAllowed)), ..message(name, "noted") }
}

fn gathering(names: &[&str]) -> SendMessage {
    SendMessage {
        within: Some(within(gather())),
        ..SendMessage::text(names.iter().map(|name| to(name)).collect(), "gathered")
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
async fn one_letter_to_many_is_one_turn() {
    let realm = Realm::new();
    let [anna, _, _] = realm.agents(["anna", "bert", "carl"]).await;
    realm.conversation(&anna, "c", &[]).await;
    let payload = Body::Json(json(r#"{"n":1.50}"#));
    let sent = realm
        .ask(&anna, SendMessage { to: vec![to("bert"), to("carl")], body: payload, ..noted("bert") })
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
    assert_eq!(parts(&realm, "anna"), ["anna"], "recipients are not drawn in");
}

#[tokio::test]
async fn a_letter_that_cannot_be_recorded_goes_out_all_the_same() {
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
        (&carl, noted("anna"), none),
        (&bert, noted("anna"), may_not),
        (&anna, SendMessage { within: Some(lost), ..message("anna", "noted") }, Refusal::NoSuchThread),
    ];
    for (n, (from, letter, why)) in cases.into_iter().enumerate() {
        let sent = realm.ask(from, letter).await;
        assert_eq!((sent.turn, sent.unrecorded), (None, Some(why)));
        assert_eq!(
            (&sent.message.conversation, sent.message.thread),
            (&Some(conversation_id("c")), None),
            "but named"
        );
        assert_eq!(realm.mail("anna").len(), n + 1);
    }
    realm.ask(&anna, Close { conversation: conversation_id("c"), status: None, reason: None }).await;
    let sent = realm.ask(&anna, noted("bert")).await;
    assert_eq!(sent.unrecorded, Some(Refusal::ConversationClosed { conversation: conversation_id("c") }));
    assert_eq!(count(&realm, "anna"), 0);
}

#[tokio::test]
async fn a_gathering_letter_opens_the_conversation_and_brings_all_but_blind_copies() {
    let realm = Realm::new();
    let [anna, bert, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    let given = SendMessage { cc: vec![to("carl")], bcc: vec![to("dora")], ..gathering(&["bert"]) };
    let sent = realm.ask(&anna, given).await;
    assert_eq!(sent.receipts.iter().filter(|r| r.copy == RecipientKind::Bcc).count(), 1);
    assert_eq!(parts(&realm, "bert"), ["anna", "bert", "carl"]);
    let own = realm.see(|view| view.own_part(&anna, &conversation_id("c"))).expect("a part");
    assert_eq!(own.role, "initiator");
    realm.ask(&bert, gathering(&["anna"])).await;
    assert_eq!((count(&realm, "anna"), count(&realm, "carl")), (2, 1), "a letter's turn is for its parties");
    assert!(matches!(
        realm.hidden(|view| view.conversation(&member("dora"), &conversation_id("c"))),
        Refusal::NoSuchConversation { .. }
    ));
}

#[tokio::test]
async fn nobody_enters_a_conversation_by_knowing_its_name() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &[]).await;
    let refused = realm.refused(&bert, gathering(&["anna"])).await;
    assert_eq!(refused, Refusal::NotAParticipant { conversation: conversation_id("c") });
    assert!(realm.mail("anna").is_empty(), "a gathering letter goes out whole or not at all");
}

#[tokio::test]
async fn gathering_opens_a_closed_conversation_again() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, gathering(&["bert"])).await;
    realm.ask(&anna, Close { conversation: conversation_id("c"), status: None, reason: None }).await;
    realm.ask(&bert, Leave { conversation: conversation_id("c"), reason: None }).await;
    realm.ask(&bert, gathering(&["anna"])).await;
    assert_eq!(parts(&realm, "bert"), ["anna", "bert"], "who left comes back with its letter");
}

#[tokio::test]
async fn gathering_goes_round_no_permission() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let mute = PermissionsPatch { can_send: Some(false), ..PermissionsPatch::default() };
    let given = Create {
        participants: vec![Invitee { permissions: mute, ..invitee("bert") }],
        ..conversation("c", &[])
    };
    realm.ask(&anna, given).await;
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("c"), need: "canSend" };
    assert_eq!(realm.refused(&bert, gathering(&["anna"])).await, may_not);
    realm.ask(&bert, Leave { conversation: conversation_id("c"), reason: None }).await;
    assert_eq!(realm.refused(&bert, gathering(&["anna"])).await, may_not, "nor by leaving first");
    realm.ask(&bert, Join { conversation: conversation_id("c"), role: None }).await;
    realm.ask(&anna, Remove { conversation: conversation_id("c"), agent: id("bert"), reason: None }).await;
    let out = Refusal::NotAParticipant { conversation: conversation_id("c") };
    assert_eq!(realm.refused(&bert, gathering(&["anna"])).await, out);
    let sent = realm.ask(&anna, gathering(&["bert"])).await;
    assert_eq!(names(sent.receipts.iter().map(|r| &r.agent)), ["bert"], "who was put out gets its letters");
    assert_eq!(parts(&realm, "anna"), ["anna"], "but is not back in");
}

#[tokio::test]
async fn a_gathering_letter_keeps_to_its_thread_and_its_readers() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl"]).await;
    let first = realm.ask(&anna, gathering(&["bert", "carl"])).await.turn.expect("a turn");
    let open = OpenThread { conversation: conversation_id("c"), root: first, parent: None, subject: None };
    let thread = realm.ask(&anna, open).await.id;
    let place = ConversationRef {
        thread: Some(thread),
        reply_to: Some(first),
        visibility: Some(TurnVisibility::Agents(vec![id("bert")])),
        ..within(gather())
    };
    let sent = realm.ask(&anna, SendMessage { within: Some(place), ..message("bert", "for bert") }).await;
    let turn = realm.see(|view| view.turn(&anna, &conversation_id("c"), sent.turn.expect("a turn")));
    assert_eq!((turn.thread, turn.in_reply_to), (Some(thread), Some(first)));
    assert_eq!(sent.message.thread, Some(thread));
    assert_eq!((count(&realm, "bert"), count(&realm, "carl")), (2, 1));
    let lost = ConversationRef { thread: Some(ThreadId(Default::default())), ..within(gather()) };
    let refused = realm.refused(&anna, SendMessage { within: Some(lost), ..message("bert", "x") }).await;
    assert_eq!(refused, Refusal::NoSuchThread);
    assert_eq!(realm.mail("bert").len(), 2);
}

#[tokio::test]
async fn a_recorded_letter_is_found_by_those_who_read_the_conversation() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.conversation(&anna, "c", &["carl"]).await;
    let sent = realm.ask(&anna, noted("bert")).await;
    let find = |who: &str| {
        let query = SearchQuery { text: "noted".into(), limit: 9, ..SearchQuery::default() };
        realm.see(|view| view.search(&member(who), &query)).hits
    };
    assert_eq!(find("bert")[0].message.as_ref().map(|m| m.id), Some(sent.message.id));
    let hits = find("carl");
    assert_eq!((hits.len(), hits[0].turn.as_ref().map(|t| t.id)), (1, sent.turn));
    assert!(hits[0].message.is_none(), "the letter was not for carl");
    assert!(find("dora").is_empty());
}

fn label() -> JoinMode {
    JoinMode::NameOnly { kind: "thread".into() }
}

fn under(join: JoinMode, to: &str, text: &str) -> SendMessage {
    SendMessage { within: Some(within(join)), ..message(to, text) }
}

/// What an agent can find out about what was said under the name "c".
fn found_out(realm: &Realm, who: &str) -> (Vec<String>, usize, usize) {
    let query = TurnQuery { limit: 99, ..TurnQuery::default() };
    let turns = realm.engine.read_blocking(|view| view.turns(&member(who), &conversation_id("c"), &query));
    let turns = turns.map(|page| page.items).unwrap_or_default();
    let query = SearchQuery { text: "secret".into(), limit: 99, ..SearchQuery::default() };
    let hits = realm.see(|view| view.search(&member(who), &query)).hits.len();
    let events = realm.replayed(&member(who)).iter().filter(|word| **word == "turn.added").count();
    (turns.iter().map(|turn| turn.author.to_string()).collect(), hits, events)
}

#[tokio::test]
async fn naming_others_as_participants_does_not_let_the_opener_read_their_letters() {
    for join in [label(), gather(), JoinMode::PartiesOnly { kind: "thread".into() }, JoinMode::IfAllowed] {
        let realm = Realm::new();
        let [mallory, anna, bert, _] = realm.agents(["mallory", "anna", "bert", "dora"]).await;
        realm.conversation(&mallory, "c", &["anna", "bert"]).await;
        realm.ask(&anna, under(join.clone(), "bert", "a secret")).await;
        realm.ask(&bert, under(join.clone(), "anna", "a secret answer")).await;
        assert_eq!(found_out(&realm, "mallory"), (vec![], 0, 0), "{join:?}");
        assert_eq!(found_out(&realm, "anna"), (vec!["anna".into(), "bert".into()], 2, 2), "{join:?}");
    }
}

#[tokio::test]
async fn a_label_does_not_show_its_opener_who_writes_to_whom() {
    let realm = Realm::new();
    let [mallory, anna, bert, _] = realm.agents(["mallory", "anna", "bert", "dora"]).await;
    // Mallory's own letter makes the two participants as well.
    realm.ask(&mallory, SendMessage { cc: vec![to("bert")], ..under(label(), "anna", "hello") }).await;
    let sent = realm.ask(&anna, under(label(), "dora", "a secret")).await;
    assert_eq!(sent.message.conversation, Some(conversation_id("c")));
    realm.ask(&bert, under(label(), "anna", "a secret")).await;
    assert_eq!(parts(&realm, "mallory"), ["anna", "bert", "mallory"], "dora was not brought in");
    assert_eq!(found_out(&realm, "mallory"), (vec!["mallory".into()], 0, 1));
}

#[tokio::test]
async fn a_name_that_was_taken_is_still_a_label_for_others() {
    let realm = Realm::new();
    let [mallory, anna, bert] = realm.agents(["mallory", "anna", "bert"]).await;
    realm.conversation(&mallory, "c", &[]).await;
    let sent = realm.ask(&anna, under(label(), "bert", "a secret")).await;
    assert_eq!((sent.message.conversation.clone(), sent.turn), (Some(conversation_id("c")), None));
    let answer =
        SendMessage { in_reply_to: Some(sent.message.id), ..under(label(), "anna", "a secret answer") };
    realm.ask(&bert, answer).await;
    let seen = |who: &str| {
        realm.see(|view| view.correspondence(&member(who), &conversation_id("c"), 0, 9)).items.len()
    };
    assert_eq!((seen("anna"), seen("bert"), seen("mallory")), (2, 2, 0));
    assert_eq!(parts(&realm, "mallory"), ["mallory"]);
    assert_eq!(realm.see(|view| view.conversation(&mallory, &conversation_id("c"))).turn_count, 0);
}

#[tokio::test]
async fn one_that_was_added_is_read_by_all_once_it_has_joined_or_spoken() {
    let realm = Realm::new();
    let [anna, bert, carl, _] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.conversation(&anna, "c", &["bert", "carl"]).await;
    realm.ask(&bert, noted("dora")).await;
    assert_eq!((count(&realm, "anna"), count(&realm, "bert")), (0, 1), "added, no more");
    realm.say(&bert, "c", "here I am").await;
    realm.ask(&bert, noted("dora")).await;
    assert_eq!(count(&realm, "anna"), 2, "it has spoken");
    let join = Join { conversation: conversation_id("c"), role: None };
    realm.ask(&carl, join.clone()).await;
    assert_eq!(realm.refused(&carl, join).await, Refusal::AlreadyJoined { agent: id("carl") });
    realm.ask(&carl, noted("dora")).await;
    assert_eq!(count(&realm, "anna"), 3, "it has joined");
    let joined = realm.replayed(&anna).into_iter().filter(|word| *word == "participant.joined").count();
    assert_eq!(joined, 3, "agreeing is no second coming");
}

#[tokio::test]
async fn one_that_joined_to_observe_speaks_and_changes_nothing_else() {
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
    let sent = realm.ask(&eye, under(label(), "anna", "open up")).await;
    assert_eq!(sent.unrecorded, Some(guest.clone()), "nor by a letter");
    realm.ask(&eye, Leave { conversation: conversation_id("c"), reason: None }).await;
    realm.ask(&anna, Reopen { conversation: conversation_id("c") }).await;
    realm.ask(&eye, Join { conversation: conversation_id("c"), role: None }).await;
    let close = Close { conversation: conversation_id("c"), status: None, reason: None };
    assert_eq!(realm.refused(&eye, close).await, guest, "coming back widens nothing");
}

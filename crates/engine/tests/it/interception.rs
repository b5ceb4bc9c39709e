//! Letters that are part of a conversation: recorded if the rules allow, or gathering those they concern.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Body, Copy, PermissionsPatch, ThreadId, TurnSource, TurnVisibility};
use posthaste_engine::verbs::conversations::{Close, Create, Invitee, Join, Leave, Remove};
use posthaste_engine::verbs::mail::{Entry, Send, Within};
use posthaste_engine::verbs::turns::OpenThread;
use posthaste_engine::views::{SearchQuery, TurnQuery};

use crate::harness::{Realm, conversation, id, invitee, json, letter, member, names, talk, to};

fn within(entry: Entry) -> Within {
    Within { conversation: talk("c"), thread: None, reply_to: None, visibility: None, entry }
}

fn gather() -> Entry {
    Entry::Gather { kind: "thread".into() }
}

fn noted(name: &str) -> Send {
    Send { within: Some(within(Entry::IfAllowed)), ..letter(name, "noted") }
}

fn gathering(names: &[&str]) -> Send {
    Send {
        within: Some(within(gather())),
        ..Send::text(names.iter().map(|name| to(name)).collect(), "gathered")
    }
}

fn parts(realm: &Realm, who: &str) -> Vec<String> {
    let page = realm.see(|view| view.participants(&member(who), &talk("c"), false, None, 99));
    page.items.iter().map(|part| part.agent.to_string()).collect()
}

fn count(realm: &Realm, who: &str) -> i64 {
    realm.see(|view| view.count_turns(&member(who), &talk("c"), &TurnQuery::default()))
}

#[tokio::test]
async fn one_letter_to_many_is_one_turn() {
    let realm = Realm::new();
    let [anna, _, _] = realm.agents(["anna", "bert", "carl"]).await;
    realm.talk(&anna, "c", &[]).await;
    let payload = Body::Json(json(r#"{"n":1.50}"#));
    let sent =
        realm.ask(&anna, Send { to: vec![to("bert"), to("carl")], body: payload, ..noted("bert") }).await;
    let page =
        realm.see(|view| view.turns(&anna, &talk("c"), &TurnQuery { limit: 9, ..TurnQuery::default() }));
    assert_eq!(page.items.len(), 1);
    let turn = &page.items[0];
    assert_eq!(Some(turn.id), sent.turn);
    assert_eq!(turn.source, TurnSource::Intercepted(sent.message.id));
    assert_eq!((turn.content_type.as_str(), turn.content.as_str()), ("data", r#"{"n":1.50}"#));
    assert_eq!(sent.message.conversation, Some(talk("c")));
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
    let none = Refusal::NoSuchConversation { conversation: talk("c") };
    let may_not = Refusal::ParticipantMayNot { conversation: talk("c"), need: "canSend" };
    let lost = Within { thread: Some(ThreadId(Default::default())), ..within(Entry::IfAllowed) };
    let cases = [
        (&carl, noted("anna"), none),
        (&bert, noted("anna"), may_not),
        (&anna, Send { within: Some(lost), ..letter("anna", "noted") }, Refusal::NoSuchThread),
    ];
    for (n, (from, letter, why)) in cases.into_iter().enumerate() {
        let sent = realm.ask(from, letter).await;
        assert_eq!((sent.turn, sent.unrecorded), (None, Some(why)));
        assert_eq!((&sent.message.conversation, sent.message.thread), (&Some(talk("c")), None), "but named");
        assert_eq!(realm.mail("anna").len(), n + 1);
    }
    realm.ask(&anna, Close { conversation: talk("c"), status: None, reason: None }).await;
    let sent = realm.ask(&anna, noted("bert")).await;
    assert_eq!(sent.unrecorded, Some(Refusal::ConversationClosed { conversation: talk("c") }));
    assert_eq!(count(&realm, "anna"), 0);
}

#[tokio::test]
async fn a_gathering_letter_opens_the_conversation_and_brings_all_but_blind_copies() {
    let realm = Realm::new();
    let [anna, bert, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    let given = Send { cc: vec![to("carl")], bcc: vec![to("dora")], ..gathering(&["bert"]) };
    let sent = realm.ask(&anna, given).await;
    assert_eq!(sent.receipts.iter().filter(|r| r.copy == Copy::Bcc).count(), 1);
    assert_eq!(parts(&realm, "bert"), ["anna", "bert", "carl"]);
    let own = realm.see(|view| view.own_part(&anna, &talk("c"))).expect("a part");
    assert_eq!(own.role, "initiator");
    realm.ask(&bert, gathering(&["anna"])).await;
    assert_eq!(count(&realm, "carl"), 2);
    assert!(matches!(
        realm.hidden(|view| view.conversation(&member("dora"), &talk("c"))),
        Refusal::NoSuchConversation { .. }
    ));
}

#[tokio::test]
async fn nobody_enters_a_conversation_by_knowing_its_name() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.talk(&anna, "c", &[]).await;
    let refused = realm.refused(&bert, gathering(&["anna"])).await;
    assert_eq!(refused, Refusal::NotAParticipant { conversation: talk("c") });
    assert!(realm.mail("anna").is_empty(), "a gathering letter goes out whole or not at all");
}

#[tokio::test]
async fn gathering_opens_a_closed_conversation_again() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, gathering(&["bert"])).await;
    realm.ask(&anna, Close { conversation: talk("c"), status: None, reason: None }).await;
    realm.ask(&bert, Leave { conversation: talk("c"), reason: None }).await;
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
    let may_not = Refusal::ParticipantMayNot { conversation: talk("c"), need: "canSend" };
    assert_eq!(realm.refused(&bert, gathering(&["anna"])).await, may_not);
    realm.ask(&bert, Leave { conversation: talk("c"), reason: None }).await;
    assert_eq!(realm.refused(&bert, gathering(&["anna"])).await, may_not, "nor by leaving first");
    realm.ask(&bert, Join { conversation: talk("c"), role: None }).await;
    realm.ask(&anna, Remove { conversation: talk("c"), agent: id("bert"), reason: None }).await;
    let out = Refusal::NotAParticipant { conversation: talk("c") };
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
    let open = OpenThread { conversation: talk("c"), root: first, parent: None, subject: None };
    let thread = realm.ask(&anna, open).await.id;
    let place = Within {
        thread: Some(thread),
        reply_to: Some(first),
        visibility: Some(TurnVisibility::Agents(vec![id("bert")])),
        ..within(gather())
    };
    let sent = realm.ask(&anna, Send { within: Some(place), ..letter("bert", "for bert") }).await;
    let turn = realm.see(|view| view.turn(&anna, &talk("c"), sent.turn.expect("a turn")));
    assert_eq!((turn.thread, turn.in_reply_to), (Some(thread), Some(first)));
    assert_eq!(sent.message.thread, Some(thread));
    assert_eq!((count(&realm, "bert"), count(&realm, "carl")), (2, 1));
    let lost = Within { thread: Some(ThreadId(Default::default())), ..within(gather()) };
    let refused = realm.refused(&anna, Send { within: Some(lost), ..letter("bert", "x") }).await;
    assert_eq!(refused, Refusal::NoSuchThread);
    assert_eq!(realm.mail("bert").len(), 2);
}

#[tokio::test]
async fn a_recorded_letter_is_found_by_those_who_read_the_conversation() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.talk(&anna, "c", &["carl"]).await;
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

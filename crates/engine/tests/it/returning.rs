//! Agents that register again, and names that are known before their agent registers.

use posthaste_engine::nouns::{Address, AgentKind, Caller, ContactPolicy, PeerKind, TokenRole};
use posthaste_engine::verbs::agents::{Bearer, Existing, Register, Unregister};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::peers::PutPeer;
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};
use posthaste_engine::{Filter, Refusal, Start, Step};

use crate::harness::{self, Realm, admin, id, member, message, named};

fn token(name: &str, number: u8, role: TokenRole) -> CreateToken {
    let hash = vec![number; 32];
    CreateToken { hash, role, name: name.to_owned(), door: None, observe: false, expires_at: None }
}

fn bearer(token: &str) -> Bearer {
    Bearer { name: id(token), admin: false }
}

/// The registration of a name by a token bearer whose connection owns the agent.
fn by(token: &str, name: &str, connection: &str) -> Register {
    Register { owner: Some(id(connection)), bearer: Some(bearer(token)), ..named(name) }
}

fn gone(name: &str) -> Unregister {
    Unregister { agent: id(name), reason: None, cause: None }
}

// F3
#[tokio::test]
async fn token_that_registered_an_agent_gets_its_messages_on_return() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    realm.ask(&member("p1"), by("fleet", "worker", "p1")).await;
    realm.send(&ann, "worker", "while it was there").await;
    realm.ask(&Caller::office(), gone("worker")).await;
    // No token has this name, so it is unknown after unregistration.
    assert!(matches!(realm.refused(&ann, message("worker", "away")).await, Refusal::NoSuchAgent { .. }));
    let again = realm.ask(&member("p2"), by("fleet", "worker", "p2")).await;
    assert!(!again.resumed);
    assert_eq!(realm.mail("worker"), ["while it was there"]);
    // Another token that takes the name starts with an empty mailbox.
    realm.ask(&Caller::office(), gone("worker")).await;
    realm.ask(&member("p3"), by("others", "worker", "p3")).await;
    assert_eq!(realm.mail("worker"), Vec::<String>::new());
    // The first token cannot get it back.
    realm.ask(&Caller::office(), gone("worker")).await;
    realm.ask(&member("p4"), by("fleet", "worker", "p4")).await;
    assert_eq!(realm.mail("worker"), Vec::<String>::new());
}

// F3
#[tokio::test]
async fn display_name_resolves_to_the_agent_of_the_same_token() {
    let realm = Realm::new();
    let called = |token: &str, name: &str| {
        let (bearer, name) = (Some(bearer(token)), Some(name.to_owned()));
        Register { bearer, name, ..Register::default() }
    };
    let made = realm.ask(&member("p1"), called("fleet", "Green Harbor")).await.agent.id;
    assert_eq!(made.as_str(), "green-harbor");
    let found = |token: &str, name: &str| {
        let (bearer, name) = (bearer(token), name.to_owned());
        realm.see(|view| view.returning(&Caller::office(), &bearer, &name)).map(|agent| agent.id)
    };
    assert_eq!(found("fleet", "Green Harbor"), Some(made.clone()));
    assert_eq!(found("others", "Green Harbor"), None);
    assert_eq!(found("fleet", "Harbor"), None);
    realm.ask(&Caller::office(), gone("green-harbor")).await;
    assert_eq!(found("fleet", "Green Harbor"), Some(made), "also after unregistration");
    // An administrator's client returns to names it registered, and not to names of tokens.
    let operator = Bearer { name: id("admin"), admin: true };
    let entry = Register { bearer: Some(operator.clone()), ..named("helper") };
    realm.ask(&admin(), entry).await;
    let by_admin = |name: &str| {
        let (operator, name) = (operator.clone(), name.to_owned());
        realm.see(|view| view.returning(&Caller::office(), &operator, &name)).map(|agent| agent.id)
    };
    assert_eq!((by_admin("helper"), by_admin("Green Harbor")), (Some(id("helper")), None));
    realm.ask(&admin(), token("helper", 2, TokenRole::Agent)).await;
    assert_eq!(by_admin("helper"), None);
    // The name of a token is the name of its agent, however it is spelled.
    realm.ask(&admin(), token("Zo\u{eb}", 1, TokenRole::Agent)).await;
    realm
        .ask(&member("ann"), Register { existing: Existing::TakeOver, ..by("Zo\u{eb}", "Zo\u{eb}", "p") })
        .await;
    assert_eq!(found("Zo\u{eb}", "Zo\u{eb}"), Some(id("Zo\u{eb}")));
}

// F3, F9
#[tokio::test]
async fn messages_wait_for_the_bearer_of_a_token() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let carl = realm.ask(&admin(), token("carl", 1, TokenRole::Agent)).await;
    realm.ask(&admin(), token("uma", 2, TokenRole::User)).await;
    let agents = || {
        let query = posthaste_engine::views::AgentQuery { limit: 99, ..Default::default() };
        let page = realm.see(|view| view.agents(&admin(), &query));
        page.items.into_iter().map(|agent| (agent.id.to_string(), agent.kind)).collect::<Vec<_>>()
    };
    assert_eq!(agents().len(), 1, "a token alone registers no agent");
    realm.send(&ann, "carl", "before it came").await;
    realm.send(&ann, "uma", "hello").await;
    let kinds = [("ann", AgentKind::Agent), ("carl", AgentKind::Agent), ("uma", AgentKind::User)];
    assert_eq!(agents(), kinds.map(|(name, kind)| (name.to_owned(), kind)));
    let register = |connection| Register {
        existing: Existing::TakeOver,
        role: Some("reviewer".to_owned()),
        ..by("carl", "carl", connection)
    };
    let entered = realm.ask(&member("carl"), register("p1")).await;
    assert!(entered.resumed);
    assert_eq!(entered.agent.via, "test", "the door of its registration");
    // Also while it is unregistered; but a role address does not include it then.
    realm.ask(&member("carl"), gone("carl")).await;
    realm.send(&ann, "carl", "while it was away").await;
    let reviewers =
        SendMessage::text(vec![Address::Role { role: "reviewer".to_owned(), within: None }], "all of you");
    assert!(matches!(realm.refused(&ann, reviewers).await, Refusal::NoRecipients));
    realm.ask(&member("carl"), register("p2")).await;
    assert_eq!(realm.mail("carl"), ["before it came", "while it was away"]);
    // The claim ends with the token.
    realm.ask(&member("carl"), gone("carl")).await;
    realm.ask(&admin(), RevokeToken { id: carl.id }).await;
    assert!(matches!(realm.refused(&ann, message("carl", "too late")).await, Refusal::NoSuchAgent { .. }));
}

#[tokio::test]
async fn bearer_does_not_get_messages_of_an_agent_of_another_token() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    realm.ask(&member("p1"), by("mallory", "carl", "p1")).await;
    realm.send(&ann, "carl", "for mallory's carl").await;
    realm.ask(&Caller::office(), gone("carl")).await;
    realm.ask(&admin(), token("carl", 1, TokenRole::Agent)).await;
    realm.send(&ann, "carl", "for the bearer").await;
    assert_eq!(realm.mail("carl"), ["for the bearer"]);
}

// F44
#[tokio::test]
async fn operator_can_be_addressed_from_the_first_message() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let sent = realm.send(&ann, "operator", "help").await;
    assert_eq!(sent.receipts[0].agent, id("admin"));
    realm.send(&ann, "admin", "again").await;
    assert_eq!(realm.mail("admin"), ["help", "again"]);
    let entry = realm.see(|view| view.agent(&ann, &id("admin")));
    assert_eq!((entry.kind, entry.name.as_deref()), (AgentKind::Admin, Some("operator")));
    // The operator answers under that name.
    realm.send(&Caller::admin(id("admin"), "test"), "ann", "what is it?").await;
    assert_eq!(realm.mail("ann"), ["what is it?"]);
    for name in ["operator", "Operator", "0perator", "Admin"] {
        let refused = realm.refused(&member("m"), by("m", name, "p")).await;
        assert!(matches!(refused, Refusal::BadName { .. }), "{name}: {refused:?}");
    }
}

// F8, F32
#[tokio::test]
async fn administrator_may_send_under_new_names_but_not_address_words() {
    let realm = Realm::new();
    realm.agent("ann").await;
    let from = |name: &str| Caller::admin(id(name), "test");
    // A refused message registers no agent.
    let refused = realm.refused(&from("me"), message("missing", "hello")).await;
    assert!(matches!(refused, Refusal::NoSuchAgent { .. }));
    assert!(matches!(realm.hidden(|view| view.agent(&admin(), &id("me"))), Refusal::NoSuchAgent { .. }));
    realm.send(&from("me"), "ann", "hello").await;
    assert_eq!(realm.see(|view| view.agent(&admin(), &id("me"))).kind, AgentKind::User);
    for name in ["all", "parent", "role:x", "agent:ann", "operator", "@me", "a@b"] {
        let refused = realm.refused(&from(name), message("ann", "hello")).await;
        assert!(matches!(refused, Refusal::BadName { .. }), "{name}: {refused:?}");
        let entry = Register { bearer: Some(Bearer { name: id("admin"), admin: true }), ..named(name) };
        let refused = realm.refused(&admin(), entry).await;
        assert!(matches!(refused, Refusal::BadName { .. }), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn contact_request_of_a_new_sender_registers_it() {
    let realm = Realm::new();
    let asks = Register { contact_policy: Some(ContactPolicy::Contacts), ..named("ann") };
    realm.ask(&member("ann"), asks).await;
    let me = Caller::admin(id("me"), "test");
    // The second refusal finds the request pending and changes nothing.
    for _ in 0..2 {
        let refused = realm.refused(&me, message("ann", "hello")).await;
        assert!(matches!(refused, Refusal::ConsentPending { .. }), "{refused:?}");
    }
    let words = realm.replayed(&admin());
    assert_eq!(words, ["agent.registered", "agent.registered", "contact.changed"]);
    // The server records the request of a peer's agent in that agent's name, and registers no agent.
    let peer = PutPeer {
        name: harness::realm("east"),
        kind: PeerKind::Office,
        url: None,
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    realm.ask(&admin(), peer).await;
    let refused = realm.refused(&Caller::admin(id("far@east"), "test"), message("ann", "hello")).await;
    assert!(matches!(refused, Refusal::ConsentPending { .. }), "{refused:?}");
    let replay = realm.see(|view| view.events(&admin(), 0, &Filter::everything(), 99));
    let request = replay.events.last().expect("events");
    assert_eq!((request.fact.kind(), request.actor.as_str()), ("contact.changed", "far@east"));
}

// F34
#[tokio::test]
async fn suggestions_ignore_case_and_accents() {
    let realm = Realm::new();
    realm.agents(["ann", "Jos\u{e9}", "\u{c9}mile", "worker-1"]).await;
    for (written, meant) in
        [("jose", "Jos\u{e9}"), ("emile", "\u{c9}mile"), ("Worker-2", "worker-1"), ("an", "ann")]
    {
        let refused = realm.refused(&member("ann"), message(written, "hello")).await;
        let Refusal::NoSuchAgent { near, .. } = refused else { panic!("{written}: {refused:?}") };
        assert_eq!(near, [id(meant)], "{written}");
    }
}

/// Before, the writer's cached conversation still had the former holder, and the live event of a turn reached the new one.
#[tokio::test]
async fn new_holder_of_a_name_gets_no_turns_of_its_former_conversations() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    realm.ask(&member("p1"), by("fleet", "bob", "p1")).await;
    realm.conversation(&ann, "c", &["bob"]).await;
    realm.ask(&Caller::office(), gone("bob")).await;
    realm.ask(&admin(), token("bob", 7, TokenRole::Agent)).await;
    realm.say(&ann, "c", "fills the cache").await;
    // Registers the token's bearer under the name, with an empty mailbox.
    realm.send(&ann, "bob", "welcome").await;
    let filter = Filter::everything();
    let mut feed = realm.engine.follow(&member("bob"), filter, Start::Now, 16).await.expect("a feed");
    realm.say(&ann, "c", "not for the new holder").await;
    realm.send(&ann, "bob", "this one is").await;
    let Step::Event { event, .. } = feed.next().await.expect("a step") else { panic!("an overflow") };
    assert_eq!(event.fact.kind(), "message.sent");
}
